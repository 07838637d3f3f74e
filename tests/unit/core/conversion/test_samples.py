"""Objects generated from a schema: deterministic, with each field, and valid as far as a schema says."""

import itertools
from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.core.conversion.samples import samples
from tests.unit.core.conversion.samples import BOOLEAN, INTEGER, NUMBER, STRING, crd, list_of, map_of, obj

NAMED = {**obj(name=STRING, port=INTEGER), "required": ["name"]}
DEEP = obj(
    a=obj(b=list_of(obj(c=map_of(obj(d=list_of(obj(e=STRING, f=BOOLEAN))))))),
    ports=list_of(NAMED, "name"),
    status={**obj(x=STRING, y=NUMBER), "required": ["x"]},
)


def made(schema: Any, number: int = 40) -> list[Any]:
    return [each.get("spec", {}).get("a") for each in samples(crd(obj(a=schema)), number)]


def paths(value: Any, at: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    if isinstance(value, dict):
        return {at}.union(*(paths(each, (*at, key)) for key, each in value.items()))
    if isinstance(value, list):
        return {at}.union(*(paths(each, (*at, "[]")) for each in value))
    return {at}


def test_the_empty_one_the_full_one_and_each_field_by_itself() -> None:
    first, second, *others = samples(crd(DEEP), 30)
    assert first == {}
    everything = paths(second)
    assert ("spec", "a", "b", "[]", "c", "one", "d", "[]", "e") in everything
    assert {("spec", "ports", "[]", "port"), ("spec", "status", "y")} <= everything
    assert {"spec": {}} in others
    alone = [each for each in others if each.get("spec", {}).keys() == {"status"}]
    assert {frozenset(each["spec"]["status"]) for each in alone} >= {frozenset("x"), frozenset("xy")}
    assert sum(len(paths(each)) > 8 for each in others) > 2


def test_always_the_same_and_no_more_than_asked_for() -> None:
    assert list(samples(crd(DEEP), 50)) == list(samples(crd(DEEP), 50))
    assert [len(list(samples(crd(DEEP), number))) for number in (0, 1, 2, 3, 50)] == [0, 1, 2, 3, 50]


def test_fields_from_all_over_a_schema_that_has_too_many() -> None:
    wide = crd(obj(**{f"f{i}": STRING for i in range(1000)}))
    alone = [each["spec"] for each in samples(wide, 22) if len(each.get("spec", {})) == 1]
    numbers = [int(name[1:]) for spec in alone for name in spec]
    assert min(numbers) < 150 and max(numbers) > 850


def test_there_are_fewer_objects_of_a_large_schema() -> None:
    wide = crd(obj(**{f"f{i}": STRING for i in range(20_000)}))
    found = [each.get("spec", {}) for each in samples(wide, 200)]
    assert sum(map(len, found)) < 600_000
    assert (len(found[0]), len(found[1])) == (0, 20_000 - 1)
    numbers = [int(name[1:]) for spec in found if len(spec) == 1 for name in spec]
    assert min(numbers) < 3_000 and max(numbers) > 14_000
    assert len(list(samples(crd(obj(**{f"f{i}": STRING for i in range(2_000)})), 200))) == 200


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "enum": ["x", "y"]},
        {"type": "string", "minLength": 3, "maxLength": 5},
        {"type": "string", "minLength": 300},
        {"type": "string", "maxLength": 0},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "byte"},
        {"type": "string", "format": "ipv4"},
        {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"},
        {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"},
        {"type": "integer", "minimum": 1000, "maximum": 1003},
        {"type": "integer", "format": "int32", "multipleOf": 7},
        {"type": "number", "minimum": 0.25, "exclusiveMinimum": True, "maximum": 0.75},
        {"type": "boolean", "enum": [True]},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"type": "array", "items": STRING, "minItems": 2, "maxItems": 3},
        {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "x-kubernetes-list-type": "set"},
        {**list_of({**NAMED, "required": ["name", "port"]}, "name", "port"), "minItems": 2},
        {**map_of(INTEGER), "minProperties": 1, "maxProperties": 2},
        {**obj(x=STRING, y=STRING, z=STRING), "minProperties": 2},
        {**obj(x=STRING, y=STRING, z=STRING), "maxProperties": 1},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "nullable": True},
        {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": obj(x=STRING)}},
    ],
    ids=str,
)
def test_they_are_valid(schema: Any) -> None:
    whole = crd(obj(a=schema))
    admission = ObjectSchema.of(whole)
    identity = {"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a"}}
    for each in samples(whole, 40):
        admitted = admission.admit({**identity, **each})
        assert admitted.accepted, (each, admitted.violations)
        assert not admitted.unknown
    assert any("a" in each.get("spec", {}) for each in samples(whole, 40))


def test_values_differ() -> None:
    texts = {each for each in made(STRING) if isinstance(each, str)}
    assert len(texts) > 5 and "" in texts
    assert {True, False} <= set(made(BOOLEAN))
    assert {"x", "y"} <= set(made({"type": "string", "enum": ["x", "y"]}))
    assert None in made({"type": "string", "nullable": True})
    assert {2, 3} <= {len(each) for each in made(list_of(STRING)) if each}


def test_a_text_that_no_known_one_fits() -> None:
    assert "oddddddddd" in made({"type": "string", "pattern": "^odd{8}$"})
    odd = {"type": "string", "pattern": "^(?i:odd{7})$"}
    assert not any(made(odd))
    required = {**obj(x=odd), "required": ["x"]}
    assert any(each == {"x": "one"} for each in made(required))


def test_a_schema_without_end() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(200):
        deep = obj(a=list_of(deep), b=list_of(STRING))
    sizes = [len(repr(each)) for each in itertools.islice(samples(crd(deep), 6), 6)]
    assert max(sizes) < 10_000_000
