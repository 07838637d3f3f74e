"""Reports of many CRDs that the operator may not write, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.definitionreport.controller import DefinitionReports
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from tests import virtualtime
from tests.unit.controllers.definitionreport.test_controller import REPORTS, ReportsApi
from tests.unit.controllers.fakeapi import DEFINITIONS
from tests.unit.core.diagnosis.builders import live_crd, seen

GROUPS = [f"g{number}.example.com" for number in range(60)]
NAMES = {f"widgets.{group}" for group in GROUPS}


class Rights(ReportsApi):
    """Refuses to store some reports."""

    def __init__(self) -> None:
        super().__init__()
        self.forbidden = set(NAMES)
        self.refused: list[str] = []
        self.stored: set[str] = set()
        self.seconds = 0.01
        """How long a write takes."""

    async def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        name = path.partition("?")[0].removeprefix(f"{REPORTS}/").removesuffix("/status")
        if method != "PATCH" or name not in NAMES:
            return await super().request(method, path, body, **more)
        await asyncio.sleep(self.seconds)
        if name in self.forbidden:
            self.refused.append(name)
            raise ApiError(403, {"message": "no rights"})
        if path.partition("?")[0].endswith("/status"):
            self.stored.add(name)
        self.revision += 1
        return {"metadata": {"name": name, "uid": name, "resourceVersion": str(self.revision)}}


def play(people: Callable[[ClusterState, Rights], Awaitable[None]]) -> None:
    """As many CRDs, and what people do."""

    async def main() -> None:
        api, state = Rights(), ClusterState()
        reports = DefinitionReports(cast(Client, api), state, OperatorMetrics(), identity="me")
        task = asyncio.create_task(reports.run())
        for group in GROUPS:
            changes: dict[str, Any] = {"stored": ("v2",), "group": group, "uid": group}
            made = live_crd(**changes)
            api.objects[f"{DEFINITIONS}/{made['metadata']['name']}"] = made
            state.saw_definition(made["metadata"]["name"], seen(**changes))
        await people(state, api)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtualtime.run(main())


def test_one_at_a_time_is_tried_and_all_are_written_once_it_may_be() -> None:
    async def people(_: ClusterState, api: Rights) -> None:
        await asyncio.sleep(20.0)
        assert set(api.refused) == NAMES
        api.refused.clear()
        await asyncio.sleep(100.0)
        assert 19 <= len(api.refused) <= 21
        api.forbidden.clear()
        await asyncio.sleep(10.0)
        assert api.stored == NAMES

    play(people)


def test_one_that_is_refused_for_good_holds_up_no_other() -> None:
    bad = min(NAMES)

    async def people(state: ClusterState, api: Rights) -> None:
        await asyncio.sleep(20.0)
        api.forbidden = {bad}
        await asyncio.sleep(20.0)
        assert api.stored == NAMES - {bad}
        api.refused.clear()
        await asyncio.sleep(100.0)
        assert 19 <= len(api.refused) <= 21
        state.saw_definition(bad, None)
        api.refused.clear()
        await asyncio.sleep(100.0)
        assert api.refused == []

    play(people)


def test_an_attempt_that_succeeds_slowly_has_all_others_made() -> None:
    async def people(_: ClusterState, api: Rights) -> None:
        await asyncio.sleep(20.0)
        api.forbidden.clear()
        api.seconds = 6.0
        # Each is two writes, and eight are made at a time.
        await asyncio.sleep(5.0 + 12.0 * (2 + len(NAMES) / 8))
        assert api.stored == NAMES

    play(people)
