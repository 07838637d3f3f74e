"""CRDs that are deleted in the middle of what is done about them, in virtual time."""

import asyncio
from typing import Any

from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import NAME
from tests.unit.controllers.definitionreport.test_controller import ReportsApi, play
from tests.unit.controllers.fakeapi import DEFINITIONS
from tests.unit.core.diagnosis.builders import live_crd, seen


def test_nothing_is_kept_of_a_crd_that_is_deleted_while_it_is_reported() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        api.late = 1.0
        changed: dict[str, Any] = {"stored": ("v1", "v2"), "resourceVersion": "300", "generation": 2}
        api.objects[f"{DEFINITIONS}/{NAME}"] = live_crd(**changed)
        state.saw_definition(NAME, seen(**changed))
        await asyncio.sleep(0.5)
        state.saw_definition(NAME, None)
        await asyncio.sleep(10.0)
        assert api.reports._reported == {}

    play(people)


def test_nothing_is_kept_of_a_crd_that_is_deleted_while_it_is_assessed() -> None:
    async def people(state: ClusterState, api: ReportsApi) -> None:
        await asyncio.sleep(5.0)
        api.reports._assessor.order(NAME)
        await asyncio.sleep(0.005)
        state.saw_definition(NAME, None)
        await asyncio.sleep(10.0)
        assert api.reads[-1] == f"{DEFINITIONS}/{NAME}"
        assert api.reports._assessor._known == {}

    play(people)
