"""When reports run which probes, and that a census resumes where it was."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.probes.census import Pacer
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionreport import liveprobes
from crdkeeper.controllers.definitionreport.liveprobes import live_probes
from crdkeeper.controllers.definitionreport.probes import Probe, Subject
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe, Read, VersionRead
from crdkeeper.core.diagnosis.deletion import Blockers
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.registry import PROBED
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources, ScaleProbe, ScaleRead
from tests.unit.builders import NOW
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json
from tests.unit.core.diagnosis.builders import seen

WEBHOOK = {
    "conversion": {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]},
    }
}
NO = Failure(ProbeTrouble.FORBIDDEN, 403, "no")
DOWN = Failure(ProbeTrouble.FAILED, 500, "down")


def subject(*scaled: str, **changes: Any) -> Subject:
    declared = DeclaredSubresources(scaled=scaled)
    return Subject(seen(**{"stored": ("v2",), **changes}), Assessment(subresources=declared))


def probe(client: Any, fact: str) -> Probe:
    (found,) = (each for each in live_probes(client, Pacer(1e6)) if each.fact == fact)
    return found


def test_each_condition_that_needs_a_probe_has_one() -> None:
    fed = [each.condition.type for each in live_probes(client=None, pacer=Pacer(1e6))]  # type: ignore[arg-type]
    assert sorted(fed) == sorted(PROBED)


@pytest.mark.parametrize(
    ("fact", "asked", "not_asked"),
    [
        ("conversion", subject(spec=WEBHOOK), subject()),
        ("scale", subject("v1"), subject()),
        ("blockers", subject(deletionTimestamp="2026-01-01T00:00:00Z"), subject()),
        ("census", subject(), subject(deletionTimestamp="2026-01-01T00:00:00Z")),
        ("census", subject(), subject(conditions=())),
    ],
)
def test_who_is_asked(fact: str, asked: Subject, not_asked: Subject) -> None:
    about = probe(None, fact).about
    assert about(asked) is not None
    hash(about(asked))
    assert about(not_asked) is None


@pytest.mark.parametrize("fact", ["conversion", "scale", "census"])
@pytest.mark.parametrize("change", [{"generation": 3}, {"uid": "u2"}, {"stored": ("v1", "v2")}])
def test_a_change_has_all_asked_again(fact: str, change: dict[str, Any]) -> None:
    about = probe(None, fact).about
    assert about(subject("v1", spec=WEBHOOK)) == about(subject("v1", spec=WEBHOOK, resourceVersion="9"))
    assert about(subject("v1", spec=WEBHOOK)) != about(subject("v1", spec=WEBHOOK, **change))


def census(**changes: Any) -> Census:
    known: dict[str, Any] = {
        "objects": 10,
        "complete": True,
        "uses": (),
        "uses_total": 0,
        "versions": {},
        "resource_version": "1",
        "taken_at": NOW,
    }
    return Census(**{**known, **changes})


GOOD = (VersionRead("v1", Read.CONVERTED),)
SCALED = (ScaleRead("v1", "ns/w"),)


@pytest.mark.parametrize(
    ("fact", "answer", "seconds"),
    [
        ("conversion", ConversionProbe(reads=GOOD), 300),
        ("conversion", ConversionProbe(reads=GOOD, early=True), 5),
        ("conversion", ConversionProbe(), 30),
        ("conversion", ConversionProbe(reads=(VersionRead("v1", Read.FAILED, DOWN),)), 30),
        ("conversion", ConversionProbe(failure=NO), 300),
        ("scale", ScaleProbe(SCALED), 3600),
        ("scale", ScaleProbe((ScaleRead("v1", "ns/w", DOWN),)), 30),
        ("scale", ScaleProbe(failure=NO), 300),
        ("blockers", Blockers(3, True), 5),
        ("blockers", Blockers(2000, False), 30),
        ("blockers", Blockers(0, False, failure=NO), 5),
        ("census", census(), 6 * 3600),
        ("census", census(versions={"v1": 1, "v2": 9}), 600),
        ("census", census(versions={"v1": 1, "v2": 9}, objects=1_000_000), 6 * 3600),
        ("census", census(complete=False), 1),
        ("census", census(renewing=True), 1),
        ("census", census(failure=DOWN, complete=False), 30),
        ("census", census(failure=NO, complete=False), 300),
    ],
)
def test_how_long_an_answer_is_good_for(fact: str, answer: Any, seconds: float) -> None:
    assert probe(None, fact).seconds(answer) == seconds


def page(name: str, token: str = "") -> Handler:
    entry = {"manager": "helm", "operation": "Update", "apiVersion": "example.com/v1"}
    item = {"metadata": {"name": name, "managedFields": [entry]}}
    return json({"metadata": {"resourceVersion": "9", "continue": token}, "items": [item]})


async def censuses(client: Client, times: int, former: Census | None = None) -> Sequence[Census]:
    """The results of that many runs of the same probe."""
    ask, found = probe(client, "census").ask, []
    for _ in range(times):
        former = await ask(subject(), former)
        found.append(former)
    return found


async def test_a_census_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 2)
    pages = [page("a", "1"), page("b", "2"), page("c", "3"), page("d"), page("e")]
    async with client_of(tmp_path, *pages) as (server, client):
        first, second, third = await censuses(client, 3)
    assert [(each.objects, each.complete) for each in (first, second, third)] == [
        (2, False),
        (4, True),
        (1, True),
    ]
    tokens = [each.query.get("continue") for each in server.requests]
    assert tokens == [None, "1", "2", "3", None]


async def test_a_former_census_stands_until_the_next_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    former = census(objects=7)
    busy = failure(410, "Expired", "too old")
    async with client_of(tmp_path, page("a", "1"), busy, page("a", "1"), page("b")) as (_, client):
        *under_way, last = await censuses(client, 4, former)
    assert all((each.objects, each.complete, each.renewing) == (7, True, True) for each in under_way)
    assert (last.objects, last.complete, last.renewing) == (2, True, False)


async def test_a_right_that_is_taken_away_shows(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(403, "Forbidden", "no")) as (_, client):
        (found,) = await censuses(client, 1, census(objects=7))
    assert (found.failure, found.complete) == (NO, False)


async def test_a_change_begins_a_census_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    async with client_of(tmp_path, page("a", "1"), page("b")) as (server, client):
        ask = probe(client, "census").ask
        await ask(subject(), None)
        await ask(subject(generation=3), None)
    assert [each.query.get("continue") for each in server.requests] == [None, None]
