"""What the DefinitionReport controller does on each event and after each failed request, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import orjson
import pytest

from crdkeeper.api.definitionreport import CountInProgress, DefinitionReport
from crdkeeper.cluster.resources.kinds import parse_report
from crdkeeper.cluster.transport.client import Answer, ApiError, Client, Unreachable
from crdkeeper.controllers.definitionreport import controller
from crdkeeper.controllers.definitionreport.controller import DefinitionReports
from crdkeeper.controllers.definitionreport.probes import Probe
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conditions import versions
from tests import virtualtime
from tests.unit.builders import NAME, migration
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi
from tests.unit.core.diagnosis.builders import live_crd, seen

REPORTS = f"{OURS}/definitionreports"
REPORT = f"{REPORTS}/{NAME}"
EVENTS = "/apis/events.k8s.io"
TROUBLES = {
    "no answer": Unreachable("connection reset by peer"),
    "403": ApiError(403, {"message": "no rights"}),
    "404": ApiError(404, {"message": "not found"}),
    "409": ApiError(409, {"message": "it has been modified"}),
    "422": ApiError(422, {"message": "it is invalid"}),
    "429": ApiError(429, {"message": "too many"}),
    "500": ApiError(500, {"message": "etcdserver: leader changed"}),
}


class ReportsApi(FakeApi):
    """Stores what is applied, and shows it to those who watch."""

    reports: DefinitionReports
    """The controller at work."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 100
        self.watches: asyncio.Queue[bytes] = asyncio.Queue()
        self.reads: list[str] = []
        """The CRDs that were read."""
        self.pruned = ""
        """The field of the status that the CRD does not have."""
        self.late = 0.0
        """The seconds from a write's event to its answer."""

    async def send(self, method: str, path: str, **_: Any) -> Answer:
        self.reads.append(path)
        try:
            return Answer(200, orjson.dumps(await self.request(method, path)))
        except ApiError as error:
            return Answer(error.code, orjson.dumps(error.body))

    async def lines(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        assert path.startswith(REPORTS)
        while True:
            yield await self.watches.get()

    async def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        answer = await super().request(method, path, body, **more)
        path = path.partition("?")[0]
        if method != "PATCH" or not path.startswith(REPORTS):
            return answer
        name = path.removesuffix("/status")
        if path != name and name not in self.objects:
            raise TROUBLES["404"]
        if path != name:
            answer = {**answer, "status": {**answer["status"]}}
            answer["status"].pop(self.pruned, None)
        written = self.show("MODIFIED", {**self.objects.get(name, {}), **answer})
        if self.late:
            await asyncio.sleep(self.late)
        return written

    def show(self, type_: str, report: dict[str, Any]) -> dict[str, Any]:
        """The current report or, if it was deleted, its last state."""
        self.revision += 1
        old = self.objects.pop(REPORT, {}).get("metadata", {})
        metadata = {"uid": "r1", **old, **report["metadata"], "resourceVersion": str(self.revision)}
        report = {**report, "metadata": metadata}
        if type_ != "DELETED":
            self.objects[REPORT] = report
        self.watches.put_nowait(orjson.dumps({"type": type_, "object": report}))
        return report

    @property
    def ready(self) -> str:
        """Reason of the stored report's condition Ready."""
        conditions = self.objects[REPORT]["status"]["conditions"]
        found: str = next(each["reason"] for each in conditions if each["type"] == "Ready")
        return found


def play(people: Callable[[ClusterState, ReportsApi], Awaitable[None]], *probes: Probe) -> None:
    """One CRD, and what people do to it and its report."""

    async def main() -> None:
        api, state, metrics = ReportsApi(), ClusterState(), OperatorMetrics()
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(stored=("v2",))
        reports = DefinitionReports(cast(Client, api), state, metrics, identity="me", probes=probes)
        api.reports = reports
        task = asyncio.create_task(reports.run())
        state.saw_definition(NAME, seen(stored=("v2",)))
        await people(state, api)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtualtime.run(main())


def test_a_crd_gets_a_report_and_that_is_all() -> None:
    async def people(_: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        assert api.objects[REPORT]["metadata"]["ownerReferences"][0]["uid"] == "u1"
        assert api.writes("PATCH", REPORT) == 2
        await asyncio.sleep(600.0)
        assert api.writes("PATCH", REPORT) == 2

    play(people)


def test_what_changes_in_the_crd_changes_its_report() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        before = api.ready
        changed: dict[str, Any] = {"stored": ("v1", "v2"), "resourceVersion": "200"}
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(**changed)
        state.saw_definition(NAME, seen(**changed))
        await asyncio.sleep(5.0)
        outdated = api.ready
        assert outdated != before
        assert api.writes("POST", EVENTS) >= 1
        written = api.writes("PATCH", REPORT)
        state.saw_migration("m", migration())
        await asyncio.sleep(5.0)
        assert api.writes("PATCH", REPORT) > written

    play(people)


def test_what_the_watch_has_shown_is_not_read_again() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        assert len(api.reads) == 1, "nobody had shown it"
        strict = {"type": "object", "properties": {"size": {"type": "integer"}}}
        changed: dict[str, Any] = {"stored": ("v2",), "generation": 5, "resourceVersion": "200"}
        state.saw_definition(NAME, seen(schema=strict, **changed), live_crd(schema=strict, **changed))
        await asyncio.sleep(5.0)
        status = api.objects[REPORT]["status"]
        assert status["definitionGeneration"] == 5
        assert "open-schema" not in str(status["findings"]), "what was read still had it"
        assert len(api.reads) == 1
        # The same schemas again: nothing to assess, and nothing to keep for it.
        state.saw_definition(
            NAME, seen(schema=strict, **changed), live_crd(schema={"type": "object"}, **changed)
        )
        again: dict[str, Any] = {"stored": ("v2",), "generation": 6, "resourceVersion": "300"}
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(**again)
        state.saw_definition(NAME, seen(**again))
        await asyncio.sleep(5.0)
        assert len(api.reads) == 2

    play(people)


def test_what_comes_before_the_reports_are_known_is_read_if_it_is_not_on_record() -> None:
    """A restarted operator would compress thousands of CRDs for nothing."""

    async def main() -> None:
        api = ReportsApi()
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(stored=("v2",))
        for expected in (1, 1):
            state = ClusterState()
            reports = DefinitionReports(cast(Client, api), state, OperatorMetrics(), identity="me")
            state.saw_definition(NAME, seen(stored=("v2",)), live_crd(stored=("v2",)))
            task = asyncio.create_task(reports.run())
            await asyncio.sleep(0.2)
            assert api.ready
            assert len(api.reads) == expected
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    virtualtime.run(main())


def test_a_watch_that_lags_behind_is_waited_for() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        before = api.objects[REPORT]["status"]["definitionGeneration"]
        changed: dict[str, Any] = {"stored": ("v2",), "generation": 6, "resourceVersion": "300"}
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(**changed)
        # It shows a change of which the result is outdated.
        state.saw_definition(NAME, seen(stored=("v2",), generation=5, resourceVersion="200"))
        await asyncio.sleep(60.0)
        assert api.objects[REPORT]["status"]["definitionGeneration"] == before
        assert len(api.reads) < 70
        state.saw_definition(NAME, seen(**changed))
        await asyncio.sleep(5.0)
        assert api.objects[REPORT]["status"]["definitionGeneration"] == 6

    play(people)


def test_a_report_that_somebody_has_changed_is_put_right() -> None:
    async def people(_: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        ready = api.ready
        api.show("MODIFIED", {**api.objects[REPORT], "status": {"conditions": []}})
        await asyncio.sleep(5.0)
        assert api.ready == ready

    play(people)


def test_events_of_own_writes_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def reading(found: Mapping[str, Any]) -> DefinitionReport:
        read.append(found)
        return parse_report(found)

    async def people(_: ClusterState, api: ReportsApi) -> None:
        api.late = 0.5
        await asyncio.sleep(5.0)
        assert api.writes("PATCH", REPORT) == 2
        assert not read
        before = api.objects[REPORT]
        api.show("MODIFIED", before)
        await asyncio.sleep(5.0)
        assert len(read) == 1, "it may have been changed by others"
        # What is older says nothing, whoever has written it.
        api.watches.put_nowait(orjson.dumps({"type": "MODIFIED", "object": before}))
        await asyncio.sleep(5.0)
        assert len(read) == 1
        assert api.writes("PATCH", REPORT) == 2

    monkeypatch.setattr(controller, "parse_report", reading)
    play(people)


@pytest.mark.parametrize("type_", ["MODIFIED", "DELETED"])
def test_what_others_do_to_a_report_while_it_is_being_written_is_put_right(type_: str) -> None:
    async def people(_: ClusterState, api: ReportsApi) -> None:
        api.late = 2.0
        await asyncio.sleep(3.0)
        written = api.objects[REPORT]
        ready = api.ready
        api.show(type_, {**written, "status": {"conditions": []}})
        await asyncio.sleep(0.5)
        assert api.writes("PATCH", REPORT) == 2, "the answer is not there yet"
        await asyncio.sleep(10.0)
        assert api.ready == ready

    play(people)


def test_how_far_a_count_has_got_is_sent_once_to_a_crd_that_does_not_keep_it() -> None:
    got = CountInProgress(
        about="x",
        continue_token="t",
        started_at=datetime(2026, 11, 23, tzinfo=UTC),
        objects=40,
        versions=[],
        uses=[],
    )
    answer = Census(
        objects=40,
        complete=False,
        uses=(),
        uses_total=0,
        versions={},
        resource_version="1",
        taken_at=datetime(2026, 11, 23, tzinfo=UTC),
        counting=got,
    )

    async def ask(*_: Any) -> Census:
        return answer

    async def people(state: ClusterState, api: ReportsApi) -> None:
        nonlocal answer
        api.pruned = "counting"
        await asyncio.sleep(5.0)
        written = api.writes("PATCH", REPORT)
        for each in range(5):
            state.saw_migration("m", migration(generation=each + 1))
            await asyncio.sleep(5.0)
        assert api.writes("PATCH", REPORT) == written
        # With the CRD of this release it is kept from the next time on.
        api.pruned = ""
        answer = replace(answer, counting=replaced)
        await asyncio.sleep(30.0)
        assert api.objects[REPORT]["status"]["counting"]["objects"] == 50

    replaced = got.model_copy(update={"objects": 50})
    play(people, Probe(versions.CONDITION, lambda _: 10.0, lambda _: "x", ask))


def test_findings_outlive_a_restart_and_the_loss_of_the_owner() -> None:
    """The restarted controller has the findings only as counts, and must not write these."""

    async def main() -> None:
        api, flawed = ReportsApi(), {"type": "object", "required": ["size"]}
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(stored=("v2",), schema=flawed)
        findings: list[Any] = []
        for _ in range(2):
            state = ClusterState()
            reports = DefinitionReports(cast(Client, api), state, OperatorMetrics(), identity="me")
            task = asyncio.create_task(reports.run())
            state.saw_definition(NAME, seen(stored=("v2",), schema=flawed))
            await asyncio.sleep(60.0)
            report = api.objects[REPORT]
            assert len(report["metadata"]["ownerReferences"]) == 1
            findings.append(report["status"]["findings"])
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            report["metadata"]["ownerReferences"] = []
        assert findings[0]
        assert findings[1] == findings[0]

    virtualtime.run(main())


def test_a_report_that_somebody_has_deleted_comes_back() -> None:
    async def people(_: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        ready = api.ready
        api.show("DELETED", api.objects[REPORT])
        await asyncio.sleep(5.0)
        assert api.ready == ready

    play(people)


def test_a_deleted_crd_gets_no_report() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        del api.objects[f"{DEFINITIONS}/{NAME}"]
        written = api.writes("PATCH", REPORT)
        # Garbage collection deletes its report, and that may be seen first.
        api.show("DELETED", api.objects[REPORT])
        await asyncio.sleep(1.0)
        state.saw_definition(NAME, None)
        await asyncio.sleep(600.0)
        assert api.writes("PATCH", REPORT) == written

    play(people)


def test_one_that_is_created_again_owns_a_report_of_its_own() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        again: dict[str, Any] = {"stored": ("v2",), "uid": "u2", "resourceVersion": "300", "generation": 1}
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(**again)
        state.saw_definition(NAME, seen(**again))
        await asyncio.sleep(5.0)
        assert api.objects[REPORT]["metadata"]["ownerReferences"][0]["uid"] == "u2"

    play(people)


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{DEFINITIONS}/{NAME}"),
        ("GET", REPORTS),
        ("PATCH", REPORT),
        ("PATCH", f"{REPORT}/status"),
        ("POST", EVENTS),
    ],
    ids=["read the CRD", "list", "apply", "status", "event"],
)
def test_trouble_is_got_over(trouble: str, method: str, path: str) -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        taken_for_deleted = trouble == "404" and path.startswith(DEFINITIONS)
        api.failures.extend([(method, path, TROUBLES[trouble])] * (1 if taken_for_deleted else 3))
        await asyncio.sleep(60.0)
        if taken_for_deleted:
            # If it is there, the watch shows it.
            state.saw_definition(NAME, seen(stored=("v2",)))
            await asyncio.sleep(60.0)
        assert api.ready

    play(people)
