"""Compares allOf, anyOf, oneOf and not, which restrict a value as a whole.

Each alternative is compared as a unit: it is the same, or a different one. Whether a different one accepts
more or less is decided only if it follows from the junctor: another alternative of anyOf accepts more,
another one of oneOf may also accept less, if two of them match at once.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from crdkeeper.apiserver.golang.text import json_text
from crdkeeper.apiserver.schema.props import INT_OR_STRING, Schema
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.change import ChangeKind
from crdkeeper.core.compatibility.node import FieldPair, Teller, cut

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def compare_combinations(node: FieldPair, teller: Teller) -> None:
    """The junctors of one node."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        old, new = _alternatives(node.old, keyword), _alternatives(node.new, keyword)
        if not old and not new:
            continue
        teller.findings.spend(len(old) + len(new))
        before, after = Counter(map(_canonical, old)), Counter(map(_canonical, new))
        gone, come = before - after, after - before
        if gone or come:
            kind = _judge(keyword, bool(old), bool(new), bool(gone), bool(come))
            _tell(kind, _told(keyword, gone, come), keyword, node, teller)
    old_not, new_not = node.old.get("not"), node.new.get("not")
    if old_not is None and new_not is None:
        return
    teller.findings.spend()
    if old_not is None:
        _tell(kinds.JUNCTOR_TIGHTENED, f"not: {cut(_canonical(new_not))} added", "not", node, teller)
    elif new_not is None:
        teller.say(kinds.JUNCTOR_LOOSENED, node, f"not: {cut(_canonical(old_not))} removed", "not")
    elif _canonical(old_not) != _canonical(new_not):
        message = f"not: {cut(_canonical(old_not))} → {cut(_canonical(new_not))}"
        _tell(kinds.JUNCTOR_CHANGED, message, "not", node, teller)


def _tell(kind: ChangeKind, message: str, keyword: str, node: FieldPair, teller: Teller) -> None:
    if kind is kinds.JUNCTOR_LOOSENED:
        teller.say(kind, node, message, keyword)
        return
    changed = {keyword: node.new.get(keyword)}
    teller.say_tried(kind, node, message, changed, proved=kinds.JUNCTOR_TIGHTENED)


def _alternatives(schema: Schema, keyword: str) -> Sequence[Schema]:
    """The alternatives, except the two notations for an integer or string."""
    found: Sequence[Schema] = schema.get(keyword) or ()
    if not schema.get(INT_OR_STRING):
        return found
    if keyword == "anyOf" and found == _INT_OR_STRING:
        return ()
    if keyword == "allOf" and found and found[0] == {"anyOf": _INT_OR_STRING}:
        return found[1:]
    return found


def _judge(keyword: str, before: bool, after: bool, gone: bool, come: bool) -> ChangeKind:
    if not after:
        return kinds.JUNCTOR_LOOSENED
    if not before:
        return kinds.JUNCTOR_TIGHTENED
    if keyword == "oneOf" or (gone and come):
        return kinds.JUNCTOR_CHANGED
    tighter = come if keyword == "allOf" else gone
    return kinds.JUNCTOR_TIGHTENED if tighter else kinds.JUNCTOR_LOOSENED


def _told(keyword: str, gone: Counter[str], come: Counter[str]) -> str:
    parts = [f"{cut(each)} removed" for each in gone] + [f"{cut(each)} added" for each in come]
    more = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
    return f"{keyword}: " + ", ".join(parts[:4]) + more


def _canonical(schema: Any) -> str:
    return json_text(_sorted(schema))


def _sorted(value: Any) -> Any:
    """The schema, with those lists sorted whose order has no meaning."""
    if isinstance(value, list):
        return [_sorted(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: sorted(each) if key == "required" and isinstance(each, list) else _sorted(each)
        for key, each in value.items()
    }
