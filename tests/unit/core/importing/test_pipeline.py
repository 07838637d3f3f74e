"""Crossplane's Compositions rewritten: what they render."""

import pytest

from crdkeeper.core.importing.pipeline import imported
from crdkeeper.core.templates.rendered import ReadinessState, ResourceState
from tests.unit.core.importing.pipelines import (
    BASE,
    Json,
    composition,
    fields_of,
    made,
    notes,
    patch,
    server,
    text,
)
from tests.unit.core.templates.compositions import DATABASE, named, summary


def test_the_smallest() -> None:
    found = imported(composition(server(name="my-server")))
    assert found.composition["metadata"] == {"name": "databases", "labels": {"tier": "gold"}}
    (resource,) = found.composition["spec"]["resources"]
    assert resource == {
        "name": "myServer",
        "template": {**BASE, "metadata": {"name": "${composite.metadata.name}-my-server"}},
        "readyWhen": [
            '${myServer.?status.conditions.orValue([]).exists(c, c.type == "Ready" && c.status == "True")}'
        ],
    }
    assert [each.message for each in found.notes] == [
        "the resource is called myServer, because expressions name it",
        "Crossplane generates a name; the new object is called ${composite.metadata.name}-my-server",
    ]


@pytest.mark.parametrize("version", ["v1", "apps/v1", "networking.k8s.io/v1"])
def test_kinds_of_kubernetes_are_ready_by_kstatus(version: str) -> None:
    found = imported(composition({"name": "a", "base": {"apiVersion": version, "kind": "Thing"}}))
    assert "readyWhen" not in found.composition["spec"]["resources"][0]


def test_the_old_mode() -> None:
    found = imported(composition(pipeline=None, mode="Resources", resources=[server()]))
    assert [each["name"] for each in found.composition["spec"]["resources"]] == ["server"]


PATCHES: dict[str, tuple[list[Json], Json, Json]] = {
    "a value": ([patch("spec.engine", "spec.text")], {}, {"text": "postgres"}),
    "the same path": ([{"fromFieldPath": "spec.replicas"}], {}, {"replicas": 2}),
    "an absent one": ([patch("spec.limits", "spec.limits")], {}, {}),
    "the base stays": ([patch("spec.limits.cpu", "spec.text")], {"text": "x"}, {"text": "x"}),
    "over the base": ([patch("spec.engine", "spec.text")], {"text": "x"}, {"text": "postgres"}),
    "the last one wins": (
        [patch("spec.engine", "spec.text"), patch("metadata.name", "spec.text")],
        {},
        {"text": "orders"},
    ),
    "the last one that is there": (
        [patch("spec.engine", "spec.text"), patch("spec.limits.cpu", "spec.text")],
        {"text": "x"},
        {"text": "postgres"},
    ),
    "an item": ([patch("spec.names[1]", "spec.texts[0]")], {"texts": ["x", "y"]}, {"texts": ["b", "y"]}),
    "an item more": ([patch("spec.engine", "spec.texts[1]")], {"texts": ["x"]}, {"texts": ["x", "postgres"]}),
    "each item": (
        [patch("spec.engine", "spec.texts[*]")],
        {"texts": ["x", "y"]},
        {"texts": ["postgres", "postgres"]},
    ),
    "a quoted key": ([patch("spec.engine", "spec.limits['a/b']")], {}, {"limits": {"a/b": "postgres"}}),
    "what looks like an expression": ([], {"text": "${HOME}"}, {"text": "${HOME}"}),
    "what looks like one, where the base stays": (
        [patch("spec.limits.cpu", "spec.text"), patch("spec.limits", "spec.open")],
        {"text": "echo ${HOME} $${A}", "open": {"a": ["${B}", {"${C}": "}"}]}},
        {"text": "echo ${HOME} $${A}", "open": {"a": ["${B}", {"${C}": "}"}]}},
    ),
    "required": (
        [patch("spec.engine", "spec.text", text(fmt="x-%s-${a}"), policy={"fromFieldPath": "Required"})],
        {},
        {"text": "x-postgres-${a}"},
    ),
    "combined": (
        [
            {
                "type": "CombineFromComposite",
                "combine": {
                    "variables": [{"fromFieldPath": "metadata.name"}, {"fromFieldPath": "spec.replicas"}],
                    "strategy": "string",
                    "string": {"fmt": "%s-%d%%"},
                },
                "toFieldPath": "spec.text",
            }
        ],
        {},
        {"text": "orders-2%"},
    ),
    "combined of what is absent": (
        [
            {
                "type": "CombineFromComposite",
                "combine": {
                    "variables": [{"fromFieldPath": "metadata.name"}, {"fromFieldPath": "spec.limits.cpu"}],
                    "strategy": "string",
                    "string": {"fmt": "%s-%s"},
                },
                "toFieldPath": "spec.text",
            }
        ],
        {"text": "x"},
        {"text": "x"},
    ),
}


@pytest.mark.parametrize("case", PATCHES)
def test_patches(case: str) -> None:
    patches, base, wanted = PATCHES[case]
    assert fields_of(*patches, base=base) == wanted


SMALL: Json = {"type": "map", "map": {"postgres": "small", "mysql": "large"}}
TRANSFORMS: dict[str, tuple[str, list[Json], Json]] = {
    "map": ("spec.engine", [SMALL], "small"),
    "format": ("spec.replicas", [text(type="Format", fmt="n%d")], "n2"),
    "upper case": ("spec.engine", [text(type="Convert", convert="ToUpper")], "POSTGRES"),
    "trim": (
        "spec.engine",
        [
            text(type="TrimPrefix", trim="post"),
            text(type="TrimSuffix", trim="es"),
            text(type="TrimSuffix", trim="x"),
        ],
        "gr",
    ),
    "regular expression": ("spec.engine", [text(type="Regexp", regexp={"match": "g.+"})], "gres"),
    "replace": ("spec.engine", [text(type="Replace", replace={"search": "s", "replace": "_"})], "po_tgre_"),
    "join": ("spec.names", [text(type="Join", join={"separator": "+"})], "a+b"),
    "multiply": ("spec.replicas", [{"type": "math", "math": {"multiply": 3}}, text(fmt="%d")], "6"),
    "clamp": (
        "spec.replicas",
        [
            {"type": "math", "math": {"type": "ClampMin", "clampMin": 5}},
            {"type": "math", "math": {"type": "ClampMax", "clampMax": 4}},
            {"type": "convert", "convert": {"toType": "string"}},
        ],
        "4",
    ),
    "match": (
        "spec.engine",
        [
            {
                "type": "match",
                "match": {
                    "patterns": [
                        {"type": "literal", "literal": "x", "result": "1"},
                        {"type": "regexp", "regexp": "^post", "result": "2"},
                    ],
                    "fallbackValue": "3",
                },
            }
        ],
        "2",
    ),
    "no match": (
        "spec.engine",
        [
            {
                "type": "match",
                "match": {"patterns": [{"literal": "x", "result": "1"}], "fallbackTo": "Input"},
            },
            text(fmt="%s"),
        ],
        "postgres",
    ),
    "many": ("spec.engine", [SMALL, text(fmt="%s-db"), text(type="Convert", convert="ToUpper")], "SMALL-DB"),
    "quantity": (
        "metadata.annotations[size]",
        [
            {"type": "convert", "convert": {"toType": "int", "format": "quantity"}},
            {"type": "convert", "convert": {"toType": "string"}},
        ],
        "1024",
    ),
}


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("case", TRANSFORMS)
def test_transforms(case: str, *, required: bool) -> None:
    source, transforms, wanted = TRANSFORMS[case]
    given = {**DATABASE, "metadata": {**DATABASE["metadata"], "annotations": {"size": "1Ki"}}}
    policy = {"policy": {"fromFieldPath": "Required"}} if required else {}
    assert fields_of(patch(source, "spec.text", *transforms, **policy), given=given) == {"text": wanted}
    if not required:
        absent = patch(source.replace("spec.", "spec.limits.").replace("size", "none"), "spec.text")
        assert fields_of(absent, given=given) == {}


def test_patch_sets_and_names() -> None:
    sets = [{"name": "all", "patches": [patch("spec.engine", "metadata.labels[engine]")]}]
    use = {"type": "PatchSet", "patchSetName": "all"}
    named_by_patch = patch("metadata.uid", "metadata.name", text(fmt="id-%s"))
    given = {**DATABASE, "metadata": {**DATABASE["metadata"], "uid": "7"}}
    first, second = made(
        server(use), server(use, named_by_patch, name="Server"), sets=sets, given=given
    ).objects
    assert first["metadata"]["labels"] == second["metadata"]["labels"] == {"engine": "postgres"}
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("orders-server", "id-7")


def test_names_that_collide() -> None:
    found = imported(
        composition(*(server(name=each) for each in ("a-b", "aB", "", "9", "each", "composite")))
    )
    names = [each["name"] for each in found.composition["spec"]["resources"]]
    assert names == ["aB", "aB2", "resource", "resource9", "resourceEach", "resourceComposite"]


@pytest.mark.parametrize("name", ["namespace", "function", "string", "list", "map", "type"])
def test_names_that_are_words_or_types_of_cel(name: str) -> None:
    status = {
        "type": "ToCompositeFieldPath",
        "fromFieldPath": "status.phase",
        "toFieldPath": "status.address",
    }
    found = imported(composition(server(status, name=name)))
    assert notes(found) == []
    (resource,) = found.composition["spec"]["resources"]
    assert resource["name"] == f"resource{name.capitalize()}"
    assert named(made(server(status, name=name)))[resource["name"]].state is ResourceState.RENDERED


def test_the_status() -> None:
    one = server(
        {"type": "ToCompositeFieldPath", "fromFieldPath": "status.phase", "toFieldPath": "status.address"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "status.ready", "toFieldPath": "status.replicas"},
    )
    there = {**BASE, "metadata": {"name": "orders-server", "namespace": "shop"}, "status": {"phase": "up"}}
    found = imported(composition(one)).composition["spec"]
    assert found["status"] == {"address": "${server.?status.phase}", "replicas": "${server.?status.ready}"}
    assert made(one).status == {}
    assert made(one, observed=[there]).status == {"address": "up"}


@pytest.mark.parametrize(
    ("check", "status", "ready"),
    [
        ({"type": "None"}, {}, True),
        ({"type": "NonEmpty", "fieldPath": "status.phase"}, {}, False),
        ({"type": "NonEmpty", "fieldPath": "status.phase"}, {"phase": "up"}, True),
        ({"type": "MatchString", "fieldPath": "status.phase", "matchString": "up"}, {"phase": "up"}, True),
        ({"type": "MatchString", "fieldPath": "status.phase", "matchString": "up"}, {"phase": "no"}, False),
        ({"type": "MatchInteger", "fieldPath": "status.ready", "matchInteger": 2}, {"ready": 2}, True),
        ({"type": "MatchInteger", "fieldPath": "status.ready", "matchInteger": 2}, {}, False),
    ],
)
def test_readiness(check: Json, status: Json, *, ready: bool) -> None:
    metadata = {"name": "orders-server", "namespace": "shop"}
    there = {**BASE, "metadata": metadata, "status": status}
    (one,) = named(made(server(readinessChecks=[check]), observed=[there])).values()
    (each,) = one.objects
    assert each.readiness is not None
    assert (each.readiness.state == ReadinessState.READY) is ready
    assert summary(made(server(readinessChecks=[check]))) == {"server": "rendered"}


def test_readiness_of_conditions() -> None:
    checks = [
        {"type": "MatchCondition", "matchCondition": {"type": "Up", "status": "True"}},
        {"type": "MatchTrue", "fieldPath": "status.on"},
        {"type": "MatchFalse", "fieldPath": "status.off"},
    ]
    found = imported(composition(server(readinessChecks=checks)))
    assert found.composition["spec"]["resources"][0]["readyWhen"] == [
        '${server.?status.conditions.orValue([]).exists(c, c.type == "Up" && c.status == "True")}',
        "${server.?status.on.orValue(false)}",
        "${!server.?status.off.orValue(true)}",
    ]
