"""What the composer does on each event, in each state, in virtual time."""

import asyncio
import copy
from typing import Any

import pytest

from crdkeeper.core.composer.plan import ADOPT
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.composition.definition import OWNER
from tests.unit.controllers.compositeresourcedefinition.scene import CRD, NAME, OBJECTS, PATH, Server, play
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
OURS = ("True", "WatchingCompositeResource")
TWO = document(version(of=schema({**SPEC, "properties": {**SPEC["properties"], "more": {"type": "string"}}})))
BREAKING = document(version(of=schema({**SPEC, "required": ["engine", "more"]})))
INVALID = document(version(of=schema({"type": "array"})))
POLICIES = ["Protect", "Cascade", "Orphan"]


def established(server: Server, value: Any = None) -> None:
    """The definition, applied before, with its CRD."""
    server.make(value, finalizers=["crdkeeper.dev/composites"])
    made = accept(server.objects[PATH]).crd
    assert made is not None
    server.make_crd(made)


def foreign(server: Server) -> None:
    """A CRD of the name that somebody else made."""
    made = accept(document()).crd
    assert made is not None
    server.make_crd(made)


def fields(server: Server) -> Json:
    """The properties of spec in the CRD."""
    root = server.objects[CRD]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root["properties"]["spec"]["properties"]


async def rest() -> None:
    """Long enough for all that does not wait for a person."""
    await asyncio.sleep(30.0)


# Created and changed


def test_a_new_definition_gets_its_crd() -> None:
    async def people(server: Server) -> None:
        made = server.make()
        await rest()
        assert server.ready() == OURS
        assert server.held()
        assert server.objects[CRD]["metadata"]["annotations"] == {OWNER: made["metadata"]["uid"]}
        assert "ownerReferences" not in server.objects[CRD]["metadata"]

    play(people)


def test_the_finalizer_comes_before_the_crd() -> None:
    async def people(server: Server) -> None:
        server.make()
        await rest()
        writes = server.writes()
        assert writes.index(("PATCH", PATH)) < writes.index(("PATCH", CRD))

    play(people)


def test_a_change_is_applied() -> None:
    async def people(server: Server) -> None:
        server.make(TWO)
        await rest()
        assert "more" in fields(server)
        assert server.ready() == OURS

    play(people, begin=established)


def test_events_are_about_what_a_person_must_do() -> None:
    async def people(server: Server) -> None:
        server.make()
        await rest()
        assert server.ready() == OURS
        assert server.events == []
        server.make(INVALID)
        await rest()
        assert server.events == ["Invalid"]
        server.make()
        await rest()
        server.make_composites(1)
        server.delete()
        await rest()
        assert server.events == ["Invalid", "TerminatingCompositeResource"]

    play(people)


@pytest.mark.parametrize("composites", [0, 3])
def test_a_breaking_change(composites: int) -> None:
    async def people(server: Server) -> None:
        server.make_composites(composites)
        server.make(BREAKING)
        await rest()
        if not composites:
            assert server.ready() == OURS
            return
        assert server.ready() == ("False", "BreakingChanges")
        assert "more" not in fields(server)
        server.make(document())
        await rest()
        assert server.ready() == OURS

    play(people, begin=established)


def test_a_definition_that_becomes_invalid_leaves_the_crd_and_can_be_mended() -> None:
    async def people(server: Server) -> None:
        server.make(INVALID)
        await rest()
        assert server.condition("Accepted")[:2] == ("False", "Invalid")
        assert "engine" in fields(server)
        server.make(TWO)
        await rest()
        assert server.ready() == OURS

    play(people, begin=established)


def test_a_foreign_crd_is_left_alone_until_it_is_adopted_or_gone() -> None:
    async def people(server: Server) -> None:
        before = copy.deepcopy(server.objects[CRD])
        server.make()
        await rest()
        assert server.ready() == ("False", "NotOurs")
        assert server.objects[CRD] == before
        assert not server.held()
        server.make(annotations={ADOPT: "true"})
        await rest()
        assert server.ready() == OURS

    play(people, begin=foreign)


def test_a_foreign_crd_that_goes_is_replaced() -> None:
    async def people(server: Server) -> None:
        server.make()
        await rest()
        server.delete(CRD)
        await rest()
        assert server.ready() == OURS

    play(people, begin=foreign)


# The CRD behind the definition's back


def test_an_edit_is_put_back() -> None:
    async def people(server: Server) -> None:
        await rest()
        wanted = copy.deepcopy(server.objects[CRD]["spec"])
        server.objects[CRD]["spec"]["names"]["categories"] = []
        server._wrote(CRD)
        await rest()
        assert server.objects[CRD]["spec"] == wanted

    play(people, begin=established)


def test_a_crd_that_is_deleted_is_made_again() -> None:
    async def people(server: Server) -> None:
        await rest()
        before = server.objects[CRD]["metadata"]["uid"]
        server.delete(CRD)
        await rest()
        assert server.objects[CRD]["metadata"]["uid"] != before
        assert server.ready() == OURS

    play(people, begin=established)


def test_a_crd_that_another_makes_in_between_is_not_taken() -> None:
    """Between the read that found none and the write."""

    async def people(server: Server) -> None:
        async def another(method: str, path: str) -> None:
            if (method, path) == ("PATCH", CRD) and CRD not in server.objects:
                other = accept(TWO).crd
                assert other is not None
                server.make_crd(other)

        server.before = another
        server.make()
        await rest()
        assert server.ready() == ("False", "NotOurs")
        assert "more" in fields(server)
        assert "annotations" not in server.objects[CRD]["metadata"]

    play(people)


def test_a_crd_that_another_replaces_in_between_is_not_taken_and_not_deleted() -> None:
    async def people(server: Server) -> None:
        await rest()

        async def another(method: str, path: str) -> None:
            if path == CRD and method in ("PATCH", "DELETE"):
                server.before = _nothing
                server.forced_out(CRD)
                foreign(server)

        server.before = another
        server.make(TWO)
        await rest()
        assert server.ready() == ("False", "NotOurs")
        assert "more" not in fields(server)

    play(people, begin=established)


async def _nothing(_: str, __: str) -> None:
    pass


def test_a_crd_that_is_replaced_before_it_is_deleted_stays() -> None:
    async def people(server: Server) -> None:
        await rest()

        async def another(method: str, path: str) -> None:
            if (method, path) == ("DELETE", CRD):
                server.before = _nothing
                server.forced_out(CRD)
                foreign(server)
                server.make_composites(1)

        server.before = another
        server.delete()
        await rest()
        assert PATH not in server.objects
        assert CRD in server.objects
        assert server.lost == []

    play(people, begin=established)


# Deleted


def with_policy(policy: str, composites: int, **metadata: Any) -> Any:
    def begin(server: Server) -> None:
        server.make(document(deletion=policy), finalizers=["crdkeeper.dev/composites"])
        made = accept(server.objects[PATH]).crd
        assert made is not None
        server.make_crd(made)
        server.make_composites(composites, **metadata)

    return begin


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("composites", [0, 2, 1_203])
def test_deletion(policy: str, composites: int) -> None:
    async def people(server: Server) -> None:
        server.delete()
        await asyncio.sleep(120.0)
        protected = policy == "Protect" and composites
        assert (PATH in server.objects) == bool(protected)
        assert (CRD in server.objects) == bool(protected or policy == "Orphan")
        assert len(server.composites()) == (0 if policy == "Cascade" else composites)
        assert server.lost == []
        if policy == "Orphan":
            assert OWNER not in server.objects[CRD]["metadata"]["annotations"]
        if protected:
            said = server.condition("Established")
            assert said[:2] == ("False", "TerminatingCompositeResource")
            assert f"{composites:,} composites" in said[2]
            for each in [each for each in server.objects if each.startswith(OBJECTS)]:
                server.delete(each)
            await rest()
            assert PATH not in server.objects
            assert CRD not in server.objects

    play(people, begin=with_policy(policy, composites))


def test_cascade_goes_past_composites_that_are_held() -> None:
    async def people(server: Server) -> None:
        held = [each["metadata"]["name"] for each in server.composites()]
        server.make_composites(100)
        server.delete()
        await rest()
        assert [each["metadata"]["name"] for each in server.composites()] == held
        assert CRD in server.objects
        for name in held:
            path = f"{OBJECTS}/{name}"
            server.objects[path]["metadata"]["finalizers"] = []
            server._collect(path)
        await rest()
        assert PATH not in server.objects

    play(people, begin=with_policy("Cascade", 600, finalizers=["example.com/held"]))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_can_be_changed_while_it_waits(policy: str) -> None:
    async def people(server: Server) -> None:
        server.delete()
        await rest()
        assert PATH in server.objects
        server.make(document(deletion=policy))
        await rest()
        assert (PATH in server.objects) == (policy == "Protect")
        assert server.lost == []

    play(people, begin=with_policy("Protect", 2))


def test_a_definition_that_was_never_applied_goes_at_once() -> None:
    async def people(server: Server) -> None:
        server.make(INVALID)
        await rest()
        server.delete()
        await rest()
        assert PATH not in server.objects
        assert server.writes()[-1][1] != CRD

    play(people)


def test_a_definition_that_is_created_again_takes_nothing_from_its_namesake() -> None:
    """Somebody removes the finalizers of the first one by force."""

    async def people(server: Server) -> None:
        await rest()
        server.make_composites(2)
        server.forced_out()
        server.make()
        await rest()
        assert server.ready() == ("False", "NotOurs")
        assert len(server.composites()) == 2
        server.delete()
        await rest()
        assert PATH not in server.objects
        assert CRD in server.objects

    play(people, begin=established)


def test_the_status_of_a_definition_that_is_created_again_does_not_come_from_the_first() -> None:
    async def people(server: Server) -> None:
        async def another(method: str, path: str) -> None:
            if (method, path) == ("PATCH", f"{PATH}/status"):
                server.before = _nothing
                server.forced_out()
                server.make(INVALID)

        server.before = another
        server.make(TWO)
        await rest()
        assert server.condition("Accepted")[:2] == ("False", "Invalid")

    play(people, begin=established)


# At rest


def test_nothing_is_written_twice() -> None:
    async def people(server: Server) -> None:
        server.make()
        await rest()
        version_of = {path: server.objects[path]["metadata"]["resourceVersion"] for path in (PATH, CRD)}
        await asyncio.sleep(3_600.0)
        assert {
            path: server.objects[path]["metadata"]["resourceVersion"] for path in version_of
        } == version_of

    play(people)


def test_the_other_name_is_of_no_interest() -> None:
    async def people(server: Server) -> None:
        await rest()
        since = len(server.requests)
        server.state.saw_definition(f"other-{NAME}", None)
        await asyncio.sleep(1.0)
        assert server.requests[since:] == []

    play(people, begin=established)
