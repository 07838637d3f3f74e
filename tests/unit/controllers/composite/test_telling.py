"""Composites that cannot say what is wrong with them: what is said about their definition."""

import asyncio

from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import ApiError
from tests.unit.controllers.composite.scene import play, revision
from tests.unit.controllers.compositeresourcedefinition.scene import NAME, OBJECTS, Server


def refuse(server: Server, *composites: str) -> None:
    """The status of these composites is refused."""

    async def refused(method: str, path: str) -> None:
        name = path.partition("?")[0].removesuffix("/status").rpartition("/")[2]
        if method == "PATCH" and "/status" in path and (name in composites or not composites):
            raise ApiError(422, {"message": f"{name}: status.must: Required value"})

    server.before = refused


def told(server: Server) -> tuple[str, str] | None:
    verdict = server.state.uncomposed.get(NAME)
    return (verdict.reason.name, verdict.message) if verdict is not None else None


def names(server: Server) -> list[str]:
    return [each["metadata"]["name"] for each in server.composites()]


def test_a_status_that_is_refused_is_said_as_long_as_it_is() -> None:
    async def people(server: Server) -> None:
        first, second, *_ = names(server)
        refuse(server, first, second)
        heard: list[str] = []
        server.state.listen(lambda kind, name: heard.append(name) if kind == "composing" else None)
        await asyncio.sleep(300.0)
        said = told(server)
        assert said is not None and said[0] == "SomeNotComposed"
        assert "status.must: Required value" in said[1]
        # Others work meanwhile, which is no news, and neither is the second one.
        assert heard == [NAME]
        assert len(server.notes("CompositesNotComposed")) == 1
        await asyncio.sleep(400.0)
        assert len(server.notes("CompositesNotComposed")) == 2
        one, other = (first, second) if first in said[1] else (second, first)
        refuse(server, other)
        await asyncio.sleep(60.0)
        said = told(server)
        assert said is not None and other in said[1] and one not in said[1]
        refuse(server, "none")
        await asyncio.sleep(60.0)
        assert told(server) is None

    play(people, 5, revision())


def test_whether_all_composites_are_refused_is_said_anew_when_others_come_or_go() -> None:
    async def people(server: Server) -> None:
        refuse(server)
        await asyncio.sleep(60.0)
        said = told(server)
        assert said is not None and said[0] == "CompositesNotComposed"
        first, *_ = names(server)
        refuse(server, first)
        await asyncio.sleep(60.0)
        said = told(server)
        assert said is not None and said[0] == "SomeNotComposed" and f"such as default/{first}," in said[1]
        for each in names(server):
            if each != first:
                del server.objects[f"{OBJECTS}/{each}"]
        await asyncio.sleep(60.0)
        said = told(server)
        assert said is not None and said[0] == "CompositesNotComposed"
        del server.objects[f"{OBJECTS}/{first}"]
        await asyncio.sleep(60.0)
        assert told(server) is None

    play(people, 3, revision())


def test_nothing_is_said_of_a_composite_that_goes_while_it_is_refused() -> None:
    async def people(server: Server) -> None:
        first, *_ = names(server)

        async def refused_slowly(method: str, path: str) -> None:
            if method == "PATCH" and f"/{first}/status" in path:
                await asyncio.sleep(5.0)
                raise ApiError(422, {"message": f"{first}: status.must: Required value"})

        server.before = refused_slowly
        await asyncio.sleep(2.0)
        del server.objects[f"{OBJECTS}/{first}"]
        await asyncio.sleep(60.0)
        assert told(server) is None
        assert server.notes("CompositesNotComposed") == []

    play(people, 3, revision())


def test_revisions_that_may_not_be_listed_concern_all() -> None:
    async def people(server: Server) -> None:
        denied = True

        async def deny(_: str, path: str) -> None:
            if denied and path.startswith(REVISIONS):
                raise ApiError(403, {"message": "compositionrevisions is forbidden"})

        server.before = deny
        await asyncio.sleep(5.0)
        said = server.state.uncomposed[""]
        assert said.reason.name == "CompositionsUnknown"
        assert "compositionrevisions is forbidden. Apply manifests/composer" in said.message
        assert "resources: [compositionrevisions], verbs: [list, watch]" in said.message
        denied = False
        await asyncio.sleep(120.0)
        assert "" not in server.state.uncomposed

    play(people, 1, revision())
