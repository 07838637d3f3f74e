"""What OpenAPI v2 keeps of a published schema.

v2 knows neither null nor alternatives, and older kubectl takes every property that is not listed for an
error. So the API server leaves out what such clients would misread: the junctors everywhere, the type and
the fields of what may be null, the fields of what keeps unknown ones. As ToStructuralOpenAPIV2 in
k8s.io/apiextensions-apiserver; the defaults go later (PruneDefaults in k8s.io/kube-openapi).
"""

from crdkeeper.apiserver.definitions.publishing.rendering import Published
from crdkeeper.apiserver.schema.props import PRESERVE, Schema

_JUNCTORS = ("allOf", "oneOf", "anyOf", "not")


def reduce(schema: Published) -> None:
    """Takes from a schema of v3, and from all below, what v2 does not show.

    Raises RecursionError where schemas nest too deep.
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
