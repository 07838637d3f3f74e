"""The part of a published schema that OpenAPI v2 shows.

v2 supports neither null nor alternatives, and older kubectl considers every property that is not listed an
error. So the API server leaves out what such clients would misread: the junctors everywhere, type and fields
of nullable values, and the fields of what preserves unknown ones. As in ToStructuralOpenAPIV2 of
k8s.io/apiextensions-apiserver; the defaults are removed later (PruneDefaults in k8s.io/kube-openapi).
"""

from crdkeeper.apiserver.definitions.publishing.rendering import Published
from crdkeeper.apiserver.schema.props import PRESERVE, Schema

_JUNCTORS = ("allOf", "oneOf", "anyOf", "not")


def reduce(schema: Published) -> None:
    """Remove what v2 does not show from a v3 schema and everything below it.

    Raises RecursionError if schemas are nested too deeply.
    """
    for key in (*_JUNCTORS, "default"):
        schema.pop(key, None)
    if shows_no_fields(schema):
        schema.pop("items", None)
        schema.pop("properties", None)
    if schema.pop("nullable", False):
        schema.pop("type", None)
    if _loses_its_type(schema):
        del schema["type"]
    additional = schema.get("additionalProperties")
    properties = schema.get("properties", {})
    nullable = {name for name, each in properties.items() if each.get("nullable")}
    if isinstance(additional, dict) and additional.get("nullable"):
        schema.pop("required", None)
    elif nullable and "required" in schema:
        _require(schema, [each for each in schema["required"] if each not in nullable])
    for each in (schema.get("items"), additional, *properties.values()):
        if isinstance(each, dict):
            reduce(each)


def shows_no_fields(schema: Schema) -> bool:
    """Whether v2 shows neither properties nor items of a schema."""
    return bool(schema.get("nullable") or schema.get(PRESERVE))


def _loses_its_type(schema: Published) -> bool:
    type_ = schema.get("type")
    return (type_ == "array" and "items" not in schema) or (type_ == "object" and bool(schema.get(PRESERVE)))


def _require(schema: Published, names: list[str]) -> None:
    if names:
        schema["required"] = names
    else:
        del schema["required"]
