"""When a policy's status is written, while writes take long and the watch is late, in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import NAME, policy
from tests.unit.controllers.definitionpolicy.scene import GONE, POLICIES, STATUS, Cluster, play, rule
from tests.unit.core.diagnosis.builders import seen

EVENTS = "/apis/events.k8s.io"
OTHER = f"{POLICIES}/other/status"
LONG = rule(after="999h")
"""Nothing is released: the objects are only counted."""


class Slow(Cluster):
    """An API server whose writes of a status take effect when they end; nobody watches."""

    def __init__(self) -> None:
        super().__init__()
        self.takes: list[float] = []
        """Seconds that the next writes of the policy's status take; the last one for all that follow."""
        self.lost: Exception | None = None
        """Instead of the answer to writes that are stored."""
        self.writing: dict[str, int] = {}
        self.most = 0
        self.version = 10

    async def request(self, method: str, path: str, *args: Any, **others: Any) -> dict[str, Any]:
        plain = path.partition("?")[0]
        if method != "PATCH" or not plain.startswith(POLICIES):
            return await super().request(method, path, *args, **others)
        self.writing[plain] = self.writing.get(plain, 0) + 1
        self.most = max(self.most, self.writing[plain])
        if plain == STATUS and self.takes:
            await asyncio.sleep(self.takes.pop(0) if len(self.takes) > 1 else self.takes[0])
        self.writing[plain] -= 1
        answer = await super().request(method, path, *args, **others)
        if self.lost is not None:
            raise self.lost
        self.version += 1
        return {"metadata": {**answer["metadata"], "resourceVersion": str(self.version)}}

    def seen(self) -> DefinitionPolicy:
        """The policy as it is stored now."""
        found = policy("p", finalizers=[LONG]).to_object()
        found["metadata"]["resourceVersion"] = str(self.version)
        return DefinitionPolicy.model_validate({**found, "status": self.written[STATUS]["status"]})

    def held_by_status(self) -> int:
        """How many objects the stored status tells of."""
        (standing,) = self.written[STATUS]["status"]["finalizers"]
        found: int = standing.get("held", 0)
        return found


def test_the_writes_of_one_policy_do_not_overtake_each_other() -> None:
    async def people(_: ClusterState, api: Slow) -> None:
        api.takes = [0.0, 90.0, 0.0]
        await asyncio.sleep(2.0)
        api.hold("a", GONE)
        await asyncio.sleep(60.0)
        assert api.writing[STATUS] == 1
        api.hold("b", GONE)
        await asyncio.sleep(300.0)
        assert (api.held_by_status(), api.most) == (2, 1)

    play(people, LONG, cluster=Slow)


def test_a_slow_write_of_one_policy_keeps_no_other() -> None:
    async def people(state: ClusterState, api: Slow) -> None:
        await asyncio.sleep(2.0)
        api.takes = [1000.0]
        api.hold("a", GONE)
        await asyncio.sleep(70.0)
        assert api.writing[STATUS] == 1
        state.saw(DefinitionPolicy, "p", policy("p", finalizers=[LONG]))
        await asyncio.sleep(1.0)
        state.saw(DefinitionPolicy, "other", policy("other", created=1))
        await asyncio.sleep(1.0)
        assert api.writing[STATUS] == 1
        assert api.writes("PATCH", OTHER) == 1

    play(people, LONG, cluster=Slow)


def test_the_worker_of_all_policies_does_not_wait_behind_the_next_in_the_line() -> None:
    async def people(_: ClusterState, api: Slow) -> None:
        await asyncio.sleep(2.0)
        controller = api.controller
        api.takes = [1000.0]
        api.hold("a", GONE)
        async with controller._statuses.turn("p"):
            writing = asyncio.create_task(controller.finalizers._reconcile(NAME))
            await asyncio.sleep(1.0)
        # Nobody holds the turn at this moment: who waits for it has not run yet.
        async with asyncio.timeout(10.0):
            await controller._reconcile_policy("p")
        assert STATUS not in api.writing
        await asyncio.sleep(1.0)
        assert api.writing[STATUS] == 1
        await writing
        assert not controller._statuses.busy("p")

    play(people, LONG, cluster=Slow, queues=False)


@pytest.mark.parametrize("lost", [None, Unreachable("no answer"), ApiError(504, {"message": "timeout"})])
def test_a_status_is_taken_back_though_the_watch_has_not_shown_it(lost: Exception | None) -> None:
    async def people(state: ClusterState, api: Slow) -> None:
        await asyncio.sleep(5.0)
        state.saw(DefinitionPolicy, "p", api.seen())
        await asyncio.sleep(5.0)
        assert api.held_by_status() == 0
        api.lost = lost
        api.hold("a", GONE)
        for _ in range(100):
            await asyncio.sleep(1.0)
            if api.held_by_status() == 1:
                break
        api.lost = None
        del api.held["a"]
        await asyncio.sleep(100.0)
        assert api.held_by_status() == 0

    play(people, LONG, cluster=Slow)


def test_a_write_without_an_answer_makes_no_older_status_count() -> None:
    async def people(state: ClusterState, api: Slow) -> None:
        await asyncio.sleep(5.0)
        (ready,) = [each for each in api.written[STATUS]["status"]["conditions"] if each["type"] == "Ready"]
        assert (ready["reason"], api.writes("POST", EVENTS)) == ("InvalidFinalizers", 1)
        before = api.writes("PATCH", STATUS)
        api.lost = Unreachable("no answer")
        state.saw_definition("others.example.com", seen(name="others.example.com", uid="u2"))
        await asyncio.sleep(5.0)
        assert api.writes("PATCH", STATUS) > before
        api.lost = None
        await asyncio.sleep(100.0)
        assert api.written[STATUS]["status"]["selected"] == 2
        assert ready in api.written[STATUS]["status"]["conditions"]
        assert api.writes("POST", EVENTS) == 1

    play(people, {**rule(), "when": "object."}, cluster=Slow)


def test_what_the_watch_shows_counts_more_than_an_answer_from_before() -> None:
    async def people(_: ClusterState, api: Slow) -> None:
        statuses, known = api.controller._statuses, policy("p", finalizers=[LONG])
        await statuses.write(known, known.status.model_copy(update={"selected": 7}))
        api.lost = Unreachable("no answer")
        with pytest.raises(Unreachable):
            await statuses.write(known, known.status.model_copy(update={"selected": 8}))
        assert statuses.latest(known).selected == 7
        api.version += 1
        watched = api.seen()
        assert statuses.latest(watched).selected == 8
        # Another write may be stored after this one: only an answer says what is.
        assert not statuses.shows(watched, watched.status)

    play(people, cluster=Slow, queues=False)


def test_what_was_written_is_not_written_again_before_the_watch_shows_it() -> None:
    async def people(state: ClusterState, api: Slow) -> None:
        await asyncio.sleep(10.0)
        before = api.writes("PATCH", STATUS)
        for _ in range(10):
            state.saw(DefinitionPolicy, "p", policy("p", finalizers=[LONG]))
            await asyncio.sleep(5.0)
        assert api.writes("PATCH", STATUS) == before

    play(people, LONG, cluster=Slow)


def test_what_others_write_is_put_right() -> None:
    async def people(state: ClusterState, api: Slow) -> None:
        await asyncio.sleep(10.0)
        before = api.writes("PATCH", STATUS)
        api.version += 1
        changed = api.seen()
        changed.status.selected = 77
        state.saw(DefinitionPolicy, "p", changed)
        await asyncio.sleep(5.0)
        assert api.writes("PATCH", STATUS) == before + 1

    play(people, LONG, cluster=Slow)


def test_nothing_is_kept_of_policies_that_are_gone() -> None:
    async def people(state: ClusterState, api: Slow) -> None:
        await asyncio.sleep(2.0)
        for number in range(20):
            name = f"stranger{number}"
            state.saw(DefinitionPolicy, name, policy(name, created=1))
            await asyncio.sleep(0.6)
            state.saw(DefinitionPolicy, name, None)
        await asyncio.sleep(5.0)
        assert api.writes("PATCH", f"{POLICIES}/stranger") == 20
        assert list(api.controller._statuses._written) == ["p"]
        assert list(api.controller._statuses._turns) == []

    play(people, LONG, cluster=Slow)
