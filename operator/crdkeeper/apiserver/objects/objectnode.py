"""A decoded schema as a tree for walks over objects: pruning, defaulting and list types use it.

Built once per schema. Each node knows which of the walks have anything to do below it, so that they can stop.
"""

from collections.abc import Iterator
from typing import Any, Final

from crdkeeper.apiserver.objects.jsonvalue import stored
from crdkeeper.apiserver.schema.props import EMBEDDED, LIST_MAP_KEYS, LIST_TYPE, PRESERVE, VALIDATIONS, Schema

META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))


class ObjectNode:
    """One node of the structural schema, without junctors."""

    __slots__ = (
        "additional",
        "any_key",
        "default",
        "default_size",
        "embedded",
        "fills",
        "has_defaults",
        "has_embedded",
        "has_list_types",
        "has_rules",
        "items",
        "list_type",
        "map_keys",
        "nullable",
        "preserve",
        "properties",
        "rules",
        "schema",
        "type",
    )

    def __init__(self, schema: Schema, *, embedded: bool = False) -> None:
        self.schema = schema
        self.type: str = schema.get("type", "")
        self.properties = {name: ObjectNode(each) for name, each in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.additional = ObjectNode(additional) if isinstance(additional, dict) else None
        self.any_key = additional is not None
        items = schema.get("items")
        self.items = ObjectNode(items) if isinstance(items, dict) else None
        self.preserve = bool(schema.get(PRESERVE))
        self.embedded = embedded or bool(schema.get(EMBEDDED))
        self.nullable = bool(schema.get("nullable"))
        self.default = stored(schema.get("default"))
        """The default as the API server stores it; None if there is none, or if it is null."""
        self.default_size = _size(self.default)
        self.list_type = schema.get(LIST_TYPE)
        self.map_keys: list[str] = schema.get(LIST_MAP_KEYS, [])
        self.rules: list[Schema] = schema.get(VALIDATIONS, [])
        children = list(self.children())
        self.fills = [(name, each) for name, each in self.properties.items() if each.default is not None]
        self.has_defaults: bool = bool(self.fills) or any(
            each.has_defaults or each.default is not None for each in children
        )
        self.has_embedded: bool = self.embedded or any(each.has_embedded for each in children)
        self.has_list_types: bool = self.list_type in ("set", "map") or any(
            each.has_list_types for each in children
        )
        self.has_rules: bool = bool(self.rules) or any(each.has_rules for each in children)

    def children(self) -> Iterator["ObjectNode"]:
        """All nodes directly below."""
        yield from self.properties.values()
        if self.additional is not None:
            yield self.additional
        if self.items is not None:
            yield self.items

    def child(self, key: str) -> "ObjectNode | None":
        """The schema of an object's field."""
        found = self.properties.get(key)
        return found if found is not None else self.additional


def copied(value: Any) -> Any:
    """A deep copy of JSON."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copied(each) for each in value]
    return value


def _size(value: Any) -> int:
    """The number of values in JSON, where an object or a list counts twice."""
    if isinstance(value, dict):
        return 2 + sum(map(_size, value.values()))
    return 2 + sum(map(_size, value)) if isinstance(value, list) else 1
