"""Looks at several CRDs of a policy while its status is being written, in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import Unreachable
from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import NAME
from tests.unit.controllers.definitionpolicy.scene import GONE, Cluster, play
from tests.unit.core.diagnosis.builders import seen

OTHER = "others.example.com"


class Two(Cluster):
    """Objects in deletion also of another CRD."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[dict[str, Any]] = []

    async def request(self, method: str, path: str, *args: Any, **others: Any) -> dict[str, Any]:
        if "/others" in path and method == "GET":
            items = [{"metadata": each} for each in self.others]
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        return await super().request(method, path, *args, **others)


def test_a_look_that_came_while_status_was_written_is_not_shown_yet() -> None:
    async def people(state: ClusterState, api: Two) -> None:
        finalizers = api.controller.finalizers
        written, fails = asyncio.Event(), False

        async def publish(_: str) -> None:
            if fails:
                raise Unreachable("no answer")
            await written.wait()

        finalizers._publish = publish
        written.set()
        state.saw_definition(OTHER, seen(name=OTHER, uid=OTHER, plural="others"))
        await finalizers._reconcile(NAME)
        await finalizers._reconcile(OTHER)
        api.hold("b", GONE)
        api.others.append(api.held.pop("b"))
        api.hold("a", GONE)
        fails = True
        with pytest.raises(Unreachable):
            await finalizers._reconcile(NAME)
        written.clear()
        fails = False
        writing = asyncio.create_task(finalizers._reconcile(OTHER))
        await asyncio.sleep(10.0)
        fails = True
        with pytest.raises(Unreachable):
            await finalizers._reconcile(NAME)
        written.set()
        await asyncio.sleep(0.0)
        assert not api.patched
        writing.cancel()
        with pytest.raises(Unreachable):
            await finalizers._reconcile(NAME)
        assert not api.patched

    play(people, cluster=Two, queues=False)
