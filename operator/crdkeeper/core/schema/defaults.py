"""Whether the defaults of a structural schema may stand.

A default must not hold fields that would be pruned, which is decided exactly. And it must be a valid value.
"""

from typing import Any

from crdkeeper.core.schema import rules
from crdkeeper.core.schema.defaultvalue import Unsure, check_value
from crdkeeper.core.schema.fieldpath import Path
from crdkeeper.core.schema.props import EMBEDDED, PRESERVE, Schema
from crdkeeper.core.schema.violation import Report

_META = frozenset(("apiVersion", "kind", "metadata"))


def check_defaults(schema: Schema, path: Path, report: Report) -> None:
    """Reports the defaults of a structural schema; those in maps are the business of other rules."""
    _check({**schema, EMBEDDED: True}, path, report, in_meta=False)


def _check(schema: Schema, path: Path, report: Report, *, in_meta: bool) -> None:
    embedded = bool(schema.get(EMBEDDED))
    in_meta = in_meta and not embedded
    if "default" in schema:
        _check_default(schema, path.child("default"), report, in_meta=in_meta)
    items = schema.get("items")
    if isinstance(items, dict):
        _check(items, path.child("items"), report, in_meta=in_meta)
    properties = schema.get("properties")
    if properties:
        below = path.child("properties")
        for name, each in properties.items():
            _check(each, below.key(name), report, in_meta=in_meta or (embedded and name in _META))


def _check_default(schema: Schema, path: Path, report: Report, *, in_meta: bool) -> None:
    value = schema["default"]
    if in_meta:
        report.leave(
            rules.DEFAULT_VALUE, path, "whether metadata with this default is valid is not decided here"
        )
        return
    if _has_unknown(value, schema):
        report.invalid(rules.DEFAULT_VALUE, path, value, "must not have unknown fields")
    try:
        check_value(value, schema, path, report)
    except Unsure:
        report.leave(rules.DEFAULT_VALUE, path, "whether the default is a valid value is not decided here")


def _has_unknown(value: Any, schema: Schema | None) -> bool:
    """Whether pruning would remove a field of the value."""
    if isinstance(value, list):
        if schema is not None and schema.get(PRESERVE):
            return any(_skipped_has_unknown(each, _item(schema)) for each in value)
        return any(_has_unknown(each, _item(schema)) for each in value)
    if not isinstance(value, dict):
        return False
    if schema is None:
        return bool(value)
    if schema.get(PRESERVE):
        return _skipped_has_unknown(value, schema)
    for key, each in value.items():
        if schema.get(EMBEDDED) and key in _META:
            continue
        known, below = _field(key, schema)
        if not known or _has_unknown(each, below):
            return True
    return False


def _skipped_has_unknown(value: Any, schema: Schema | None) -> bool:
    """The same where unknown fields are preserved: pruning begins again in the fields that are known."""
    if schema is None:
        return False
    if isinstance(value, list):
        return any(_skipped_has_unknown(each, _item(schema)) for each in value)
    if not isinstance(value, dict):
        return False
    for key, each in value.items():
        if schema.get(EMBEDDED) and key in _META:
            continue
        known, below = _field(key, schema)
        if known and _has_unknown(each, below):
            return True
    return False


def _item(schema: Schema | None) -> Schema | None:
    items = schema.get("items") if schema is not None else None
    return items if isinstance(items, dict) else None


def _field(key: str, schema: Schema) -> tuple[bool, Schema | None]:
    properties = schema.get("properties") or {}
    if key in properties:
        return True, properties[key]
    if "additionalProperties" in schema:
        values = schema["additionalProperties"]
        return True, values if isinstance(values, dict) else None
    return False, None
