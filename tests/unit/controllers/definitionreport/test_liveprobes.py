"""When reports run which probes, and that a census resumes where it was."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.api.definitionreport import CountInProgress
from crdkeeper.cluster.probes.census import Pacer
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionreport import liveprobes
from crdkeeper.controllers.definitionreport.liveprobes import live_probes
from crdkeeper.controllers.definitionreport.probes import Probe, Subject
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conditions.storage import were_rewritten
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe, Read, VersionRead
from crdkeeper.core.diagnosis.deletion import Blockers
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.registry import PROBED
from crdkeeper.core.diagnosis.scalers import Unseen
from crdkeeper.core.diagnosis.scaling import Scaling, ScalingFault, ScalingTrouble
from crdkeeper.core.diagnosis.statuswriters import StatusWriters, Writers
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources, ScaleProbe, ScaleRead
from tests.unit.builders import NOW, migration
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


def subject(
    *scaled: str, stateful: tuple[str, ...] = (), deprecated: tuple[str, ...] = (), **changes: Any
) -> Subject:
    declared = DeclaredSubresources(scaled=scaled, stateful=stateful, deprecated=deprecated)
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
        ("scale", subject("v1", "v2", deprecated=("v1",)), subject("v1", deprecated=("v1",))),
        ("scaling", subject(), subject(conditions=())),
        ("scaling", subject(), replace(subject(), assessment=Assessment(recorded=True))),
        ("statuswriters", subject(stateful=("v2",)), subject()),
        ("statuswriters", subject(stateful=("v2",)), subject(stateful=("v2",), conditions=())),
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
        ("scaling", Scaling(), 300),
        ("scaling", Scaling(troubles=(ScalingTrouble(ScalingFault.NO_SCALE, "x"),)), 60),
        ("scaling", Scaling(unseen=(Unseen("rule", DOWN),)), 30),
        ("scaling", Scaling(unseen=(Unseen("rule", DOWN), Unseen("rule", NO))), 300),
        ("statuswriters", StatusWriters(3, True), 6 * 3600),
        ("statuswriters", StatusWriters(3, True, before=Writers(objects=1)), 600),
        ("statuswriters", StatusWriters(0, False, failure=DOWN), 30),
        ("statuswriters", StatusWriters(0, False, failure=NO), 300),
        ("census", census(), 6 * 3600),
        ("census", census(versions={"v1": 1, "v2": 9}), 600),
        ("census", census(versions={"v1": 1, "v2": 9}, objects=1_000_000), 6 * 3600),
        ("census", census(complete=False), 1),
        ("census", census(renewing=True), 1),
        ("census", census(renewing=True, held_up=True), 30),
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


async def test_a_renewal_that_fails_is_tried_again_less_soon(tmp_path: Path) -> None:
    former = census(objects=7)
    async with client_of(tmp_path, failure(404, "NotFound", "down"), page("a")) as (_, client):
        failed, renewed = await censuses(client, 2, former)
    assert failed == replace(former, renewing=True, held_up=True)
    assert (renewed.objects, renewed.complete, renewed.held_up) == (1, True, False)


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


async def test_a_restarted_operator_continues_a_census(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 2)
    pages = [page("a", "1"), page("b", "2"), page("c", "3"), page("d")]
    async with client_of(tmp_path, *pages) as (server, client):
        (first,) = await censuses(client, 1)
        assert first.counting is not None
        kept = {"widgets.example.com": first.counting}
        (ask,) = (each.ask for each in live_probes(client, Pacer(1e6), kept.get) if each.fact == "census")
        second = await ask(subject(), None)
    assert (second.objects, second.complete, second.counting) == (4, True, None)
    assert [each.query.get("continue") for each in server.requests] == [None, "1", "2", "3"]


async def test_what_was_counted_of_another_state_of_the_crd_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    async with client_of(tmp_path, page("a", "1"), page("b")) as (server, client):
        (first,) = await censuses(client, 1)
        kept = {"widgets.example.com": first.counting}
        (ask,) = (each.ask for each in live_probes(client, Pacer(1e6), kept.get) if each.fact == "census")
        assert (await ask(subject(generation=3), None)).objects == 1
    assert [each.query.get("continue") for each in server.requests] == [None, None]


def census_of(
    client: Client, kept: CountInProgress | None = None, ended: Sequence[datetime] = ()
) -> Callable[..., Any]:
    """Goes on with the count, where `kept` is recorded and rewrites have ended at these times."""

    def rewritten(_: str, since: datetime, now: datetime) -> bool:
        migrations = [migration() for _ in ended]
        for made, time in zip(migrations, ended, strict=True):
            made.status.completion_time = time
        return were_rewritten(migrations, since, now)

    probes = live_probes(client, Pacer(1e6), lambda _: kept, rewritten)
    (ask,) = (each.ask for each in probes if each.fact == "census")
    return ask


async def test_a_rewrite_that_ends_begins_a_count_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    ended: list[datetime] = []
    async with client_of(tmp_path, page("a", "1"), page("a", "1"), page("b")) as (server, client):
        ask = census_of(client, ended=ended)
        first = await ask(subject(), None)
        ended.append(client.now())
        second = await ask(subject(), first)
        ended.clear()
        third = await ask(subject(), second)
    assert (third.objects, third.complete) == (2, True)
    assert [each.query.get("continue") for each in server.requests] == [None, None, "1"]


def asking(client: Client, progress: list[str]) -> Callable[..., Any]:
    """Goes on with a count while a rewrite makes this progress."""
    probes = live_probes(client, Pacer(1e6), rewriting=lambda _: progress[0])
    (ask,) = (each.ask for each in probes if each.fact == "census")
    return ask


async def test_nothing_is_counted_while_objects_are_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    monkeypatch.setattr(liveprobes, "_TOLD_SECONDS", 0.0)
    async with client_of(tmp_path, page("a", "1"), page("b")) as (server, client):
        progress = ["first"]
        ask = asking(client, progress)
        found = await ask(subject(), None)
        assert (found.objects, found.complete, found.counting, len(server.requests)) == (0, False, None, 0)
        progress[0] = ""
        found = await ask(subject(), found)
        assert (found.objects, len(server.requests)) == (1, 1)
        progress[0] = "second"
        found = await ask(subject(), found)
        assert (found.objects, len(server.requests)) == (1, 1)
        assert await ask(subject(), census(objects=7)) == replace(
            census(objects=7), renewing=True, counting=found.counting
        )
        progress[0] = ""
        found = await ask(subject(), found)
    assert (found.objects, found.complete) == (2, True)
    assert [each.query.get("continue") for each in server.requests] == [None, "1"]


async def test_a_rewrite_that_makes_no_progress_holds_up_no_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveprobes, "_NO_PROGRESS", 0.0)
    async with client_of(tmp_path, page("a")) as (server, client):
        ask = asking(client, ["killed"])
        found = await ask(subject(), None)
        assert (found.objects, len(server.requests)) == (0, 0)
        found = await ask(subject(), found)
    assert (found.objects, found.complete) == (1, True)


async def test_what_was_counted_before_a_rewrite_ended_is_not_told_as_complete(tmp_path: Path) -> None:
    ended: list[datetime] = []
    async with client_of(tmp_path, page("a")) as (server, client):
        ask = census_of(client, ended=ended)
        ended.append(client.now())
        found = await ask(subject(), census(objects=7))
        assert (found.objects, found.complete, found.renewing) == (7, True, True)
        ended.clear()
        assert (await ask(subject(), found)).objects == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(("hours", "objects"), [(-5.9, 41), (-6.1, 1), (0.1, 1)])
async def test_what_was_counted_long_ago_or_in_the_future_is_dropped(
    tmp_path: Path, hours: float, objects: int
) -> None:
    async with client_of(tmp_path, page("a")) as (_, client):
        kept = recorded(client, hours)
        assert (await census_of(client, kept)(subject(), None)).objects == objects


async def test_what_was_counted_before_a_rewrite_ended_is_not_continued(tmp_path: Path) -> None:
    async with client_of(tmp_path, page("a")) as (_, client):
        kept = recorded(client, -2)
        ended = [client.now() - timedelta(hours=1)]
        assert (await census_of(client, kept, ended)(subject(), None)).objects == 1


async def test_a_record_is_continued_once(tmp_path: Path) -> None:
    """A report that may not be written still has it after the count."""
    async with client_of(tmp_path, page("a")) as (server, client):
        ask = census_of(client, recorded(client, -1))
        found = await ask(subject(), None)
        assert found.complete
        assert (await ask(subject(), found)).objects == 1
    assert [each.query.get("continue") for each in server.requests] == ["1", None]


def recorded(client: Client, hours: float) -> CountInProgress:
    """40 objects counted so far, by a count that began then."""
    return CountInProgress.model_validate(
        {
            "about": liveprobes._mark(liveprobes._revision(subject()), ()),
            "continueToken": "1",
            "startedAt": client.now() + timedelta(hours=hours),
            "objects": 40,
        }
    )


async def test_how_far_a_census_has_got_is_told_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time is a write of the report."""
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    async with client_of(tmp_path, *(page("a", str(n)) for n in range(1, 5))) as (_, client):
        ask, former = probe(client, "census").ask, census(objects=7)
        told = [await ask(subject(), former), await ask(subject(), former)]
        monkeypatch.setattr(liveprobes, "_TOLD_SECONDS", 0.0)
        told.append(await ask(subject(), former))
    assert [each.counting.objects for each in told] == [1, 1, 3]


async def test_so_is_how_far_a_first_census_has_got(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveprobes, "_PAGES", 1)
    down = failure(404, "NotFound", "down")
    pages = page("a", "1"), page("b", "2"), down, page("c", "3"), page("d")
    async with client_of(tmp_path, *pages) as (_, client):
        first, second, failed, mended, last = await censuses(client, 5)
    assert second is first
    assert failed.failure is not None
    assert mended.failure is None
    assert (last.objects, last.complete) == (4, True)
