"""Crossplane's Compositions rewritten: what is left to a person, and attacks."""

import time

import pytest

from crdkeeper.core.importing.note import NotImportable
from crdkeeper.core.importing.pipeline import imported
from tests.unit.core.importing.pipelines import (
    INPUT,
    Json,
    composition,
    notes,
    patch,
    server,
    text,
)

LEFT: dict[str, tuple[Json, str]] = {
    "an environment": ({"type": "FromEnvironmentFieldPath"}, "a patch of the type FromEnvironmentFieldPath"),
    "another type": ({"type": ["x"]}, "a patch of the type ['x']"),
    "a field": (patch("spec.a", "spec.b", x=1), "the field x"),
    "a merge": (patch("spec.a", "spec.b", policy={"toFieldPath": "MergeObjects"}), "a policy that merges"),
    "no path": ({"toFieldPath": "spec.a"}, "a field path is a text"),
    "a broken path": (patch("spec..a", "spec.b"), "spec..a is no field path"),
    "a value on the way": (
        patch("spec.a", "kind.b"),
        "a value of the base is where an object or list should be",
    ),
    "an item far away": (patch("spec.a", "spec.list[3]"), "the base has no item before [3]"),
    "no list": (patch("spec.a", "spec.list[*].b"), "there is no list in the base for [*]"),
    "a wildcard that is read": (
        patch("spec.list[*].b", "spec.a"),
        "a patch cannot read what [*] names",
    ),
    "a hash": (patch("spec.a", "spec.b", text(type="Convert", convert="ToSha1")), "the type ToSha1"),
    "a group": (
        patch("spec.a", "spec.b", text(type="Regexp", regexp={"group": 1})),
        "a group of a regular expression",
    ),
    "a format": (patch("spec.a", "spec.b", text(fmt="%04d")), "the format %0"),
    "too few values": (patch("spec.a", "spec.b", text(fmt="%s %s")), "a format for another number of values"),
    "a map of nothing": (
        patch("spec.a", "spec.b", {"type": "map"}),
        "a transform of the type map",
    ),
    "transforms of nothing": ({**patch("spec.a", "spec.b"), "transforms": "x"}, "transforms must be a list"),
    "a composite's spec": (
        {"type": "ToCompositeFieldPath", "fromFieldPath": "spec.a", "toFieldPath": "spec.b"},
        "a patch of a composite's field outside of its status",
    ),
    "no variables": (
        {"type": "CombineFromComposite", "combine": {"string": {"fmt": ""}}},
        "a list of variables",
    ),
    "no combination": ({"type": "CombineFromComposite", "combine": []}, "a combination that makes no text"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_to_a_person(case: str) -> None:
    given, said = LEFT[case]
    found = imported(composition(server(given)))
    (one,) = notes(found)
    assert one.startswith("spec.pipeline[0].input.resources[0].patches[0]: dropped: ")
    assert said in one
    assert found.composition["spec"]["resources"][0]["template"]["spec"] in ({}, {"list": []})


def test_overlapping_patches_keep_the_first() -> None:
    patches = patch("spec.engine", "spec.limits.a"), patch("spec.limits", "spec.limits")
    (one,) = notes(imported(composition(server(*patches))))
    assert "an earlier patch sets a part of the same field" in one


@pytest.mark.parametrize("target", ["status.at.host", "status.at"])
def test_patches_of_one_field_of_the_status_keep_the_first(target: str) -> None:
    first = {"type": "ToCompositeFieldPath", "fromFieldPath": "status.a", "toFieldPath": "status.at.host"}
    second = {"type": "ToCompositeFieldPath", "fromFieldPath": "status.b", "toFieldPath": target}
    found = imported(composition(server(first), server(second, name="other")))
    assert found.composition["spec"]["status"] == {"at": {"host": "${server.?status.a}"}}
    assert notes(found) == [
        "spec.pipeline[0].input.resources[1].patches[0]: "
        "dropped: an earlier patch sets the same field of the status"
    ]


def test_functions_and_fields_without_a_counterpart() -> None:
    steps = [
        {"step": "go", "functionRef": {"name": "function-go-templating"}},
        {
            "step": "one",
            "functionRef": {"name": "x"},
            "input": {**INPUT, "environment": {}, "resources": [server()]},
        },
        {"step": "ready", "functionRef": {"name": "crossplane-contrib-function-auto-ready"}},
    ]
    found = imported(
        composition(pipeline=steps, writeConnectionSecretsToNamespace="x") | {"metadata": {"name": "a"}}
    )
    assert sorted(each.partition(": ")[0] for each in notes(found)) == [
        "spec.pipeline[0]",
        "spec.pipeline[1].input.environment",
        "spec.writeConnectionSecretsToNamespace",
    ]
    left = server(connectionDetails=[], readinessChecks=[{"type": "x"}, {"type": "NonEmpty"}])
    places = [
        each.partition(": ")[0].rpartition("resources[0].")[2] for each in notes(imported(composition(left)))
    ]
    assert places == [
        "connectionDetails",
        "readinessChecks[0]",
        "readinessChecks[1]",
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "Other"},
        {"spec": None},
        {"spec": {"pipeline": {}}},
        {"spec": {"pipeline": [1]}},
        {"spec": {"mode": "Resources", "resources": [{"base": 1}]}},
        {"spec": {"resources": [1]}},
    ],
)
def test_what_is_no_composition(broken: Json) -> None:
    with pytest.raises(NotImportable):
        imported({**composition(), **broken})


def test_attacks_end_soon() -> None:
    began = time.process_time()
    trims = [text(type="TrimPrefix", trim="a" * 50)] * 20_000
    (one,) = notes(imported(composition(server(patch("spec.a", "spec.b", *trims)))))
    assert "transforms of more than 8,192 characters" in one
    deep: Json = [[[[1] * 32] * 32] * 32]
    wide = server(*[patch("spec.a", "spec.l[*][*][*][*]")] * 100, base={"l": deep})
    assert "more than 1,024 items for [*]" in notes(imported(composition(wide)))[0]
    again = [patch(f"spec.a{i}", "spec.b") for i in range(5000)]
    assert "an expression of more than 8,192 characters" in notes(imported(composition(server(*again))))[0]
    sets = [{"name": "s", "patches": [patch("spec.a", f"spec.b{i}") for i in range(5000)]}]
    many = [server({"type": "PatchSet", "patchSetName": "s"}, name=f"s{i}") for i in range(50)]
    with pytest.raises(NotImportable, match="more than 20,000 patches"):
        imported(composition(*many, sets=sets))
    nested: Json = {}
    for _ in range(5000):
        nested = {"a": nested}
    with pytest.raises(NotImportable, match="more than 100 levels"):
        imported(composition({"base": nested}))
    path = "a" + "[0]" * 300
    assert "more than 64 steps" in notes(imported(composition(server(patch("spec.a", path)))))[0]
    assert "at most 1,024 characters" in notes(imported(composition(server(patch("spec.a", path * 2)))))[0]
    # Minutes, if anything of this were quadratic.
    assert time.process_time() - began < 30
