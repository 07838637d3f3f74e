"""What the DefinitionReport controller does on each event and after each failed request, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import orjson
import pytest

from crdkeeper.cluster.transport.client import Answer, ApiError, Client, Unreachable
from crdkeeper.controllers.definitionreport.controller import DefinitionReports
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
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

    def __init__(self) -> None:
        super().__init__()
        self.revision = 100
        self.watches: asyncio.Queue[bytes] = asyncio.Queue()

    async def send(self, method: str, path: str, **_: Any) -> Answer:
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
        return self.show("MODIFIED", {**self.objects.get(name, {}), **answer})

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


def play(people: Callable[[ClusterState, ReportsApi], Awaitable[None]]) -> None:
    """One CRD, and what people do to it and its report."""

    async def main() -> None:
        api, state, metrics = ReportsApi(), ClusterState(), OperatorMetrics()
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(stored=("v2",))
        controller = DefinitionReports(cast(Client, api), state, metrics, identity="me")
        task = asyncio.create_task(controller.run())
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


def test_a_report_that_somebody_has_changed_is_put_right() -> None:
    async def people(_: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        ready = api.ready
        api.show("MODIFIED", {**api.objects[REPORT], "status": {"conditions": []}})
        await asyncio.sleep(5.0)
        assert api.ready == ready

    play(people)


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
