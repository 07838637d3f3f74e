"""Revisions are compiled once for the schemas that there are."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from crdkeeper.cluster.resources.compositions import REVISIONS
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.composite import compiling
from crdkeeper.controllers.composite.compiling import CompiledRevisions
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.revisions.content import NewRevision, content_of, seen_revision, wanted
from tests import virtualtime
from tests.unit.controllers.composition.test_controller import CRD, Server
from tests.unit.core.revisions.revisions import composition


def test_an_error_in_crdkeeper_is_met_once(monkeypatch: Any) -> None:
    met: list[str] = []

    def fails(*_: Any) -> None:
        met.append("x")
        raise RecursionError("secret text")

    async def main() -> None:
        server = Server()
        new = wanted(content_of(composition("a")), [], 0)
        assert isinstance(new, NewRevision)
        made = new.to_object()
        made["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
        server.objects[f"{REVISIONS}/small-1"] = made
        compiled = CompiledRevisions(cast(Client, server), lambda: ())
        for _ in range(3):
            found = await compiled.of(seen_revision(made))
            assert isinstance(found, Verdict)
            assert "RecursionError" in found.message
            assert "secret" not in found.message
        assert met == ["x"]

    monkeypatch.setattr(compiling, "compile_composition", fails)
    virtualtime.run(main())


def test_a_crd_that_changes_while_a_revision_is_compiled_has_it_compiled_again(monkeypatch: Any) -> None:
    server, met = Server(), list[int]()
    new = wanted(content_of(composition("a")), [], 0)
    assert isinstance(new, NewRevision)
    made = new.to_object()
    made["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    server.objects[f"{REVISIONS}/small-1"] = made
    revision = seen_revision(made)

    def changing(*_: Any) -> None:
        crd = server.objects[CRD]
        met.append(crd["metadata"]["generation"])
        if len(met) == 1:
            server.objects[CRD] = {**crd, "metadata": {**crd["metadata"], "generation": 2}}
            compiled.expire(revision)
        raise RecursionError

    monkeypatch.setattr(compiling, "compile_composition", changing)
    compiled = CompiledRevisions(cast(Client, server), lambda: ())

    async def main() -> None:
        for _ in range(3):
            await compiled.of(revision)
        assert met == [1, 2]

    virtualtime.run(main())


def test_one_that_is_being_compiled_is_not_forgotten(monkeypatch: Any) -> None:
    server, compilations = Server(), 0
    revisions = []
    for name in ("small-1", "small-2"):
        new = wanted(content_of(composition("a")), [], 0)
        assert isinstance(new, NewRevision)
        made = new.to_object()
        made["metadata"] |= {"name": name, "uid": name, "resourceVersion": "1", "generation": 1}
        server.objects[f"{REVISIONS}/{name}"] = made
        revisions.append(seen_revision(made))
    first, second = revisions
    slow, held = asyncio.Event(), False

    async def read(client: Client, name: str) -> Any:
        nonlocal compilations
        if name == "small-1":
            compilations += 1
            if held:
                await slow.wait()
        return server.objects[f"{REVISIONS}/{name}"]

    def fails(*_: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(compiling, "get_composition_revision", read)
    monkeypatch.setattr(compiling, "compile_composition", fails)
    monkeypatch.setattr(compiling, "_MOST", 1)

    async def main() -> None:
        nonlocal held
        compiled = CompiledRevisions(cast(Client, server), lambda: ())
        await compiled.of(first)
        compiled.expire(first)
        held = True
        again = asyncio.create_task(compiled.of(first))
        await asyncio.sleep(1.0)
        await compiled.of(second)
        compiled.expire(first)
        held = False
        slow.set()
        await again
        await compiled.of(first)
        assert compilations == 3

    virtualtime.run(main())


def test_one_that_was_forgotten_between_two_readers_is_forgotten_again(monkeypatch: Any) -> None:
    new = wanted(content_of(composition("a")), [], 0)
    assert isinstance(new, NewRevision)
    made = new.to_object()
    made["metadata"] |= {"uid": "small-1", "resourceVersion": "1", "generation": 1}
    first = seen_revision(made)
    second, third = (replace(first, name=name, uid=name) for name in ("small-2", "small-3"))
    slow: dict[str, asyncio.Event] = {}

    async def read(client: Client, name: str) -> None:
        if name in slow:
            await slow[name].wait()

    monkeypatch.setattr(compiling, "get_composition_revision", read)
    monkeypatch.setattr(compiling, "_MOST", 1)

    async def main() -> None:
        compiled = CompiledRevisions(cast(Client, Server()), lambda: ())
        await compiled.of(first)
        slow.update({first.name: asyncio.Event(), second.name: asyncio.Event()})
        async with asyncio.TaskGroup() as group:
            ended, *_ = (group.create_task(compiled.of(each)) for each in (first, first, second))
            await asyncio.sleep(1.0)
            # In one step of the loop: the next reader has its turn, and does not hold the lock yet.
            ended.cancel()
            slow[second.name].set()
            await asyncio.sleep(1.0)
            slow[first.name].set()
        assert isinstance(await compiled.of(third), Verdict)

    virtualtime.run(main())
