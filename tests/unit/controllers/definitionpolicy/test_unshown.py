"""Looks at several CRDs of a policy while its status is being written, in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import Answer, Unreachable
from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import NAME
from tests.unit.controllers.definitionpolicy.scene import GONE, STATUS, Cluster, play
from tests.unit.core.diagnosis.builders import seen

OTHER = "others.example.com"
NAMES = {"plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList"}


class Two(Cluster):
    """Objects in deletion also of another CRD, and an API server that may be slow."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[dict[str, Any]] = []
        self.listing = 0.0
        """Seconds that a list of the other CRD's objects takes."""
        self.writing = 0.0
        """Seconds that a write of the policy's status takes, from its beginning."""
        self.fails = False
        """Whether writes of the policy's status that begin now are without an answer."""
        self.due_in_status: list[int] = []
        """At each release, how many objects the stored status tells to be due."""

    async def request(self, method: str, path: str, *args: Any, **others: Any) -> dict[str, Any]:
        plain = path.partition("?")[0]
        if method == "GET" and plain.endswith("/others"):
            items = [{"metadata": {**each}} for each in self.others]
            await asyncio.sleep(self.listing)
            return {"metadata": {"resourceVersion": "1"}, "items": items}
        if method == "PATCH" and plain == STATUS:
            if self.fails:
                raise Unreachable("no answer")
            await asyncio.sleep(self.writing)
        return await super().request(method, path, *args, **others)

    async def send(self, method: str, path: str, *, content: bytes, **others: Any) -> Answer:
        standings = self.written[STATUS]["status"].get("finalizers", [])
        self.due_in_status.append(sum(each.get("due", 0) for each in standings))
        return await super().send(method, path, content=content, **others)


def _add_other(state: ClusterState) -> None:
    state.saw_definition(OTHER, seen(name=OTHER, uid=OTHER, spec={"names": NAMES}, accepted=NAMES))


def test_a_look_that_came_while_status_was_written_is_not_shown_yet() -> None:
    async def people(state: ClusterState, api: Two) -> None:
        finalizers = api.controller.finalizers
        _add_other(state)
        await finalizers._reconcile(NAME)
        await finalizers._reconcile(OTHER)
        api.hold("b", GONE)
        api.others.append(api.held.pop("b"))
        api.hold("a", GONE)
        api.fails = True
        with pytest.raises(Unreachable):
            await finalizers._reconcile(NAME)
        api.fails, api.writing = False, 20.0
        writing = asyncio.create_task(finalizers._reconcile(OTHER))
        await asyncio.sleep(10.0)
        api.fails = True
        looking = asyncio.create_task(finalizers._reconcile(NAME))
        await writing
        with pytest.raises(Unreachable):
            await looking
        with pytest.raises(Unreachable):
            await finalizers._reconcile(NAME)
        assert not api.patched
        api.fails = False
        await finalizers._reconcile(NAME)
        assert api.patched == ["a"]

    play(people, cluster=Two, queues=False)


def test_a_status_that_shows_no_figures_for_lack_of_a_look_has_shown_none() -> None:
    async def people(state: ClusterState, api: Two) -> None:
        await asyncio.sleep(10.0)
        api.hold("a", GONE)
        api.controller.finalizers.queue.add(NAME)
        await asyncio.sleep(4.5)
        changed = state.of(DefinitionPolicy)["p"].model_copy(deep=True)
        changed.metadata.generation += 1
        api.writing, api.listing = 20.0, 25.0
        state.saw(DefinitionPolicy, "p", changed)
        # The first CRD's objects are due now, and its worker waits for its turn to write that.
        await asyncio.sleep(5.0)
        _add_other(state)
        await asyncio.sleep(120.0)
        assert (api.patched, api.due_in_status) == (["a"], [1])

    play(people, cluster=Two)
