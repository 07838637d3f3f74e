"""kro's short notation: what each type and marker becomes, and what is refused, with its place."""

from typing import Any

import pytest

from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.core.importing.note import NotImportable
from crdkeeper.core.importing.simpleschema import MOST_FIELDS, SimpleSchema, read_simple_schema

Json = Any
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def read(fields: Json, types: Json = None) -> SimpleSchema:
    at = root("spec").child("schema")
    return read_simple_schema(
        fields, types or {}, name="spec", path=at.child("spec"), types_path=at.child("types")
    )


def field(value: Json, types: Json = None) -> Json:
    """The schema of a field; that it is required is read elsewhere."""
    return read({"field": value}, types).schema["properties"]["field"]


def refusal(value: Json, types: Json = None) -> str:
    with pytest.raises(NotImportable) as error:
        field(value, types)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("string", {"type": "string"}),
        ("integer", {"type": "integer"}),
        ("boolean", {"type": "boolean"}),
        ("float", {"type": "number"}),
        ("object", OPEN),
        ("[]string", {"type": "array", "items": {"type": "string"}}),
        ("[][]float", {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
        ("map[string]integer", {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            "map[string][]object",
            {"type": "object", "additionalProperties": {"type": "array", "items": OPEN}},
        ),
        (
            "[]map[string]string",
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
        ),
    ],
)
def test_types(text: str, schema: Json) -> None:
    assert field(text) == schema


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("string | default=app", {"default": "app"}),
        ('string | default="a b | c=d"', {"default": "a b | c=d"}),
        ('string | default=""', {"default": ""}),
        ("integer | default=3 minimum=1 maximum=10", {"default": 3, "minimum": 1, "maximum": 10}),
        ("float | minimum=0.5", {"minimum": 0.5}),
        ("boolean | default=true", {"default": True}),
        ('string | enum="debug, info" default="info"', {"enum": ["debug", "info"], "default": "info"}),
        ("integer | enum=1,2", {"enum": [1, 2]}),
        ('string | description="A \\"B\\" \\\\ C\\d"', {"description": 'A "B" \\ C\\d'}),
        ('string | pattern="^[a-z]{2}$" minLength=2 maxLength=2', {"pattern": "^[a-z]{2}$", "minLength": 2}),
        ("[]string | uniqueItems=true minItems=1", {"x-kubernetes-list-type": "set", "minItems": 1}),
        ("[]string | uniqueItems=false maxItems=3", {"maxItems": 3}),
        ('[]string | default=["a", "b c"]', {"default": ["a", "b c"]}),
        ('object | default={"a": {"b": 1}}', {"default": {"a": {"b": 1}}}),
        (
            "string | immutable=true",
            {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "field is immutable"}]},
        ),
        ("string | immutable=false", {}),
        (
            'integer | validation="self % 2 == 0"',
            {"x-kubernetes-validations": [{"rule": "self % 2 == 0", "message": "validation failed"}]},
        ),
        ("string | minLength=1 | maxLength=2", {"minLength": 1, "maxLength": 2}),
    ],
)
def test_markers(text: str, more: Json) -> None:
    found = field(text)
    assert {key: found.get(key) for key in more} == more
    assert found.keys() - more.keys() <= {
        "type",
        "items",
        "maxLength",
        "x-kubernetes-preserve-unknown-fields",
    }


def test_required_and_the_defaults_of_objects() -> None:
    assert read({"a": "string | required=true", "b": "string | required=false"}).schema["required"] == ["a"]
    inner = read({"o": {"p": "string | default=x"}}).schema
    assert inner["properties"]["o"]["default"] == {}
    assert inner["default"] == {}
    # An empty object would lack what is required.
    assert "default" not in field({"p": "string | default=x", "q": "string | required=true"})
    assert "default" not in field({"p": "string"})


def test_types_of_ones_own() -> None:
    types = {
        "Address": {"street": "string | required=true"},
        "Person": {"home": "Address", "all": "[]Address"},
        "Name": "string | required=true maxLength=9",
    }
    address = {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}
    found = read({"person": "Person | description=P", "name": "Name"}, types).schema
    assert found["properties"]["person"]["properties"] == {
        "home": address,
        "all": {"type": "array", "items": address},
    }
    assert found["properties"]["person"]["description"] == "P"
    assert found["properties"]["name"] == {"type": "string", "maxLength": 9}
    assert found["required"] == ["name"]
    # What a field says of its type concerns no other field.
    assert field("Name | description=A", types) != field("Name", types)


def test_columns() -> None:
    types = {"Ingress": {"class": 'string | printColumn="CLASS"'}}
    found = read({"image": 'string | printColumn="IMAGE"', "ingress": "Ingress"}, types)
    assert found.columns == (
        {"name": "IMAGE", "type": "string", "jsonPath": ".spec.image"},
        {"name": "CLASS", "type": "string", "jsonPath": ".spec.ingress.class"},
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "there is no type 'text'; known are string, integer, boolean, float, number, object"),
        ("", "there is no type ''"),
        (1, "must be a type, such as integer | default=1, or an object"),
        (["string"], "must be a type"),
        ("map[integer]string", "the keys of a map must be of type string, not 'integer'"),
        ("string | size=3", "there is no marker size"),
        ("string | required", "not a marker such as required=true: required"),
        ('string | default="a', 'the value has no end: "a'),
        ("object | default={", "the value has no end"),
        ("integer | default=many", "the default is no JSON: many"),
        ("integer | minimum=low", "minimum must be a number, not 'low'"),
        ("float | minimum=nan", "minimum must be a number, not 'nan'"),
        ("integer | minLength=1", "minLength is for fields of type string, not integer"),
        ("string | minLength=many", "minLength must be a whole number, not 'many'"),
        ("integer | enum=a", "'a' cannot be in the enum of a field of type integer"),
        ("string | enum=a,,b", "'' cannot be in the enum"),
        ("string | required=yes", "required must be true or false, not 'yes'"),
        ("[]string | printColumn=X", "printColumn is for single values"),
        ("[]Ingress", "printColumn is for single values"),
    ],
)
def test_refusals_name_the_field(value: Json, message: str) -> None:
    types = {"Ingress": {"class": "string | printColumn=C"}} if value == "[]Ingress" else {}
    said = refusal(value, types)
    assert message in said
    assert said.startswith("spec.schema.types.Ingress.class: " if types else "spec.schema.spec.field: ")


def test_types_that_contain_themselves() -> None:
    types = {"A": {"b": "[]B"}, "B": {"a": "map[string]A"}}
    assert refusal("A", types) == "spec.schema.types.B.a: the type A contains itself"


def test_attacks_end_at_once() -> None:
    doubling = {f"T{i}": {"a": f"T{i + 1}", "b": f"T{i + 1}"} for i in range(14)} | {"T14": {"a": "string"}}
    assert f"more than {MOST_FIELDS:,} fields" in refusal("T0", doubling)
    chain = {f"T{i}": f"T{i + 1}" for i in range(5_000)} | {"T5000": "string"}
    assert "more than 32 levels" in refusal("T0", chain)
    assert "more than 32 levels" in refusal("[]" * 100_000 + "string")
    deep: Json = "string"
    for _ in range(500):
        deep = {"a": deep}
    assert "more than 32 levels" in refusal(deep)
    assert "the value has no end" in refusal("string | default=" + "[" * 1_000_000)
    assert len(field("string" + " | minLength=1" * 20_000)) == 2
    assert len(refusal("x" * 1_000_000)) < 500
