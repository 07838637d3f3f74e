"""One API that fails or does not answer leaves composites neither stuck nor silent, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.resources.kindpaths import KindPaths
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.composite.compiling import Compiled, CompiledRevisions
from crdkeeper.controllers.composite.watching import ObjectWatches
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites.ownership import FINALIZER
from crdkeeper.core.composites.reasons import FAILED
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions.content import NewRevision, content_of, seen_revision, wanted
from tests import virtualtime
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import OBJECTS, Server
from tests.unit.controllers.composition import test_controller as composition_scene
from tests.unit.core.revisions.revisions import composition

GROUP = "/apis/things.example.com/v1"
WIDGET = {
    "name": "b",
    "template": {"apiVersion": "things.example.com/v1", "kind": "Widget", "metadata": {"name": "b"}},
}
CORE = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["patch"]}]}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LISTED = {
    "name": "a",
    "wave": 0,
    "deletion": "Delete",
    "ready": True,
    "object": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"},
}
SERVED = {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["patch"]}]}


def with_widgets() -> dict[str, Any]:
    found = revision()
    return {**found, "spec": {**found["spec"], "resources": [WIDGET]}}


class Silent(composition_scene.Server):
    """An API server of which one API may fail, or hang."""

    def __init__(self) -> None:
        super().__init__()
        self.objects[GROUP] = SERVED
        self.hangs = False
        self.fails = False

    async def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = await super().request(method, path, body, **more)
        if path == GROUP and self.hangs:
            await asyncio.Event().wait()
        if path == GROUP and self.fails:
            raise ApiError(503, {"message": "no endpoints"})
        return answer

    def asked(self) -> int:
        """How often the API was asked for."""
        return sum(path == GROUP for _, path in self.requests)


def stored(server: Silent) -> Any:
    made = composition("a")
    made["spec"]["resources"].append(WIDGET)
    new = wanted(content_of(made), [], 0)
    assert isinstance(new, NewRevision)
    found = new.to_object()
    found["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    server.objects[f"{REVISIONS}/small-1"] = found
    return seen_revision(found)


def failing(*, hangs: bool) -> Callable[[str, str], Awaitable[None]]:
    """What lets the API of widgets hang, or fail."""

    async def trouble(_: str, path: str) -> None:
        if path == GROUP and hangs:
            await asyncio.Event().wait()
        if path == GROUP:
            raise ApiError(503, {"message": "no endpoints"})

    return trouble


@pytest.mark.parametrize("hangs", [True, False])
def test_what_is_known_of_a_revision_is_used_while_an_api_fails(hangs: bool) -> None:
    async def main() -> None:
        server = Silent()
        compiled = CompiledRevisions(cast(Client, server), tuple)
        used = stored(server)
        before = await compiled.of(used)
        assert isinstance(before, Compiled)
        server.hangs, server.fails = hangs, not hangs
        await asyncio.sleep(61.0)
        asked, began = server.asked(), virtualtime.now()
        assert [await compiled.of(used) for _ in range(100)] == [before] * 100
        assert virtualtime.now() - began <= 10.0
        doubt = compiled.doubt(used)
        assert doubt is not None
        assert doubt.reason is FAILED
        assert "small-1" in doubt.message
        await asyncio.sleep(16.0)
        began = virtualtime.now()
        first = asyncio.create_task(compiled.of(used))
        await asyncio.sleep(0.0)
        assert await compiled.of(used) == before
        assert virtualtime.now() == began
        await first
        assert server.asked() - asked <= 2
        server.hangs = server.fails = False
        await asyncio.sleep(31.0)
        assert await compiled.of(used) == before
        assert compiled.doubt(used) is None

    virtualtime.run(main())


@pytest.mark.parametrize("hangs", [True, False])
def test_composites_say_that_an_api_fails(hangs: bool) -> None:
    async def people(server: Server) -> None:
        server.before = failing(hangs=hangs)
        await asyncio.sleep(40.0)
        for each in server.composites():
            found = {of["type"]: of for of in each["status"]["conditions"]}
            assert found["Synced"]["reason"] == "Failed"
            assert "main-1" in found["Synced"]["message"]
        asked = sum(path == GROUP for _, path in server.requests)
        assert asked <= 4

    play(people, 20, with_widgets())


@pytest.mark.parametrize("hangs", [True, False])
def test_composites_without_objects_of_an_api_that_fails_go(hangs: bool) -> None:
    async def people(server: Server) -> None:
        server.before = failing(hangs=hangs)
        server.objects["/api/v1"] = CORE
        server.objects[CONFIG_MAPS] = {"metadata": {"resourceVersion": "1"}, "items": []}
        for each in server.composites():
            each["status"] = {"crdkeeper": {"resources": [LISTED]}}
            server.delete(f"{OBJECTS}/{each['metadata']['name']}")
        await asyncio.sleep(90.0)
        assert not server.composites()

    play(people, 3, renamed(with_widgets()), finalizers=[FINALIZER])


@pytest.mark.parametrize("hangs", [True, False])
def test_a_composite_whose_status_is_lost_waits_for_an_api_that_may_have_its_objects(hangs: bool) -> None:
    async def people(server: Server) -> None:
        server.before = failing(hangs=hangs)
        for each in server.composites():
            server.delete(f"{OBJECTS}/{each['metadata']['name']}")
        await asyncio.sleep(90.0)
        for each in server.composites():
            found = {of["type"]: of for of in each["status"]["conditions"]}
            assert found["Synced"]["reason"] == "Failed"
            assert "Widget" in found["Synced"]["message"]
        assert len(server.composites()) == 3
        server.before = nothing
        server.objects[GROUP] = SERVED
        server.objects[f"{GROUP}/namespaces/default/widgets"] = {
            "metadata": {"resourceVersion": "1"},
            "items": [],
        }
        # Each rests for three times as long as its look has hung.
        await asyncio.sleep(120.0)
        assert not server.composites()

    async def nothing(_: str, __: str) -> None:
        """All is well."""

    play(people, 3, renamed(with_widgets()), finalizers=[FINALIZER])


def renamed(found: dict[str, Any]) -> dict[str, Any]:
    """Of a Composition that is gone."""
    gone = {**found, "spec": {**found["spec"], "revision": 2}}
    return {**gone, "metadata": {**gone["metadata"], "name": "old-1", "uid": "o"}}


def test_a_kind_that_was_served_keeps_its_path_while_its_api_fails() -> None:
    async def main() -> None:
        server = Silent()
        paths = KindPaths(cast(Client, server), tuple)
        known = await paths.find("things.example.com/v1", "Widget")
        assert known is not None
        server.fails = True
        await asyncio.sleep(61.0)
        asked = server.asked()
        for _ in range(100):
            assert await paths.find("things.example.com/v1", "Widget") == known
            with pytest.raises(ApiError):
                await paths.find("things.example.com/v1", "Gadget")
        assert server.asked() - asked == 1
        server.fails = False
        await asyncio.sleep(10.0)
        assert await paths.find("things.example.com/v1", "Gadget") is None

    virtualtime.run(main())


def test_a_kind_that_cannot_be_found_does_not_keep_others_from_being_watched() -> None:
    async def main() -> None:
        server = Silent()
        server.fails = True
        server.objects["/api/v1"] = CORE
        client = cast(Client, server)
        paths = KindPaths(client, tuple)
        watches = ObjectWatches(client, paths, KnownRights(client), lambda uid, token: None)
        widget, config_map = ("things.example.com/v1", "Widget"), ("v1", "ConfigMap")
        async with asyncio.TaskGroup() as group:
            watches.begin(group)
            await watches.keep(frozenset((widget, config_map)))
            assert watches._running.keys() == {config_map}
            assert watches.blind(frozenset((widget,)))
            server.fails = False
            await asyncio.sleep(10.0)
            await watches.keep(frozenset((widget,)))
            assert watches._running.keys() == {config_map, widget}
            for each in watches._running.values():
                each.cancel()

    virtualtime.run(main())


def test_a_doubted_revision_never_compiled_is_a_failure() -> None:
    async def main() -> None:
        server = Silent()
        server.fails = True
        compiled = CompiledRevisions(cast(Client, server), tuple)
        found = await compiled.of(stored(server))
        assert isinstance(found, Verdict)
        assert found.reason is FAILED

    virtualtime.run(main())
