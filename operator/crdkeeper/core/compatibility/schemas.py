"""Compares two schemas, field by field. Uses a stack, so that no nesting is too deep."""

from dataclasses import replace
from typing import Final

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.combinations import compare_combinations
from crdkeeper.core.compatibility.expressions import compare_rules
from crdkeeper.core.compatibility.fields import compare_fields
from crdkeeper.core.compatibility.folding import folded
from crdkeeper.core.compatibility.merging import compare_merging
from crdkeeper.core.compatibility.node import FieldPair, Teller, item_schema, with_guard
from crdkeeper.core.compatibility.same import same, size
from crdkeeper.core.compatibility.values import compare_types, compare_values, types

_STEPS_PER_NODE: Final = 4
_BYTES_PER_STEP: Final = 200
"""Bytes of the schemas per step, because defaults, enums and alternatives are compared as JSON."""


def compare_schemas(old: Schema, new: Schema, old_path: Path, path: Path, teller: Teller) -> None:
    """Report every difference; the paths are those of the two schemas. Raises Exhausted."""
    teller.findings.spend((size(old) + size(new)) // _BYTES_PER_STEP)
    if same(old, new, teller.findings):
        return
    stack = [FieldPair("", "", old, new, old_path, path, status=False, guards=with_guard((), new, ""))]
    while stack:
        node = stack.pop()
        node = replace(node, old=folded(node.old), new=folded(node.new))
        teller.findings.spend(_STEPS_PER_NODE)
        if not compare_types(node, teller):
            continue
        compare_values(node, teller)
        compare_combinations(node, teller)
        compare_rules(node, teller)
        compare_merging(node, teller)
        possible = types(node.old)
        if "object" in possible:
            stack.extend(compare_fields(node, teller))
        if "array" in possible:
            stack.extend(_items(node, teller))


def _items(node: FieldPair, teller: Teller) -> list[FieldPair]:
    old, new = item_schema(node.old), item_schema(node.new)
    if old is None or new is None:
        # Only a value of any type may be a list whose items have no schema.
        if new is not None:
            teller.say(kinds.FIELD_DESCRIBED, node, "the schema restricts items that were open before")
        elif old is not None:
            teller.say(kinds.FIELD_UNDESCRIBED, node, "items left the schema")
        return []
    return [node.child("items", f"{node.field}[]", old, new)]
