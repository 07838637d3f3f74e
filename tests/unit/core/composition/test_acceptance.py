"""What is wrong with a CompositeResourceDefinition: each problem, where it is, and the way to write it."""

from typing import Any

import pytest

from crdkeeper.core.composition import problem
from crdkeeper.core.composition.acceptance import (
    MOST_RULES,
    accept,
    is_composite_definition,
    with_server_errors,
)
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
BASE = "spec.versions[0].schema.openAPIV3Schema"


def problems(value: Json) -> list[tuple[str, str, bool]]:
    return [(each.rule.id, str(each.path), each.refused) for each in accept(value).problems]


def of_schema(whole: Json) -> list[tuple[str, str, bool]]:
    found = problems(document(version(of=whole)))
    return [(id, path.removeprefix(BASE).removeprefix("."), refused) for id, path, refused in found]


def test_a_good_one_has_none() -> None:
    judged = with_server_errors(accept(document()))
    assert judged.problems == ()
    assert not judged.refused


def test_kinds() -> None:
    assert is_composite_definition(document())
    assert not is_composite_definition({**document(), "apiVersion": "apiextensions.crossplane.io/v2"})
    assert not is_composite_definition(None)


def test_its_own_schema() -> None:
    value = document(scope="Everywhere")
    del value["spec"]["names"]["kind"]
    judged = accept(value)
    assert judged.crd is None and judged.refused
    assert {str(each.path): each.message for each in judged.problems if str(each.path) != "<nil>"} == {
        "spec.scope": 'Unsupported value: "Everywhere": supported values: "Namespaced", "Cluster"',
        "spec.names.kind": "Required value",
    }


def test_unknown_fields_have_their_place() -> None:
    (found,) = accept(document(version(refernceable=True))).problems
    assert (found.rule, str(found.path)) == (problem.UNKNOWN, "spec.versions[0].refernceable")
    assert found.path.steps == ("spec", "versions", 0, "refernceable")


def test_reserved_fields_are_replaced() -> None:
    whole = schema(
        {"type": "object", "properties": {"crdkeeper": {"type": "string"}}},
        {
            "type": "object",
            "properties": {
                each: {"type": "string"} for each in ("observedGeneration", "crdkeeper", "conditions")
            },
        },
    )
    assert of_schema(whole) == [
        ("composite-reserved", "properties[spec].properties[crdkeeper]", False),
        ("composite-reserved", "properties[status].properties[crdkeeper]", False),
        ("composite-reserved", "properties[status].properties[conditions]", False),
        ("composite-reserved", "properties[status].properties[observedGeneration]", False),
    ]
    crd = accept(document(version(of=whole))).crd
    assert crd is not None
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert properties["spec"]["properties"]["crdkeeper"]["type"] == "object"
    assert properties["status"]["properties"]["conditions"]["type"] == "array"


COUNTED = "[has(self.engine), has(self.replicas)].filter(each, each).size()"


@pytest.mark.parametrize(
    ("whole", "id", "path", "way"),
    [
        (
            schema(oneOf=[{"required": ["spec"]}, {"properties": {"spec": {"required": ["engine"]}}}]),
            "composite-root",
            "oneOf",
            "[has(self.spec), (!has(self.spec) || has(self.spec.engine))].exists_one(each, each)",
        ),
        (
            schema(anyOf=[{"required": ["spec"]}, {"not": {"required": ["spec"]}}]),
            "composite-root",
            "anyOf",
            '"(has(self.spec) || !(has(self.spec)))"',
        ),
        (schema(**{"not": {"required": ["other"]}}), "composite-root", "not", ""),
        (schema(allOf=[{"maxProperties": 3}]), "composite-root", "allOf", ""),
        (schema(maxProperties=3), "composite-root", "maxProperties", ""),
        (schema(**{"x-kubernetes-map-type": "atomic"}), "composite-root", "x-kubernetes-map-type", ""),
        (schema({"type": "string"}), "composite-not-an-object", "properties[spec].type", ""),
        (
            schema({"x-kubernetes-preserve-unknown-fields": True}),
            "composite-not-an-object",
            "properties[spec].type",
            "",
        ),
        (schema(status={"type": "array"}), "composite-not-an-object", "properties[status].type", ""),
        (
            schema({"type": "object", "additionalProperties": {"type": "string"}}),
            "composite-map",
            "properties[spec].additionalProperties",
            "",
        ),
        (
            schema(status={"type": "object", "additionalProperties": True}),
            "composite-map",
            "properties[status].additionalProperties",
            "",
        ),
        (
            schema({**SPEC, "maxProperties": 1}),
            "composite-counted",
            "properties[spec].maxProperties",
            f"{COUNTED} <= 1",
        ),
        (
            schema({**SPEC, "oneOf": [{"minProperties": 2}, {"required": ["replicas"]}]}),
            "composite-counted",
            "properties[spec].oneOf[0].minProperties",
            f"{COUNTED} >= 2",
        ),
        (schema({**SPEC, "enum": [{"engine": "a"}]}), "composite-counted", "properties[spec].enum", ""),
        (
            schema({**SPEC, "x-kubernetes-map-type": "atomic"}),
            "composite-atomic",
            "properties[spec].x-kubernetes-map-type",
            "",
        ),
        (schema(required=["status"]), "composite-status-required", "required", ""),
    ],
)
def test_what_cannot_be_a_composite(whole: Json, id: str, path: str, way: str) -> None:
    judged = accept(document(version(of=whole)))
    assert of_schema(whole) == [(id, path, True)]
    assert judged.refused
    assert way in judged.problems[0].message


def test_a_first_status_that_is_refused_is_told() -> None:
    status = {"type": "object", "required": ["phase"], "properties": {"phase": {"type": "string"}}}
    judged = accept(document(version(of=schema(status=status))))
    (found,) = judged.problems
    assert (found.rule, found.refused) == (problem.STATUS_REQUIRED, False)
    assert found.message == "at first, status is refused: status.phase: Required value"


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ("self == oldSelf", True),
        ("self.engine == oldSelf.engine", False),
        ("has(self.engine) && self.?replicas.orValue(1) > 0", False),
        ("self.engine in ['a'] || [self].size() == 1", True),
        ("['a'].all(each, each != self.engine)", False),
        ("['a'].all(each, each != self.engine && self != oldSelf)", True),
        ("this does not parse", False),
    ],
)
def test_a_rule_about_the_whole_spec(rule: str, reported: bool) -> None:
    whole = schema({**SPEC, "x-kubernetes-validations": [{"rule": rule}]})
    path = "properties[spec].x-kubernetes-validations[0].rule"
    assert of_schema(whole) == ([("composite-whole", path, False)] if reported else [])


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ("self.spec == oldSelf.spec", True),
        ("self == oldSelf", True),
        ("self.spec.engine == oldSelf.spec.engine", False),
        ("has(self.spec) && self.metadata.name != 'a'", False),
        ("self.?spec.?engine.hasValue()", False),
    ],
)
def test_a_rule_of_the_root_about_the_whole_spec(rule: str, reported: bool) -> None:
    whole = schema(**{"x-kubernetes-validations": [{"rule": rule}]})
    expected = [("composite-whole", "x-kubernetes-validations[0].rule", False)]
    assert of_schema(whole) == (expected if reported else [])


def test_the_servers_errors_lead_to_the_fields_of_the_definition() -> None:
    whole = schema({"type": "object", "properties": {"a": {"type": "int"}}})
    value = document(version("v1"), version("v2", whole, referenceable=False))
    assert accept(value).problems == ()
    (found,) = with_server_errors(accept(value)).problems
    assert found.path.steps == (
        *(
            "spec",
            "versions",
            1,
            "schema",
            "openAPIV3Schema",
            "properties",
            "spec",
            "properties",
            "a",
            "type",
        ),
    )


def test_the_server_does_not_repeat_what_is_said_of_the_root() -> None:
    value = document(version(of=schema(oneOf=[{"required": ["spec"]}])))
    assert len(with_server_errors(accept(value)).problems) == 1


@pytest.mark.parametrize("broken", [5, [], "x", None])
def test_schemas_of_another_shape_are_told(broken: Json) -> None:
    for whole in (
        {"type": "object", "properties": broken},
        {"type": "object", "properties": {"spec": broken, "status": broken, "metadata": broken}},
        {"type": "object", "x-kubernetes-validations": broken, "required": broken, "oneOf": broken},
    ):
        with_server_errors(accept(document(version(of=whole))))


@pytest.mark.parametrize("keyword", ["properties", "not"])
def test_schemas_that_nest_too_deep(keyword: str) -> None:
    deep: Json = {"type": "object"}
    for _ in range(5000):
        deep = {keyword: deep} if keyword == "not" else {"type": "object", keyword: {"a": deep}}
    judged = accept(document(version(of={"type": "object", "properties": {"spec": deep}})))
    assert judged.refused
    assert "too deep" in judged.problems[0].message


def test_the_work_for_rules_is_bounded_over_all_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(rule: str, field: str | None) -> bool:
        parsed.append(rule)
        return False

    monkeypatch.setattr("crdkeeper.core.composition.traps.uses_whole", counted)
    each = MOST_RULES // 8
    rules = [{"rule": "x" * each, "message": "m"} for _ in range(5)]
    of = schema(spec={**SPEC, "x-kubernetes-validations": rules})
    value = document(version("v1", of=of, referenceable=False), version("v2", of=of))
    found = [(each.path.steps[2], each.message) for each in accept(value).problems if not each.refused]
    assert len(parsed) == 8
    assert found == [
        (1, "there are too many rules to say which, from here on, are also about spec.crdkeeper")
    ]
