"""What a Composition would change in one composite, from what dry runs have answered."""

import copy
from typing import Any

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.composites.inventory import listed_entries
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.composites.plan import FoundObjects, plan
from crdkeeper.core.composites.preview import PreviewedComposite, TriedWrite, previewed
from crdkeeper.core.composites.standing import PassOutcome
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.compiled import copying_secrets
from crdkeeper.core.templates.namespaces import Identity, identity_of
from crdkeeper.core.templates.rendering import render
from tests.unit.core.composites.scenes import MANAGER, Scene
from tests.unit.core.templates.compositions import config_map, server

Json = Any
Deeds = list[tuple[CompositeWrite, Identity]]


def result(scene: Scene, deeds: Deeds, tried: dict[Identity, TriedWrite]) -> PreviewedComposite:
    """The preview of a scene at the end of a pass that has done this."""
    found, listed, composite = FoundObjects(), listed_entries(scene.value), Composite.of(scene.value)
    scene._read(found, listed)
    rendering = render(scene.composition, scene.value, found.observed())
    planned = plan(composite, scene.composition, rendering, found, listed, scene.failed, MANAGER)
    copying = copying_secrets(scene.composition.resources)
    return previewed(composite, "r0", PassOutcome("r1", planned, found, rendering), deeds, tried, copying)


def previewed_of(scene: Scene, change: tuple[Json, ...]) -> PreviewedComposite:
    """What another composition would do, noted while it is done."""
    before = copy.deepcopy(scene.objects)
    scene.compose(*change)
    scene.done.clear()
    scene.run()
    writes = {
        "create": CompositeWrite.CREATED,
        "change": CompositeWrite.APPLIED,
        "delete": CompositeWrite.DELETED,
        "release": CompositeWrite.RELEASED,
    }
    identities = {each.name.removeprefix("orders-"): each for each in (*before, *scene.objects)}
    deeds = [
        (writes[what], identities[name]) for what, _, name in (each.partition(" ") for each in scene.done)
    ]
    tried = {of: TriedWrite(before.get(of), scene.objects.get(of)) for _, of in deeds}
    return result(scene, deeds, tried)


def changes(found: PreviewedComposite) -> Json:
    """By the names of objects or resources."""
    return {(each.name or each.resource).removeprefix("orders-"): each.change for each in found.objects}


def test_each_change_is_told_once() -> None:
    scene = Scene(server("a", text="1"), server("b"), server("c"), server("d", Deletion="Orphan"))
    scene.run()
    found = previewed_of(
        scene,
        (
            server("a", text="2"),
            server("b"),
            server("e", text="${a.spec.text}"),
        ),
    )
    assert changes(found) == {"a": "Changed", "c": "Deleted", "d": "Released", "e": "Created"}
    assert (found.unchanged, found.before) == (1, "r0")
    (a,) = (each for each in found.objects if each.name == "orders-a")
    assert [(each.path, each.before, each.after) for each in a.fields] == [("spec.text", '"1"', '"2"')]


def test_what_waits_is_told_and_holds_what_may_be_the_same_object() -> None:
    scene = Scene(server("a", text="1"), server("b"))
    scene.run()
    found = previewed_of(scene, (server("a", text="2"), server("c", text="${a.status.phase}")))
    assert changes(found) == {"a": "Changed", "b": "Held", "c": "Waiting"}
    said = {each.change: each.message for each in found.objects}
    assert said["Waiting"] == "waits for a.status"
    assert "once c is rendered" in str(said["Held"])


def test_a_write_that_changes_nothing_that_is_shown_is_no_change() -> None:
    scene = Scene(server("a", text="1"))
    scene.run()
    (identity,) = scene.objects
    live = scene.objects[identity]
    after = {**live, "metadata": {**live["metadata"], "resourceVersion": "9"}}
    found = result(scene, [(CompositeWrite.APPLIED, identity)], {identity: TriedWrite(live, after)})
    assert (found.objects, found.unchanged) == ([], 1)


def test_what_is_deleted_and_created_is_recreated() -> None:
    scene = Scene(server("a", text="1"))
    scene.run()
    (identity,) = scene.objects
    live = scene.objects[identity]
    live["spec"]["port"] = 80
    after = {**live, "spec": {"text": "2"}}
    deeds = [(CompositeWrite.DELETED, identity), (CompositeWrite.CREATED, identity)]
    found = result(scene, deeds, {identity: TriedWrite(live, after)})
    assert changes(found) == {"a": "Recreated"}
    assert [each.path for each in found.objects[0].fields] == ["spec.text"]


def test_what_is_refused_and_what_could_not_be_tried_are_told_apart() -> None:
    for reason, change in (
        (reasons.REFUSED, "Refused"),
        (reasons.CONFLICT, "Refused"),
        (reasons.FAILED, "Unknown"),
    ):
        scene = Scene(server("a", text="1"))
        scene.run()
        scene.compose(server("a", text="2"))
        (identity,) = scene.objects
        scene.failed = {identity: Verdict(reason, "the server's words")}
        found = result(scene, [], {})
        assert changes(found) == {"a": change}
        assert found.objects[0].message == "the server's words"


def test_uids_of_objects_that_do_not_exist_yet_are_named() -> None:
    scene = Scene(server("a"))
    scene.run()
    found = previewed_of(scene, (server("a"), server("b"), server("c", text="${b.metadata.uid}")))
    (c,) = (each for each in found.objects if each.name == "orders-c")
    assert [each.after for each in c.fields if each.path == "spec.text"] == [
        '"(uid of Server shop/orders-b)"'
    ]
    assert identity_of(scene.value) is not None


def test_values_of_what_may_copy_a_secret_are_not_shown_whatever_its_labels_say() -> None:
    password = config_map("password", value="s3cr3t")
    password["template"]["kind"] = "Secret"
    scene = Scene(password, server("a", text="1"), server("b", text="1"))
    scene.run()
    change = server("a", text="${password.data.value}"), server("b", text="2")
    found = previewed_of(scene, (password, *change))
    shown = {each.name: [(of.path, of.before, of.after) for of in each.fields] for each in found.objects}
    assert shown == {
        "orders-a": [("spec.text", "(not shown)", "(not shown)")],
        "orders-b": [("spec.text", '"1"', '"2"')],
    }
    (identity,) = (each for each in scene.objects if each.name == "orders-a")
    labels = {"crdkeeper.dev/composite-uid": "u1", "crdkeeper.dev/resource": "b"}
    after = scene.objects[identity]
    after["metadata"]["labels"], after["spec"]["text"] = labels, "s3cr3t"
    deeds = [(CompositeWrite.APPLIED, identity)]
    found = result(scene, deeds, {identity: TriedWrite({**after, "spec": {"text": "0ld"}}, after)})
    assert [(each.before, each.after) for of in found.objects for each in of.fields] == [
        ("(not shown)", "(not shown)")
    ]


def test_without_an_outcome_nothing_is_known() -> None:
    scene = Scene(server("a"))
    found = previewed(Composite.of(scene.value), "", None, [], {}, ())
    assert changes(found) == {"": "Unknown"}
