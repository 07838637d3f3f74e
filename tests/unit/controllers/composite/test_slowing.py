"""What is slowed down of an object that has to be written again and again, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import Answer, ApiError, Client
from crdkeeper.controllers.composite.acting import Acting
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.controllers.composite.room import ObjectMemory
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite, configuration
from crdkeeper.core.composites.plan import Apply
from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.namespaces import Identity
from tests import virtualtime

OF = Composite("example.com/v1", "Database", "shop", "orders", "u1", 1, (), False, False, frozenset())
IMMUTABLE = {
    "reason": "Invalid",
    "details": {"causes": [{"reason": "FieldValueInvalid", "message": "field is immutable"}]},
}


def identity_of(name: str) -> Identity:
    return Identity("", "ConfigMap", "shop", name)


class Objects:
    """An API server that has ConfigMaps. It does not say who set which field."""

    def __init__(self) -> None:
        self.live: dict[str, dict[str, Any]] = {}
        self.immutable = False
        self.hanging = False
        """Whether a finalizer holds what is deleted."""
        self.made = 0
        self.deleted = 0

    async def send(self, method: str, path: str, *, content: bytes = b"{}", **_: Any) -> Answer:
        body: dict[str, Any] = loads(content)
        name = body["metadata"]["name"]
        before = self.live.get(name)
        if method == "POST":
            return Answer(409, dumps({"reason": "AlreadyExists"}))
        if self.immutable and before is not None:
            return Answer(422, dumps(IMMUTABLE))
        self.made += 1
        uid = before["metadata"]["uid"] if before is not None else f"{name}-{self.made}"
        body["metadata"] |= {"uid": uid, "resourceVersion": str(self.made)}
        self.live[name] = body
        return Answer(200, dumps(body))

    async def request(self, method: str, path: str, _: Any = None, **__: Any) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        if method != "DELETE" or name not in self.live:
            raise ApiError(404, {})
        self.deleted += 1
        if self.hanging:
            self.live[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            return self.live[name]
        del self.live[name]
        return {"kind": "Status"}


class Passes:
    """Passes over one composite, of which the composer remembers what it does."""

    def __init__(self, server: Objects) -> None:
        self.server = server
        self.failures = Failures()
        self.acting = self.begin()

    def begin(self) -> Acting:
        """Begin another pass."""
        client = cast(Client, self.server)
        share = ObjectMemory().share("a")
        settled = self.failures.settled(OF.uid)
        gathering = Gathering(client, KindPaths(client, tuple), OF, settled, share, KnownRights(client))
        gathering._kinds["", "ConfigMap"] = ServedKind("v1", "ConfigMap", "configmaps", namespaced=True)
        for each in self.server.live.values():
            gathering.took(each)
        self.acting = Acting(client, OF, gathering, self.failures, lambda: False, PassReport())
        self.acting.listed = [*gathering.found.objects]
        return self.acting

    async def apply(self, name: str, value: object, *, recreate: bool = False) -> Verdict | None:
        """Apply an object; returns why it failed."""
        identity = identity_of(name)
        metadata = {"name": name, "namespace": "shop"}
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": str(value)}}
        made = configuration(wanted, OF, name, orphan=False)
        live = self.acting._gathering.found.objects.get(identity)
        await self.acting.apply([Apply(Entry(identity, "v1", name), made, live, False, recreate)])
        return self.acting.failed.get(identity)


def play(people: Callable[[Passes], Awaitable[None]]) -> None:
    """Play a scene in virtual time."""

    async def main() -> None:
        await people(Passes(Objects()))

    virtualtime.run(main())


async def recreate(passes: Passes, value: object) -> Verdict | None:
    """A pass in which an object becomes what it cannot become."""
    listed = passes.begin().listed
    refused = await passes.apply("a", value, recreate=True)
    if refused is not None:
        return refused
    if passes.server.hanging:
        # Until the finalizer is taken off, which another pass sees.
        del passes.server.live["a"]
        passes.begin().listed = listed
    return await passes.apply("a", value, recreate=True)


def test_what_is_recreated_is_never_left_deleted() -> None:
    async def people(passes: Passes) -> None:
        await passes.apply("a", 0)
        passes.server.immutable = True
        for number in range(1, 16):
            passes.server.hanging = number % 2 == 0
            assert await recreate(passes, number) is None
            assert passes.server.live["a"]["data"] == {"v": str(number)}
        assert passes.server.deleted == 15
        # What others delete then is nothing that the composer did.
        for number in range(4):
            listed = passes.begin().listed
            passes.server.live.clear()
            passes.begin().listed = listed
            vanished = await passes.apply("a", 15)
            assert (vanished is None) == (number < 3)

    play(people)


def test_what_is_recreated_all_the_time_is_slowed_down_while_it_exists() -> None:
    async def people(passes: Passes) -> None:
        await passes.apply("a", 0)
        passes.server.immutable = True
        for number in range(1, 60):
            slowed = await recreate(passes, number)
            assert (slowed is None) == (number <= 20 or number == 35)
            assert slowed is None or slowed.reason is reasons.SLOWED_DOWN
            assert "a" in passes.server.live
            if number == 34:
                await asyncio.sleep(5.0)
        told = passes.failures.flaps.verdict(OF.uid, virtualtime.now())
        assert told is not None and told.reason is reasons.CHANGING
        assert "ConfigMap shop/a (data.v) changes all the time" in told.message

    play(people)


def test_what_others_change_for_good_is_slowed_down_while_it_exists() -> None:
    async def people(passes: Passes) -> None:
        await passes.apply("a", 0)
        passes.server.immutable = True
        for number in range(5):
            passes.server.live["a"]["data"] = {"v": "theirs"}
            slowed = await recreate(passes, 0)
            assert (slowed is None) == (number < 3)
            assert "a" in passes.server.live
        told = passes.failures.flaps.verdict(OF.uid, virtualtime.now())
        assert told is not None and told.reason is reasons.OVERWRITTEN
        assert "ConfigMap shop/a (data.v) is changed again and again, and has to be created" in told.message

    play(people)


def test_later_waves_change_with_the_first_one() -> None:
    async def people(passes: Passes) -> None:
        await passes.apply("first", 0)
        await passes.apply("second", 0)
        for number in range(1, 21):
            passes.begin()
            assert await passes.apply("first", number) is None
        passes.begin()
        slowed = await passes.apply("first", 21)
        assert slowed is not None and slowed.reason is reasons.SLOWED_DOWN
        await asyncio.sleep(5.0)
        passes.begin()
        assert await passes.apply("first", 22) is None
        assert await passes.apply("second", 1) is None
        assert passes.server.live["second"]["data"] == {"v": "1"}
        # What follows from its own changes would take a whole pass.
        assert await passes.apply("first", 23) is not None
        assert await passes.apply("second", 2) is not None

    play(people)


def test_what_admission_changes_is_remembered_no_longer_than_its_composite() -> None:
    async def people(passes: Passes) -> None:
        await passes.apply("a", 0)
        assert list(passes.failures.settled(OF.uid)) == ["a-1"]
        passes.failures.forget(OF.uid)
        assert not passes.failures.settled(OF.uid)

    play(people)


def test_nor_than_objects_that_others_delete() -> None:
    async def people(passes: Passes) -> None:
        await passes.apply("kept", 0)
        for _ in range(10):
            passes.server.live.pop("a", None)
            passes.begin()
            await passes.apply("a", 0)
        assert list(passes.failures.settled(OF.uid)) == ["kept-1", "a-11"]

    play(people)


def test_a_composite_of_which_nothing_is_remembered_takes_no_memory() -> None:
    async def people(passes: Passes) -> None:
        passes.failures.keep(OF, ())
        assert not passes.failures._settled

    play(people)
