"""Compares how appliers share lists and objects: x-kubernetes-list-type, -list-map-keys and -map-type."""

from crdkeeper.apiserver.schema.props import LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE
from crdkeeper.core.compatibility import schemakinds as kinds
from crdkeeper.core.compatibility.node import FieldPair, Teller


def compare_merging(node: FieldPair, teller: Teller) -> None:
    """The merge keywords of one node. By default a list is atomic and an object granular."""
    _compare_list(node, teller)
    old, new = (each.get(MAP_TYPE) or "granular" for each in (node.old, node.new))
    if old != new:
        kind = kinds.MAP_REPLACED if new == "atomic" else kinds.MAP_MERGED
        teller.say(kind, node, f"map type: {old} → {new}", MAP_TYPE)


def _compare_list(node: FieldPair, teller: Teller) -> None:
    old, new = (each.get(LIST_TYPE) or "atomic" for each in (node.old, node.new))
    if old != new:
        kind = kinds.LIST_MERGED
        if new == "atomic":
            kind = kinds.LIST_REPLACED
        elif old != "atomic":
            kind = kinds.LIST_KEYS_CHANGED
        teller.say(kind, node, f"list type: {old} → {new}", LIST_TYPE)
    elif new == "map":
        before, after = (sorted(each.get(LIST_MAP_KEYS) or ()) for each in (node.old, node.new))
        if before != after:
            message = f"keys of the items: {', '.join(before)} → {', '.join(after)}"
            teller.say(kinds.LIST_KEYS_CHANGED, node, message, LIST_MAP_KEYS)
