"""What OpenAPI v2 and v3 show of a CRD's version; tests/cluster compares it with the API server."""

from typing import Any

import pytest

from crdkeeper.apiserver.definitions.publishing.components import published_schemas
from crdkeeper.apiserver.definitions.publishing.implied import OpenAPI
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from tests.unit.apiserver.definitions.cases import definition, version

Json = dict[str, Any]
NAME = "com.example.v1.Widget"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
EITHER = [{"type": "integer"}, {"type": "string"}]
A = {"type": "object", "properties": {"a": {"type": "string"}}}


def published(openapi: OpenAPI, **root: Any) -> Json:
    """What is published of a kind with this schema."""
    crd = definition()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", **root}
    found: Json = published_schemas(crd, "v1", openapi)[NAME]
    return found


def field(openapi: OpenAPI, schema: Json) -> Json:
    """What is published of one field."""
    found: Json = published(openapi, properties={"spec": schema})["properties"]["spec"]
    return found


# None: unchanged
@pytest.mark.parametrize(
    ("schema", "in_v3", "in_v2"),
    [
        ({**A, "default": {}}, {**A, "default": {}}, A),
        ({**A, "nullable": True}, {**A, "nullable": True}, {}),
        ({**A, PRESERVE: True}, {**A, PRESERVE: True}, {PRESERVE: True}),
        ({"type": "integer", "maximum": 1.0}, None, None),
        ({"type": "string", "enum": [], "example": ""}, {"type": "string"}, {"type": "string"}),
        ({"type": "string", "enum": ["", None]}, None, None),
        ({"type": "string", "anyOf": [{"minLength": 1}, {}]}, None, {"type": "string"}),
        ({**A, "anyOf": [{"properties": {"a": {"not": {"minLength": 1}}}}]}, None, A),
        ({"type": "object", "additionalProperties": True}, None, None),
        ({"type": "object", "additionalProperties": False}, None, None),
        ({"type": "array", "items": A}, None, None),
        (
            {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "required": ["a"]},
            None,
            {"type": "object", "properties": {"a": {}}},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
            None,
            {"type": "object", "additionalProperties": {}},
        ),
        ({"type": "array", "items": A, "nullable": True}, None, {}),
        ({INT_OR_STRING: True}, {INT_OR_STRING: True, "anyOf": EITHER}, {INT_OR_STRING: True}),
        ({INT_OR_STRING: True, "anyOf": EITHER}, None, {INT_OR_STRING: True}),
        (
            {INT_OR_STRING: True, "anyOf": [{"minimum": 1}], "allOf": [{"maximum": 2}]},
            {
                INT_OR_STRING: True,
                "anyOf": [{"minimum": 1}],
                "allOf": [{"anyOf": EITHER}, {"maximum": 2}],
            },
            {INT_OR_STRING: True},
        ),
        ({INT_OR_STRING: True, "allOf": [{"anyOf": EITHER}, {"maximum": 2}]}, None, {INT_OR_STRING: True}),
    ],
)
def test_fields(schema: Json, in_v3: Json | None, in_v2: Json | None) -> None:
    assert field(OpenAPI.V3, schema) == (schema if in_v3 is None else in_v3)
    assert field(OpenAPI.V2, schema) == (schema if in_v2 is None else in_v2)


def test_every_object_has_its_fields() -> None:
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    own = {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}
    text = {"type": "string"}
    assert published(OpenAPI.V2, properties=own) == {
        "type": "object",
        "properties": {"apiVersion": text, "kind": text, "metadata": {"$ref": f"#/definitions/{meta}"}},
        "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
    }
    reference = {"$ref": f"#/components/schemas/{meta}"}
    assert published(OpenAPI.V3)["properties"]["metadata"] == {"allOf": [reference]}


def test_embedded_resources() -> None:
    schema = {"type": "object", EMBEDDED: True, PRESERVE: True, "required": ["kind"]}
    assert sorted(field(OpenAPI.V3, schema)["properties"]) == ["apiVersion", "kind", "metadata"]
    assert field(OpenAPI.V3, schema)["required"] == ["kind", "apiVersion"]
    # In v2, listing fields would make all others unknown.
    assert field(OpenAPI.V2, schema) == {EMBEDDED: True, PRESERVE: True, "required": ["kind"]}


def test_a_kind_that_keeps_unknown_fields_is_bare_in_v2() -> None:
    root = {PRESERVE: True, "properties": {"spec": A}}
    assert "properties" not in published(OpenAPI.V2, **root)
    assert published(OpenAPI.V3, **root)["properties"]["spec"] == A


@pytest.mark.parametrize("openapi", OpenAPI)
def test_what_is_not_structural_is_not_shown(openapi: OpenAPI) -> None:
    for bad in ({}, {"type": "file"}, {"$ref": "#/x"}):
        assert set(published(openapi, properties={"spec": bad})) == {
            "type",
            "x-kubernetes-group-version-kind",
        }


def test_lists_and_selectable_fields() -> None:
    crd = definition(version("v2", selectableFields=[{"jsonPath": ".spec.a"}]))
    crd["spec"]["names"]["listKind"] = "Widgets"
    found = published_schemas(crd, "v2", OpenAPI.V3)
    assert found.keys() == {"com.example.v2.Widget", "com.example.v2.Widgets"}
    listed = found["com.example.v2.Widgets"]
    assert listed["description"] == "Widgets is a list of Widget"
    assert listed["properties"]["items"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/com.example.v2.Widget"},
    }
    assert {repr(each["x-kubernetes-selectable-fields"]) for each in found.values()} == {
        "[{'fieldPath': 'spec.a'}]"
    }


def test_what_is_not_served_is_not_published() -> None:
    crd = definition(version("v2", served=False))
    assert published_schemas(crd, "v2", OpenAPI.V3) == {}
    assert published_schemas(crd, "v3", OpenAPI.V3) == {}


def test_bad_input() -> None:
    with pytest.raises(UnreadableDefinition, match=r"^spec\.group: .* must be a string"):
        published_schemas({"spec": {"group": 1}}, "v1", OpenAPI.V2)
    deep: Json = {"type": "object"}
    for _ in range(100_000):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(UnreadableDefinition, match="too deep"):
        published(OpenAPI.V3, **deep)
