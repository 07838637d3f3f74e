"""The kinds in an OpenAPI v3 document of the API server (`kubectl get --raw /openapi/v3/apis/apps/v1`).

Its schemas refer to each other, and say some things in other words than those of CRDs. Here they become
schemas as CRDs have them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from crdkeeper.apiserver.schema.props import INT_OR_STRING, PRESERVE, TYPES, Schema
from crdkeeper.core.templates.kinds import TargetKind

QUANTITY: Final = "quantity"
"""The format of what is read as a string, but can be written as a number."""
_ANYTHING: Final[Schema] = {PRESERVE: True}
_REFERENCE: Final = "#/components/schemas/"
_GROUP_VERSION_KIND: Final = "x-kubernetes-group-version-kind"
_MOST_DEPTH: Final = 100
_IN_NAMESPACE: Final = "/namespaces/{namespace}/"
_KEPT: Final = ("enum", "format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")


def is_openapi(value: object) -> bool:
    """Whether it is an OpenAPI v3 document."""
    return isinstance(value, Mapping) and str(value.get("openapi", "")).startswith("3.")


def kinds_of_openapi(document: Mapping[str, Any]) -> dict[tuple[str, str], TargetKind]:
    """The kinds in a document. What cannot be read in it counts as a schema that allows everything."""
    schemas = _mapping(_mapping(document.get("components")).get("schemas"))
    namespaced = dict(_scopes(_mapping(document.get("paths"))))
    resolver = _Resolver(schemas)
    found = {}
    for name, schema in schemas.items():
        for each in _entries(_mapping(schema).get(_GROUP_VERSION_KIND)):
            key = _key(each)
            if key in namespaced:
                made = resolver.named(name)
                found[key] = TargetKind(made if made.get("properties") else None, namespaced[key])
    return found


def _scopes(paths: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], bool]]:
    """Whether the objects of each kind are in namespaces, by the paths at which they are created."""
    for path, operations in paths.items():
        operation = _mapping(_mapping(operations).get("post"))
        if not path.endswith("}"):
            for each in _entries([operation.get(_GROUP_VERSION_KIND)]):
                yield _key(each), _IN_NAMESPACE in path


def _key(value: Mapping[str, Any]) -> tuple[str, str]:
    group, version = value.get("group"), value.get("version")
    return f"{group}/{version}" if group else f"{version}", f"{value.get('kind')}"


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class _Resolver:
    """Replaces references by the schemas that they name."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._known: dict[str, Schema] = {}

    def named(self, name: str, depth: int = 0) -> Schema:
        if name not in self._known:
            # What contains itself, such as the schema of schemas, allows everything in there.
            self._known[name] = _ANYTHING
            self._known[name] = self._schema(_mapping(self._schemas.get(name)), depth)
        return self._known[name]

    def _schema(self, schema: Mapping[str, Any], depth: int) -> Schema:
        if depth > _MOST_DEPTH:
            return _ANYTHING
        parts = _entries(schema.get("allOf"))
        reference = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
        if isinstance(reference, str):
            return self.named(reference.removeprefix(_REFERENCE), depth + 1)
        types = {each.get("type") for each in _entries(schema.get("oneOf"))}
        if schema.get("format") == "int-or-string" or types == {"integer", "string"}:
            return {INT_OR_STRING: True}
        if types == {"number", "string"}:
            return {INT_OR_STRING: True, "format": QUANTITY}
        kind = schema.get("type")
        if kind not in TYPES:
            return _ANYTHING
        made: dict[str, Any] = {"type": kind} | {key: schema[key] for key in _KEPT if key in schema}
        if kind == "array":
            made["items"] = self._schema(_mapping(schema.get("items")), depth + 1)
        elif kind == "object":
            properties = _mapping(schema.get("properties"))
            values = schema.get("additionalProperties")
            if properties:
                made["properties"] = {
                    key: self._schema(_mapping(each), depth + 1) for key, each in properties.items()
                }
            elif isinstance(values, Mapping):
                made["additionalProperties"] = self._schema(values, depth + 1)
            else:
                made[PRESERVE] = True
        return made
