"""Compares the fields of objects: which exist, which are required, and what happens to unknown ones."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from crdkeeper.apiserver.golang.text import json_text
from crdkeeper.apiserver.schema.props import EMBEDDED, PRESERVE, Schema, equal
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.node import FieldPair, Teller, shown
from crdkeeper.core.compatibility.same import same
from crdkeeper.core.compatibility.values import types


class _Others(Enum):
    """What happens to fields that the schema does not name and that have no schema."""

    PRUNED = "pruned"
    EMPTIED = "kept, but objects in them are emptied"
    KEPT = "kept"

    @property
    def rank(self) -> int:
        """The higher, the more is kept."""
        return list(_Others).index(self)


_FIELDS_PER_STEP: Final = 8
_TEXT: Final[Schema] = {"type": "string"}
_ALWAYS: Final[Mapping[str, Schema]] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", PRESERVE: True, "properties": {"name": _TEXT, "generateName": _TEXT}},
}
"""Fields that every resource has, with what is true of them even if its schema does not mention them."""


def compare_fields(node: FieldPair, teller: Teller) -> Iterator[FieldPair]:
    """Report what changed about the fields of an object; returns those in both schemas that differ.

    Raises Exhausted.
    """
    old_others, new_others = _others(node.old), _others(node.new)
    yield from _compare_others(old_others, new_others, node, teller)
    _compare_embedded(node, teller)
    always = _ALWAYS if not node.field or (node.old.get(EMBEDDED) and node.new.get(EMBEDDED)) else {}
    old, new = (_with_known(_properties(each), always) for each in (node.old, node.new))
    required = frozenset(node.new.get("required", ()))
    added = required - frozenset(node.old.get("required", ())) - always.keys()
    reported = _compare_removed(old, new, old_others, new_others, node, teller)
    reported |= _compare_added(old, new, old_others, new_others, added, node, teller)
    _compare_required(added - reported, old, new, always, node, teller)
    teller.findings.spend((len(old) + len(new)) // _FIELDS_PER_STEP)
    for name, each in old.items():
        if name in new and not same(each, new[name], teller.findings):
            yield node.property(name, each, new[name], required=name in required)


def _properties(schema: Schema) -> Mapping[str, Schema]:
    found: Mapping[str, Schema] = schema.get("properties") or {}
    return found


def _with_known(properties: Mapping[str, Schema], always: Mapping[str, Schema]) -> Mapping[str, Schema]:
    """The properties with what is true of apiVersion, kind and metadata in addition to the schema."""
    found = dict(properties)
    for name, known in always.items():
        said = found.get(name, {})
        inner = {**known.get("properties", {}), **_properties(said)}
        found[name] = {**known, **said, "properties": inner} if inner else {**known, **said}
    return found


def _others(schema: Schema) -> _Others | Schema:
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return values
    if values:
        return _Others.EMPTIED
    return _Others.KEPT if schema.get(PRESERVE) else _Others.PRUNED


def _compare_others(
    old: _Others | Schema, new: _Others | Schema, node: FieldPair, teller: Teller
) -> Iterator[FieldPair]:
    if not isinstance(old, _Others) and not isinstance(new, _Others):
        yield node.child("additionalProperties", f"{node.field}.*", old, new)
    elif old is new:
        return
    elif isinstance(old, _Others) and isinstance(new, _Others):
        fewer = old.rank > new.rank
        kind = kinds.UNKNOWN_FIELDS_PRUNED if fewer else kinds.UNKNOWN_FIELDS_KEPT
        message = f"fields that the schema does not name: {old.value} → {new.value}"
        teller.say(kind, node, message, PRESERVE)
    elif new is _Others.PRUNED:
        message = "a map of any keys → an object with named fields"
        teller.say(kinds.MAP_CLOSED, node, message, "additionalProperties")
    elif old is _Others.PRUNED and _properties(node.old):
        message = "an object with named fields → a map of any keys"
        teller.say(kinds.MAP_OPENED, node, message, "additionalProperties")
    elif old is _Others.PRUNED:
        message = "an object without fields → a map of any keys"
        teller.say(kinds.UNKNOWN_FIELDS_KEPT, node, message, "additionalProperties")
    elif isinstance(old, _Others):
        message = "values of the map: anything → what the schema says"
        teller.say(kinds.MAP_VALUES_TIGHTENED, node, message, "additionalProperties")
    else:
        message = "values of the map: what the schema said → anything"
        teller.say(kinds.MAP_VALUES_LOOSENED, node, message, "additionalProperties")
        if new is _Others.EMPTIED and _may_hold_fields(old):
            message = f"what the values of the map hold: kept → {new.value}"
            teller.say(kinds.UNKNOWN_FIELDS_PRUNED, node, message, "additionalProperties")


def _may_hold_fields(schema: Schema) -> bool:
    """Whether values of the schema may be objects, or lists of them."""
    possible = types(schema)
    while "array" in possible and "object" not in possible:
        schema = schema.get("items") or {}
        possible = types(schema)
    return "object" in possible


def _compare_embedded(node: FieldPair, teller: Teller) -> None:
    old, new = bool(node.old.get(EMBEDDED)), bool(node.new.get(EMBEDDED))
    if new and not old:
        teller.say(kinds.EMBEDDED_ADDED, node, "any object → a whole resource", EMBEDDED)
    elif old and not new:
        teller.say(kinds.EMBEDDED_REMOVED, node, "a whole resource → any object", EMBEDDED)


def _compare_removed(
    old: Mapping[str, Schema],
    new: Mapping[str, Schema],
    old_others: _Others | Schema,
    others: _Others | Schema,
    node: FieldPair,
    teller: Teller,
) -> set[str]:
    """Report removed fields; returns those with nothing left to report."""
    gone = [name for name in old if name not in new]
    if not isinstance(others, _Others) and old_others is _Others.PRUNED:
        return set(gone)  # that the object is a map says it all
    come = [name for name in new if name not in old]
    for name in gone:
        if others is _Others.EMPTIED and _may_hold_fields(old[name]):
            message = f"what the field holds: kept → {others.value}"
            teller.say(kinds.UNKNOWN_FIELDS_PRUNED, node, message, name=name)
        elif others is not _Others.PRUNED:
            if others != old[name]:
                teller.say(kinds.FIELD_UNDESCRIBED, node, "the field left the schema", name=name)
        else:
            message = f"the field is gone{_renamed(name, old, new, gone, come, teller)}"
            teller.say(kinds.FIELD_REMOVED, node, message, name=name)
    return set(gone)


def _renamed(
    name: str,
    old: Mapping[str, Schema],
    new: Mapping[str, Schema],
    gone: list[str],
    come: list[str],
    teller: Teller,
) -> str:
    """A guess to help people: the only new field has the schema of the removed one."""
    if len(gone) != 1 or len(come) != 1:
        return ""
    teller.findings.spend()
    return (
        f"; {json_text(come[0])}, which is new, has the same schema" if equal(old[name], new[come[0]]) else ""
    )


def _compare_added(
    old: Mapping[str, Schema],
    new: Mapping[str, Schema],
    old_others: _Others | Schema,
    new_others: _Others | Schema,
    required: frozenset[str],
    node: FieldPair,
    teller: Teller,
) -> set[str]:
    """Report new fields; returns those with nothing left to report."""
    reported = set()
    for name, schema in new.items():
        if name in old:
            continue
        reported.add(name)
        if name in required and "default" not in schema:
            teller.say(kinds.FIELD_ADDED_REQUIRED, node, "a new field that is required", name=name)
        elif old_others is _Others.PRUNED:
            _tell_added(name, schema, node, teller)
        elif new_others is _Others.KEPT and old_others != schema:
            message = "the schema restricts a field that was open before"
            teller.say(kinds.FIELD_DESCRIBED, node, message, name=name)
    return reported


def _tell_added(name: str, schema: Schema, node: FieldPair, teller: Teller) -> None:
    if "default" in schema:
        message = f"a new field with the default {shown(schema['default'])}"
        teller.say(kinds.FIELD_ADDED_WITH_DEFAULT, node, message, name=name)
    else:
        teller.say(kinds.FIELD_ADDED, node, "a new field", name=name)


def _compare_required(
    added: frozenset[str],
    old: Mapping[str, Schema],
    new: Mapping[str, Schema],
    always: Mapping[str, Schema],
    node: FieldPair,
    teller: Teller,
) -> None:
    for name in sorted(added):
        if "default" in new.get(name, {}):
            message = "required, but filled in by its default"
            teller.say(kinds.REQUIRED_WITH_DEFAULT, node, message, name=name)
        else:
            teller.say(kinds.REQUIRED_ADDED, node, "optional → required", name=name)
    before = frozenset(node.old.get("required", ())) - frozenset(node.new.get("required", ())) - always.keys()
    for name in sorted(before):
        if name in old and name not in new:
            continue  # that the field is gone says it all
        if "default" in new.get(name, {}):
            message = "optional, but filled in by its default"
            teller.say(kinds.REQUIRED_WITH_DEFAULT, node, message, name=name)
        else:
            teller.say(kinds.REQUIRED_REMOVED, node, "required → optional", name=name)
