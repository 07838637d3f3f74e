"""The CEL types that a structural schema declares, with the maximum size of each value.

The checker uses the types, the cost estimate the sizes. Follows SchemaDeclType of k8s.io/apiserver
(pkg/cel/common/schemas.go), WithTypeAndObjectMeta of k8s.io/apiextensions-apiserver and the limits of
pkg/cel/limits.go. Fields are declared when they are first used: a rule uses only a few of a thousand.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from crdkeeper.apiserver.cel.syntax.names import KEYWORDS, escape
from crdkeeper.apiserver.cel.types import types
from crdkeeper.apiserver.cel.types.types import Type
from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema

MAX_REQUEST_BYTES = 3 * 1024 * 1024
_MAX_TEXT = MAX_REQUEST_BYTES - 2
_MAX_TIME_TEXT = 32
_DATE_TEXT = 12
_NAME_LENGTH = 253

SELF_TYPE = "selfType"
"""The name of the type of `self`; the server appends a number of its own."""


class Declared:
    """A schema's declaration.

    `kind` is that of the CEL type, or `object`. `max_elements` bounds the size of a value: bytes of a string,
    items of a list, entries of a map, 0 if size is meaningless. `min_size` is the size of the shortest value
    as JSON in bytes. `element` is the declaration of a list's items or a map's values. `whole` declares the
    fields with what a schema leaves open.
    """

    __slots__ = ("_fields", "element", "kind", "max_elements", "min_size", "schema", "whole")

    def __init__(
        self,
        kind: str,
        min_size: int,
        max_elements: int = 0,
        element: "Declared | None" = None,
        schema: Schema | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self.kind = kind
        self.min_size = min_size
        self.max_elements = max_elements
        self.element = element
        self.schema = schema
        self.whole = whole
        self._fields: dict[str, Declared] | None = None

    @property
    def fields(self) -> Mapping[str, "Declared"]:
        """The fields of an object that CEL can name, by their names in CEL; empty for anything else."""
        if self._fields is None:
            self._fields = {}
            properties = self.schema.get("properties", {}) if self.schema is not None else {}
            for name, schema in properties.items():
                escaped = escape(name)
                field = declare(schema, root=embedded(schema), whole=self.whole)
                if escaped is not None and field is not None:
                    self._fields[escaped] = field
        return self._fields

    @property
    def most_in_request(self) -> int:
        """How many such values fit into one request (maxCardinality)."""
        return MAX_REQUEST_BYTES // (self.min_size + 1)

    def type(self, name: str = SELF_TYPE) -> Type:
        """The CEL type, with the name of an object at this place (MaybeAssignTypeName)."""
        plain = _TYPES.get(self.kind)
        if plain is not None:
            return plain
        if self.kind == "object":
            return Type("struct", name, fields=_Fields(self, name))
        assert self.element is not None
        if self.kind == "list":
            return types.list_of(self.element.type(f"{name}.@idx"))
        return types.map_of(types.STRING, self.element.type(f"{name}.@elem"))


class _Fields:
    """Looks up the type of each field of an object once."""

    __slots__ = ("_declared", "_known", "_name")

    def __init__(self, declared: Declared, name: str) -> None:
        self._declared = declared
        self._name = name
        self._known: dict[str, Type] = {}

    def __call__(self, field: str) -> Type | None:
        known = self._known.get(field)
        if known is None:
            fields = self._declared.fields
            declared = fields.get(field)
            if declared is None and field in KEYWORDS:
                # Words reserved elsewhere can be used unescaped after a dot.
                field = f"__{field}__"
                declared = fields.get(field)
            if declared is not None:
                known = self._known[field] = declared.type(f"{self._name}.{field}")
        return known

    def names(self) -> Iterable[str]:
        return self._declared.fields


_TYPES = {
    "dyn": types.DYN,
    "bytes": types.BYTES,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "string": types.STRING,
    "bool": types.BOOL,
    "double": types.DOUBLE,
    "int": types.INT,
}
_PLAIN = {
    "boolean": Declared("bool", 4),
    "number": Declared("double", 1),
    "integer": Declared("int", 1),
}
KEY = Declared("string", 2)
"""The declaration of a map's keys."""


def embedded(schema: Schema) -> bool:
    """Whether a schema is that of an embedded resource."""
    return bool(schema.get(EMBEDDED))


def leaves_open(schema: Schema) -> bool:
    """Whether a schema allows all data, or all fields and declares none."""
    kind = schema.get("type", "")
    if kind != "object":
        return not kind and not schema.get(INT_OR_STRING)
    if schema.get("properties") or isinstance(schema.get("additionalProperties"), Mapping):
        return False
    return bool(schema.get(PRESERVE)) or schema.get("additionalProperties") is True


def declare(schema: Schema, *, root: bool, whole: bool = False) -> Declared | None:
    """The declaration of a schema; None if CEL cannot see its values. `root` is that of a resource.

    `whole` declares as dyn what a schema leaves open, which the rules of a CRD cannot see.
    """
    if whole and leaves_open(schema):
        return Declared("dyn", 1)
    if schema.get(INT_OR_STRING):
        limit = schema.get("maxLength")
        return Declared("dyn", 1, _MAX_TEXT if limit is None else max(limit, 0) * 4)
    if root:
        schema = _with_metadata(schema)
    kind = schema.get("type", "")
    if kind == "object":
        return _object(schema, whole=whole)
    if kind == "string":
        return _text(schema)
    if kind == "array":
        return _list(schema, whole=whole)
    return _PLAIN.get(kind)


def _list(schema: Schema, *, whole: bool) -> Declared | None:
    items = schema.get("items")
    if not isinstance(items, dict):
        return None
    element = declare(items, root=embedded(items), whole=whole)
    if element is None:
        return None
    limit = schema.get("maxItems")
    if limit is None:
        limit = _MAX_TEXT // (element.min_size + 1)
    return Declared("list", 2, max(limit, 0), element)


def _object(schema: Schema, *, whole: bool) -> Declared | None:
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        element = declare(values, root=embedded(values), whole=whole)
        if element is None:
            return None
        limit = schema.get("maxProperties")
        if limit is None:
            limit = _MAX_TEXT // (element.min_size + 6)
        return Declared("map", 2, max(limit, 0), element)
    size = 2
    properties = schema.get("properties", {})
    for name in set(schema.get("required", ())):
        field = properties.get(name)
        if field is not None and field.get("default") is None:
            declared = declare(field, root=embedded(field))
            if declared is not None:
                size += len(name.encode()) + declared.min_size + 4
    return Declared("object", size, schema=schema, whole=whole)


def _text(schema: Schema) -> Declared:
    form = schema.get("format", "")
    limit = schema.get("maxLength")
    if form == "byte":
        return Declared("bytes", 2, _MAX_TEXT if limit is None else max(limit, 0))
    if form == "duration":
        return Declared("duration", 3, _MAX_TIME_TEXT)
    if form == "date":
        return Declared("timestamp", _DATE_TEXT, _DATE_TEXT)
    if form == "date-time":
        return Declared("timestamp", 21, _MAX_TIME_TEXT)
    if limit is not None:
        return Declared("string", 2, max(limit, 0) * 4)
    values = schema.get("enum")
    if values:
        return Declared(
            "string", 2, max(len(each.encode()) if isinstance(each, str) else 0 for each in values)
        )
    return Declared("string", 2, _MAX_TEXT)


def _with_metadata(schema: Schema) -> Schema:
    """The schema of a resource with the fields of every resource, whether or not it names them."""
    properties = schema.get("properties", {})
    metadata = properties.get("metadata", {})
    named = metadata.get("properties", {})
    if (
        _is(properties, "kind", "string")
        and _is(properties, "apiVersion", "string")
        and metadata.get("type") == "object"
        and _is(named, "name", "string")
        and _is(named, "generateName", "string")
    ):
        return schema
    completed: dict[str, Any] = dict(properties)
    completed["kind"] = completed["apiVersion"] = {"type": "string"}
    completed["metadata"] = {
        "type": "object",
        "properties": {
            "name": _capped(named.get("name", {}), _NAME_LENGTH),
            "generateName": _capped(named.get("generateName", {}), _NAME_LENGTH - 1),
        },
    }
    return {**schema, "properties": completed}


def _is(properties: Mapping[str, Schema], name: str, kind: str) -> bool:
    return bool(properties.get(name, {}).get("type") == kind)


def _capped(schema: Schema, limit: int) -> Schema:
    own = schema.get("maxLength")
    return {"type": "string", "maxLength": limit if own is None else min(own, limit)}
