"""Which fields of a kind `kubectl explain` shows, from the published OpenAPI v3.

kubectl walks through properties, the items of lists, the values of maps and allOf, but not through anyOf,
oneOf and not. So a field that an allOf restricts is shown twice. See pkg/explain/v2 in k8s.io/kubectl.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.publishing.rendering import Published


class NotExplained(ValueError):
    """`kubectl explain` fails at this field."""


@dataclass(frozen=True, slots=True)
class ExplainedField:
    """A line of `kubectl explain --recursive`."""

    level: int
    """1 for the fields of the object itself."""
    name: str
    type: str
    """The type as kubectl prints it, such as `[]map[string]Object`."""
    required: bool


def explained_fields(schema: Published) -> Iterator[ExplainedField]:
    """The lines of `kubectl explain --recursive`, without the fields of metadata.

    Raises NotExplained if kubectl fails, and RecursionError if schemas are nested too deeply.
    """
    return _fields(schema, 1)


def _fields(schema: Published, level: int) -> Iterator[ExplainedField]:
    required = frozenset(schema.get("required", ()))
    for name, each in sorted(schema.get("properties", {}).items()):
        yield ExplainedField(level, name, _type(name, each), name in required)
        yield from _fields(each, level + 1)
    for each in (*schema.get("allOf", ()), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(each, dict):
            yield from _fields(each, level)


def _type(name: str, schema: Published) -> str:
    prefix = ""
    at: Any = schema
    while at:
        additional = at.get("additionalProperties")
        if at.get("items"):
            prefix, at = f"{prefix}[]", at["items"]
        elif additional and isinstance(additional, dict):
            prefix, at = f"{prefix}map[string]", additional
        elif len(at.get("allOf", ())) == 1 and not at.get("properties"):
            at = at["allOf"][0]
        elif "$ref" in at:
            return f"{prefix}{at['$ref'].rpartition('.')[2]}"
        else:
            type_ = at.get("type", "object")
            return f"{prefix}{'Object' if type_ == 'object' else type_}"
    raise NotExplained(name)
