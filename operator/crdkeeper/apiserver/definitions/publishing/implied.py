"""What the API server adds to the schemas that it publishes: apiVersion, kind and metadata.

As in buildKubeNative, addEmbeddedProperties and buildListSchema of k8s.io/apiextensions-apiserver. The
descriptions of these fields, which are the same for all kinds, are left out.
"""

from enum import Enum
from typing import Any

from crdkeeper.apiserver.definitions.publishing.rendering import Published
from crdkeeper.apiserver.schema.props import EMBEDDED, PRESERVE

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"


class OpenAPI(Enum):
    """A version of OpenAPI, and where its documents keep schemas."""

    V2 = "#/definitions/"
    V3 = "#/components/schemas/"


def add_root_fields(schema: Published, openapi: OpenAPI) -> None:
    """Add the fields of every object, overriding the schema's own."""
    properties: Published = schema.setdefault("properties", {})
    properties["metadata"] = _described_reference(f"{_META}.ObjectMeta", openapi)
    _add_type_meta(properties)


def add_embedded_fields(schema: Published, openapi: OpenAPI) -> None:
    """Add the fields of every object to all embedded resources. Raises RecursionError if too deep."""
    for each in (
        *schema.get("properties", {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ):
        if isinstance(each, dict):
            add_embedded_fields(each, openapi)
    # In v2, listing fields would make unknown ones errors.
    if not schema.get(EMBEDDED) or (schema.get(PRESERVE) and openapi is OpenAPI.V2):
        return
    add_root_fields(schema, openapi)
    required = schema.get("required", [])
    schema["required"] = [*required, *(each for each in ("kind", "apiVersion") if each not in required)]


def list_schema(kind: str, list_kind: str, item: str, openapi: OpenAPI) -> Published:
    """The schema of a list of the kind whose component has the name `item`."""
    properties: Published = {
        "items": {"type": "array", "items": {"$ref": f"{openapi.value}{item}"}},
        "metadata": _described_reference(f"{_META}.ListMeta", openapi),
    }
    _add_type_meta(properties)
    return {
        "type": "object",
        "description": f"{list_kind} is a list of {kind}",
        "required": ["items"],
        "properties": properties,
    }


def _add_type_meta(properties: dict[str, Any]) -> None:
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string"}


def _described_reference(name: str, openapi: OpenAPI) -> Published:
    # In v3 a reference has no siblings, but this one needs a description.
    reference = {"$ref": f"{openapi.value}{name}"}
    return reference if openapi is OpenAPI.V2 else {"allOf": [reference]}
