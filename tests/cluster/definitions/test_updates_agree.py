"""`update` and the API server agree on a CRD that replaces another one: errors, warnings and result.

Old CRDs are really created, in their own groups, and deleted at the end; the updates are dry runs.
CRDKEEPER_UPDATES sets the number of old CRDs (with twenty updates each), CRDKEEPER_CORPUS names a directory
of CRDs to vary besides our own, CRDKEEPER_SEED selects others.
"""

import asyncio
import copy
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import orjson
import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.definitions.lint.agreement import CRDS, Comparison, Verdict, ask, compare
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.outcomes import OutcomeComparison, compare_outcome
from tests.cluster.definitions.lint.prediction import update
from tests.cluster.definitions.lint.updates import CURRENT, updates
from tests.cluster.definitions.lint.variants import BASES, Crd, corpus, variants
from tests.cluster.definitions.lint.violators import VIOLATORS
from tests.cluster.definitions.lint.warned import WarnedClient
from tests.controlplane.cluster import Cluster
from tests.controlplane.etcd import Etcd

COUNT = int(os.environ.get("CRDKEEPER_UPDATES", "6"))
EACH = 20
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
AT_ONCE = 6
SHOWN = 12
BIGGEST = 50_000
TIMEOUT_SECONDS = 300 + 10 * COUNT
SECONDS = 120

Case = tuple[Crd, Crd, Comparison, OutcomeComparison]
"""The old CRD, the new one, and the comparisons of errors and outcomes."""


def _renamed(crd: Crd, number: int, run: str) -> Crd:
    """The same CRD in its own group, with the same suffix: some groups need an approval."""
    crd = copy.deepcopy(crd)
    spec = crd["spec"]
    end = "k8s.io" if spec["group"].endswith(".k8s.io") else "example.com"
    spec["group"] = f"updates-{run}-{number}.{end}"
    crd["metadata"]["name"] = f"{spec['names']['plural']}.{spec['group']}"
    return crd


def _good(crds: Sequence[Crd]) -> list[Crd]:
    """Those that the API server accepts, and soon."""
    small = [each for each in crds if len(repr(each)) < BIGGEST]
    return [each for each in small if not check_creation(each).violations]


Store = Callable[[Client, Crd], AbstractAsyncContextManager[str]]
"""Stores a CRD, and returns its name."""


@asynccontextmanager
async def _created(client: Client, crd: Crd) -> AsyncIterator[str]:
    name = crd["metadata"]["name"]
    await client.request("POST", CRDS, crd)
    try:
        await _settled(client, name)
        yield name
    finally:
        await client.request("DELETE", f"{CRDS}/{name}")


def _slipped_in(etcd: Etcd) -> Store:
    """Puts CRDs into etcd, bypassing all rules."""

    @asynccontextmanager
    async def store(client: Client, crd: Crd) -> AsyncIterator[str]:
        name = crd["metadata"]["name"]
        key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/{name}"
        etcd.put(key, crd)
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    if (await client.send("GET", f"{CRDS}/{name}")).code == 200:
                        break
                    await asyncio.sleep(0.1)
            yield name
        finally:
            etcd.delete(key)

    return store


async def _settled(client: Client, name: str) -> None:
    """Until the server's own controllers have processed it."""
    async with asyncio.timeout(SECONDS):
        while True:
            status = (await client.request("GET", f"{CRDS}/{name}")).get("status", {})
            types = {each["type"] for each in status.get("conditions") or ()}
            if {"Established", "NamesAccepted"} <= types:
                return
            await asyncio.sleep(0.1)


async def _compare(client: WarnedClient, name: str, new: Crd) -> Case:
    """Sends an update. If the old CRD changes meanwhile, both are compared again."""
    while True:
        old = await client.request("GET", f"{CRDS}/{name}")
        sent = copy.deepcopy(new)
        if sent["metadata"].get("resourceVersion") == CURRENT:
            sent["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        verdict: Verdict = await ask(client, sent, replaced=name)
        warnings = client.warnings
        if (await client.request("GET", f"{CRDS}/{name}"))["metadata"] == old["metadata"]:
            outcome = update(sent, old, complete=True)
            said = compare(outcome.report, verdict)
            return old, sent, said, compare_outcome(outcome, verdict, warnings)


async def _compared(client: WarnedClient, name: str, number: int) -> list[Case]:
    old = await client.request("GET", f"{CRDS}/{name}")
    cases: list[Case] = []
    for new in drawn(updates(old), EACH, SEED + number):
        cases.append(await _compare(client, name, new))
    return cases


async def _all(cluster: Cluster, crds: Sequence[Crd], store: Store) -> list[Case]:
    cases: list[Case] = []
    run = uuid.uuid4().hex[:6]
    queue = iter(enumerate(crds))

    async def work(queue: Iterator[tuple[int, Crd]]) -> None:
        async with WarnedClient(Connection(cluster.kubeconfig)) as client:
            for number, crd in queue:
                async with store(client, _renamed(crd, number, run)) as name:
                    cases.extend(await _compared(client, name, number))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work(queue))
    return cases


def _show(cases: Sequence[Case]) -> str:
    wrong = [each for each in cases if each[2].disagreement or each[3].disagreement]

    return f"{len(wrong)} of {len(cases)} disagree\n" + "\n".join(
        f"{said.disagreement or ''}{outcome.disagreement or ''}\n{_changes(old, new)}"
        for old, new, said, outcome in wrong[:SHOWN]
    )


def _changes(old: Any, new: Any, path: str = "") -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return "".join(_changes(old.get(key), new.get(key), f"{path}.{key}") for key in keys)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = zip(old, new, strict=True)
        return "".join(_changes(one, other, f"{path}[{i}]") for i, (one, other) in enumerate(pairs))
    if old == new and type(old) is type(new):
        return ""
    return f"  {path}: {orjson.dumps(old).decode()[:500]} -> {orjson.dumps(new).decode()[:500]}\n"


def _report(cases: Sequence[Case]) -> None:
    refused = sum(each.refused for _, _, each, _ in cases)
    undecided = sum(each.undecided for _, _, each, _ in cases)
    warned = sum(each.warned for _, _, _, each in cases)
    migrating = sum(each.several_stored for _, _, _, each in cases)
    print(
        f"{len(cases)} updates: {refused} refused, {undecided} partly left to the server, {warned} warned "
        f"of, {migrating} with more than one stored version"
    )
    assert not any(said.disagreement or outcome.disagreement for _, _, said, outcome in cases), _show(cases)
    assert len(cases) * 0.2 < refused < len(cases) * 0.95


@pytest.mark.timeout(TIMEOUT_SECONDS)
async def test_same_verdict_same_words(plane: Cluster) -> None:
    bases = _good(BASES + corpus())
    crds = [*BASES, *_good(drawn(variants(tuple(bases)), 3 * COUNT, SEED))][: COUNT + len(BASES)]
    _report(await _all(plane, crds, _created))


async def test_what_the_old_one_violates_is_not_held_against_the_new_one(plane: Cluster) -> None:
    _report(await _all(plane, VIOLATORS, _slipped_in(plane.etcd)))


async def test_not_established(plane: Cluster) -> None:
    # The kind belongs to another CRD: scope and kind may still change.
    run = uuid.uuid4().hex[:6]
    first = _renamed(BASES[0], 0, run)
    rival = _renamed(BASES[0], 0, run)
    rival["spec"]["names"]["plural"] = "rivals"
    rival["metadata"]["name"] = f"rivals.{rival['spec']['group']}"
    async with (
        WarnedClient(Connection(plane.kubeconfig)) as client,
        _created(client, first),
        _created(client, rival) as name,
    ):
        _report(await _compared(client, name, 0))
