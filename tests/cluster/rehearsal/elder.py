"""Earlier states of CRDs: so that objects are older than the restrictions and defaults."""

import copy
from collections.abc import Iterator
from typing import Any

Json = Any


_RESTRICTIONS = (
    "default", "enum", "pattern", "format", "minLength", "maxLength", "minimum", "maximum", "multipleOf",
    "minItems", "maxItems", "minProperties", "maxProperties", "anyOf", "oneOf", "allOf", "not",
    "x-kubernetes-validations",
)  # fmt: skip


def elder(crd: Json) -> Json:
    """The CRD as it may have been once: with the same fields, but without restrictions and defaults."""
    found = copy.deepcopy(crd)
    for version in found["spec"]["versions"]:
        for node in _nodes(version["schema"]["openAPIV3Schema"]):
            for key in _RESTRICTIONS:
                node.pop(key, None)
            node.pop("required", None)
        for node in _nodes(version["schema"]["openAPIV3Schema"]):
            if "x-kubernetes-list-map-keys" in node:
                node["items"]["required"] = list(node["x-kubernetes-list-map-keys"])
    return found


def _nodes(schema: Json) -> Iterator[Json]:
    """All nodes of a schema."""
    yield schema
    for each in (schema.get("properties") or {}).values():
        yield from _nodes(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])
