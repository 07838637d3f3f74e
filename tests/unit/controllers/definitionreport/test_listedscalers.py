"""Autoscalers and budgets are listed once for all CRDs, and each list knows the one before."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.controllers.definitionreport import liveprobes
from crdkeeper.controllers.definitionreport.liveprobes import live_probes
from crdkeeper.controllers.definitionreport.probes import Probe, Subject
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.scalers import Scalers
from crdkeeper.core.diagnosis.scaling import Scaling
from tests.unit.cluster.transport.localserver import client_of, json
from tests.unit.core.diagnosis.builders import seen

SUBJECT = Subject(seen(), Assessment())


def probe(client: Any) -> Probe:
    (found,) = (each for each in live_probes(client) if each.fact == "scaling")
    return found


async def test_autoscalers_are_listed_once_for_all(tmp_path: Path) -> None:
    """Each answer of a list is one page, so that any further request would fail."""
    empty = json({"metadata": {}, "items": []})
    async with client_of(tmp_path, empty, empty) as (server, client):
        ask = probe(client).ask
        found = await asyncio.gather(*(ask(SUBJECT, None) for _ in range(50)))
    assert found == [Scaling()] * 50
    assert [each.path for each in server.requests] == [
        "/apis/autoscaling/v2/horizontalpodautoscalers",
        "/apis/policy/v1/poddisruptionbudgets",
    ]


async def test_a_list_of_budgets_knows_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [Scalers(missing=frozenset(("ns/b",)))]

    async def listed(_: object, former: Scalers) -> Scalers:
        lists.append(former)
        return lists[0]

    monkeypatch.setattr(liveprobes, "list_scalers", listed)
    monkeypatch.setattr(liveprobes, "_SCALING", -1.0)
    ask = probe(None).ask
    assert await ask(SUBJECT, None) == await ask(SUBJECT, None) == Scaling()
    assert lists[1:] == [Scalers(), lists[0]]
