"""A composite as a tree: what is known of each object, whoever has written the status."""

import copy
from collections.abc import Mapping
from typing import Any

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import listed_entries
from crdkeeper.core.composites.ownership import Composite
from crdkeeper.core.composites.plan import FoundObjects, plan, plan_deletion
from crdkeeper.core.composites.standing import PassOutcome
from crdkeeper.core.composites.tree import TracedComposite, traced
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendering import render
from tests.unit.core.composites.scenes import MANAGER, Scene
from tests.unit.core.templates.compositions import server

Json = Any


def tree(
    scene: Scene, *, known: bool = True, composition: str = "main", unread: Mapping[Identity, Verdict] = {}
) -> TracedComposite:
    """The tree of a scene as it is now; nothing is done."""
    found = FoundObjects(unreadable=dict(scene.unreadable), unread=dict(unread))
    listed = listed_entries(scene.value)
    composite = Composite.of(scene.value)
    scene._read(found, listed)
    while True:
        rendering = None
        if composite.deleting or not known:
            planned = plan_deletion(found, listed, {})
        else:
            rendering = render(scene.composition, scene.value, found.observed())
            planned = plan(composite, scene.composition, rendering, found, listed, {}, MANAGER)
        unknown = {each.identity for each in planned.inventory if not found.knows(each.identity)}
        if not planned.looks | unknown:
            return traced(scene.value, composition, PassOutcome("r1", planned, found, rendering), ())
        scene._look(found, planned.looks | unknown)


def shown(found: TracedComposite) -> Json:
    """The names of resources with their states, and those of their objects."""
    return {
        each.name: (each.state, *((of.name.removeprefix("orders-"), str(of.state)) for of in each.objects))
        for each in found.resources
    }


def test_each_resource_is_shown_with_its_objects_in_order() -> None:
    scene = Scene(
        server("b", text="${a.metadata.name}"),
        server("a", ReadyWhen=["${a.status.ready == 1}"]),
        server("off", IncludeWhen=["${composite.spec.replicas > 5}"]),
        server("later", text="${a.status.phase}"),
    )
    scene.run()
    found = tree(scene)
    assert shown(found) == {
        "a": ("Rendered", ("a", "NotReady")),
        "b": ("Waiting",),
        "off": ("Excluded",),
        "later": ("Waiting",),
    }
    assert [each.name for each in found.resources] == ["a", "off", "b", "later"]
    said = {each.name: each.message or "" for each in found.resources}
    assert said["b"].startswith("waits for a to be ready")
    assert "includeWhen" in said["off"]
    assert not found.ready
    assert found.complete


def test_what_has_to_go_and_what_waits_for_a_finalizer_is_told() -> None:
    scene = Scene(server("a"), server("b", text="${a.metadata.name}"), server("c", Deletion="Orphan"))
    scene.run()
    scene.compose(server("a"))
    assert shown(tree(scene)) == {
        "a": ("Rendered", ("a", "Ready")),
        "c": ("GivenUp", ("c", "ToDelete")),
        "b": ("GivenUp", ("b", "ToDelete")),
    }
    scene.held = {"b"}
    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.run()
    found = tree(scene)
    (b,) = (each for part in found.resources for each in part.objects if each.name == "orders-b")
    assert (b.state, b.deletion_timestamp, b.finalizers) == (
        "Deleting",
        "2026-01-01T00:00:00Z",
        ["example.com/x"],
    )
    (a,) = (each for part in found.resources for each in part.objects if each.name == "orders-a")
    assert a.state == "ToDelete"
    assert not found.ready


def test_what_cannot_be_read_is_not_called_absent() -> None:
    scene = Scene(server("a"))
    scene.run()
    scene.unreadable[("example.com", "Server")] = Verdict(reasons.REFUSED, "servers is forbidden")
    found = tree(scene)
    (a,) = found.resources[0].objects
    assert (a.state, a.message) == ("Unknown", "servers is forbidden")
    assert not found.complete
    scene.unreadable[("example.com", "Server")] = Verdict(reasons.KIND_MISSING, "not served")
    found = tree(scene)
    assert found.resources[0].objects[0].state == "Missing"
    assert found.complete


def test_what_an_external_ref_may_not_read_is_unknown_and_waited_for() -> None:
    zones = {"apiVersion": "example.com/v1", "kind": "Server", "name": "zones", "namespace": "platform"}
    scene = Scene({"name": "zones", "externalRef": zones}, server("a", text="${zones.metadata.name}"))
    of = Identity("example.com", "Server", "platform", "zones")
    denied = Verdict(reasons.REFUSED, "servers is forbidden")
    found = tree(scene, unread={of: denied})
    assert shown(found) == {"zones": ("Waiting", ("zones", "Unknown")), "a": ("Waiting",)}
    (external,) = found.resources[0].objects
    assert (external.api_version, external.message) == ("example.com/v1", "servers is forbidden")
    assert found.resources[0].message == "waits for Server platform/zones, which cannot be read"
    assert not found.complete
    scene.unreadable[of[:2]] = denied
    assert shown(tree(scene))["zones"] == ("Waiting", ("zones", "Unknown"))


def test_a_status_that_others_have_written_names_no_object_of_theirs() -> None:
    scene = Scene(server("a"))
    scene.run()
    scene.put("theirs", labels={"crdkeeper.dev/composite-uid": "u1"})
    forged = copy.deepcopy(scene.value["status"]["crdkeeper"]["resources"][0])
    forged["object"] |= {"name": "theirs", "kind": "Server"}
    gone = copy.deepcopy(forged)
    gone["object"]["name"] = "nothing"
    scene.value["status"]["crdkeeper"]["resources"] += [forged, gone, {"name": 7}, "x"]
    scene.value["status"]["conditions"] = "forged"
    assert shown(tree(scene)) == {"a": ("Rendered", ("a", "Ready"), ("theirs", "NotOurs"))}


def test_an_object_of_somebody_else_and_one_that_is_gone_are_told_apart() -> None:
    scene = Scene(server("a"), server("b"))
    scene.put("orders-a", ownerReferences=[{"kind": "Thing", "name": "x", "uid": "y", "controller": True}])
    scene.run()
    scene.drop("b")
    found = tree(scene)
    assert shown(found) == {"a": ("Rendered", ("a", "NotOurs")), "b": ("Rendered", ("b", "Missing"))}
    assert "belongs to Thing x" in str(found.resources[0].objects[0].message)


def test_without_the_revision_what_the_status_lists_is_shown_as_it_is() -> None:
    scene = Scene(server("a"), server("b"))
    scene.run()
    assert shown(tree(scene, known=False)) == {
        "a": ("Listed", ("a", "Ready")),
        "b": ("Listed", ("b", "Ready")),
    }
