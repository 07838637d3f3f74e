"""What `kubectl explain --recursive` shows; tests/cluster compares it with kubectl."""

from typing import Any

import pytest

from crdkeeper.apiserver.definitions.publishing.explaining import NotExplained, explained_fields


def explained(**properties: Any) -> list[str]:
    schema = {"type": "object", "properties": properties, "required": ["a"]}
    return [f"{each.level} {each.name} {each.type} {each.required}" for each in explained_fields(schema)]


def test_fields_are_found_in_lists_and_maps_and_all_of() -> None:
    b = {"type": "object", "properties": {"b": {"type": "integer"}}}
    assert explained(a={"type": "array", "items": {"type": "object", "additionalProperties": b}}) == [
        "1 a []map[string]Object True",
        "2 b integer False",
    ]
    assert explained(m={"allOf": [{"$ref": "#/components/schemas/io.k8s.meta.v1.ObjectMeta"}]}) == [
        "1 m ObjectMeta False"
    ]
    assert explained(c={**b, "allOf": [{"properties": {"b": {"minimum": 1}}}]}) == [
        "1 c Object False",
        "2 b integer False",
        "2 b Object False",
    ]


def test_alternatives_are_not_looked_into() -> None:
    assert explained(a={"type": "object", "anyOf": [{"properties": {"b": {}}}]}) == ["1 a Object True"]


def test_a_field_of_which_nothing_is_said_ends_it() -> None:
    with pytest.raises(NotExplained, match="b"):
        explained(a={"type": "object", "allOf": [{"properties": {"b": {}}}]})


def test_the_required_fields_are_not_searched_for_each_field() -> None:
    class Unsearchable(list[str]):
        def __contains__(self, _: object) -> bool:
            raise AssertionError("a schema of 3 MiB can name 30,000 required fields")

    schema = {"properties": {"a": {"type": "string"}}, "required": Unsearchable(["a"])}
    assert [each.required for each in explained_fields(schema)] == [True]
