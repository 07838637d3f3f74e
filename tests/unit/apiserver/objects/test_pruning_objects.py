"""Objects lose unknown fields and the nulls that their schema does not allow, and get its defaults."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.objects.prune import MOST_UNKNOWN, pruned
from tests.unit.apiserver.objects.samples import (
    EMBEDDED,
    INTEGER,
    PRESERVE,
    TEXT,
    admitted,
    decoded,
    resource,
    stored,
    thing,
)

OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        (OBJECT, {"b": 1}, {}),
        ({**OBJECT, "properties": {"b": TEXT}}, {"b": "x", "c": 1}, {"b": "x"}),
        ({**OBJECT, "additionalProperties": TEXT}, {"b": "x"}, {"b": "x"}),
        # additionalProperties: true preserves the fields, but not those inside them.
        ({**OBJECT, "additionalProperties": True}, {"b": {"c": 1}, "d": 1}, {"b": {}, "d": 1}),
        ({**OBJECT, **PRESERVE}, {"b": {"c": [{"d": 1}]}}, {"b": {"c": [{"d": 1}]}}),
        # Pruning starts again in the known fields.
        ({**OBJECT, **PRESERVE, "properties": {"b": OBJECT}}, {"b": {"c": 1}, "d": {"e": 1}}, {"b": {},
            "d": {"e": 1}}),
        ({"type": "array", "items": OBJECT}, [{"b": 1}], [{}]),
        (PRESERVE, [{"b": 1}], [{"b": 1}]),
        (TEXT, {"b": 1}, {}),
        (TEXT, [{"b": 1}], [{}]),
        # apiVersion, kind and metadata are known in embedded resources, which prune metadata themselves.
        (
            {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"b": TEXT}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "c": 1}, "d": 1},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
        ),
    ],
)  # fmt: skip
def test_unknown_fields(schema: dict[str, Any], value: Any, kept: Any) -> None:
    assert stored(schema, value) == kept


def test_unknown_fields_are_named() -> None:
    schema = resource(a={"type": "array", "items": {"type": "object", "properties": {"b": TEXT}}})
    obj = {**thing(a=[{"b": "x"}, {"c": 1}], z=1), "y": 1, "metadata": {"name": "x", "w": 1}}
    assert schema.admit(obj).unknown == ["metadata.w", "spec.a[1].c", "spec.z", "y"]


def test_unknown_fields_of_metadata_are_named() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "extra": 1}
    metadata = {"name": "x", "nonsense": 1, "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    schema = resource(a={"type": "object", "additionalProperties": EMBEDDED})
    assert schema.admit({**thing(a={"k": pod}), "metadata": metadata}).unknown == [
        "metadata.nonsense",
        "metadata.ownerReferences[0].extra",
        "spec.a[k].metadata.nonsense",
        "spec.a[k].metadata.ownerReferences[0].extra",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        (TEXT, None, ...),
        ({**TEXT, "nullable": True}, None, None),
        ({**TEXT, "default": "x"}, None, "x"),
        ({**TEXT, "default": "x", "nullable": True}, None, None),
        ({**OBJECT, "additionalProperties": TEXT}, {"b": None}, {}),
        ({**OBJECT, **PRESERVE}, {"b": None}, {"b": None}),
        # In lists, nulls remain.
        ({"type": "array", "items": {**TEXT, "nullable": True}}, [None], [None]),
    ],
)
def test_nulls(schema: dict[str, Any], value: Any, kept: Any) -> None:
    assert stored(schema, value) == kept


def test_nothing_is_dropped_from_a_crd_that_preserves_unknown_fields() -> None:
    fields = {"a": {**OBJECT, "additionalProperties": True}, "b": TEXT}
    schema = decoded({**OBJECT, "properties": {"spec": {**OBJECT, "properties": fields}}})
    spec = {"a": {"c": {"d": [{"e": 1}]}}, "b": None, "f": None}
    obj = {**thing(**spec), "g": {"h": 1}, "metadata": {"name": "x", "nonsense": 1}}
    read = ObjectSchema.of(schema, prunes=False).stored(obj).object
    assert read == {**obj, "metadata": {"name": "x"}}
    assert obj["spec"] == spec


NESTED = {"type": "object", "default": {}, "properties": {"b": {**INTEGER, "default": 1}, "c": TEXT}}


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        (NESTED, ..., {"b": 1}),
        (NESTED, {"c": "x"}, {"b": 1, "c": "x"}),
        (NESTED, {"b": None}, {"b": 1}),
        ({"type": "array", "items": NESTED}, [{}, {"b": 2}], [{"b": 1}, {"b": 2}]),
        ({**OBJECT, "additionalProperties": NESTED}, {"k": {}}, {"k": {"b": 1}}),
        # Defaults in maps are not checked when the CRD is created, but pruned when they are used.
        (
            {
                **OBJECT,
                "additionalProperties": {**OBJECT, "properties": {"b": {**OBJECT, "default": {"c": 1}}}},
            },
            {"k": {}},
            {"k": {"b": {}}},
        ),
        # Those in the metadata of an embedded resource keep what ObjectMeta has.
        (
            {**EMBEDDED, "properties": {"metadata": {**OBJECT, "default": {"labels": {"b": "x"}, "c": 1}}}},
            {"apiVersion": "v1", "kind": "Pod"},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"b": "x"}}},
        ),
        (
            {
                **EMBEDDED,
                "properties": {"metadata": {**OBJECT, "properties": {"c": {**INTEGER, "default": 1}}}},
            },
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        ),
    ],
)
def test_defaults(schema: dict[str, Any], value: Any, kept: Any) -> None:
    obj = thing() if value is ... else thing(a=value)
    assert resource(a=schema).admit(obj).object["spec"]["a"] == kept


def test_a_default_is_not_shared() -> None:
    schema = resource(a={"type": "array", "items": TEXT, "default": ["x"]})
    schema.admit(thing()).object["spec"]["a"].append("y")
    assert schema.admit(thing()).object["spec"]["a"] == ["x"]


def test_an_integral_float_in_a_default_is_an_integer() -> None:
    # The CRD has been stored, and Go writes 1.0 as 1.
    found = resource(a={"type": "number", "default": 1.0}).admit(thing())
    assert type(found.object["spec"]["a"]) is int


def test_the_object_itself_is_not_changed() -> None:
    obj = thing(a={"b": 1})
    admitted_object = resource(a=OBJECT).admit(obj).object
    assert obj == thing(a={"b": 1})
    assert admitted_object["spec"]["a"] == {}


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        ({"name": "x", "labels": {}, "namespace": ""}, {"name": "x"}),
        ({"name": "x", "nonsense": 1}, {"name": "x"}),
        ({"creationTimestamp": "2026-01-02T03:04:05.5+02:00"}, {"creationTimestamp": "2026-01-02T01:04:05Z"}),
        ({"generation": 1.0, "creationTimestamp": None}, {"generation": 1}),
        ({"managedFields": [{"manager": "a", "subresource": "", "fieldsV1": {}}]},
            {"managedFields": [{"manager": "a", "fieldsV1": {}}]}),
        ({"ownerReferences": [{"name": "o"}]}, {"ownerReferences": [{"apiVersion": "", "kind": "",
            "name": "o", "uid": ""}]}),
        (None, {}),
    ],
)  # fmt: skip
def test_embedded_metadata_is_normalized(metadata: Any, kept: Any) -> None:
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    assert admitted(EMBEDDED, value).object["spec"]["a"]["metadata"] == kept


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a": 1}},
        {"name": 5},
        {"finalizers": "x"},
        {"creationTimestamp": "yesterday"},
        {"generation": 1.5},
        [],
        "x",
    ],
)
def test_malformed_metadata_refuses_the_request(metadata: Any) -> None:
    outcome = admitted(EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    assert outcome.accepted is False
    assert [str(each.path) for each in outcome.violations] == ["spec.a.metadata"]
    assert outcome.violations[0].rule.id == "object-decode"


def test_unknown_fields_are_listed_up_to_a_number_and_with_short_names() -> None:
    schema = resource(a={**OBJECT, "additionalProperties": OBJECT})
    unknown = schema.admit(thing(a={"k" * 100_000: {f"b{i}": 1 for i in range(MOST_UNKNOWN + 1)}})).unknown
    assert len(unknown) == MOST_UNKNOWN
    assert max(map(len, unknown)) < 5_000


def test_unknown_fields_of_metadata_are_listed_up_to_a_number_and_with_short_names() -> None:
    schema = resource(a={**OBJECT, "additionalProperties": EMBEDDED})
    metadata = {f"b{i}": 1 for i in range(MOST_UNKNOWN + 1)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    unknown = schema.admit(thing(a={"k" * 100_000: pod})).unknown
    assert len(unknown) == MOST_UNKNOWN
    assert max(map(len, unknown)) < 5_000


def test_unknown_fields_are_listed_only_where_somebody_reads_them() -> None:
    obj = thing(b=1)
    assert resource(a=TEXT).create(obj).unknown == []
    assert pruned(obj, ObjectNode(decoded(OBJECT)), listed=False) == ({}, [])


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": INTEGER, "default": [1] * 1_000},
        {**OBJECT, "default": {}, "properties": {f"c{i}": {**INTEGER, "default": i} for i in range(1_000)}},
    ],
    ids=["one long default", "many short ones"],
)
def test_defaults_that_make_an_object_huge_are_left_to_the_server(field: dict[str, Any]) -> None:
    schema = resource(a={"type": "array", "items": {**OBJECT, "properties": {"b": field}}})
    assert schema.admit(thing(a=[{}] * 10)).accepted
    huge = thing(a=[{} for _ in range(5_000)])
    for found in (schema.admit(huge), schema.create(huge), schema.stored(huge)):
        assert found.object is None
        assert found.accepted is None
