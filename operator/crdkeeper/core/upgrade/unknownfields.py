"""Keeps what a schema does not know, at every depth, as v1beta1 did by default.

Pruning goes by each schema on its own (structural-schema pruning, apiextensions-apiserver's
pkg/apiserver/schema/pruning): the mark at the root keeps unknown fields of the root, but a known field of an
object is pruned again by the schema of that field. So each schema of an object needs the mark.
"""

from typing import Any

from crdkeeper.apiserver.schema.props import EMBEDDED, PRESERVE


def keep_unknown_fields(schema: dict[str, Any]) -> int:
    """Mark a structural schema and all objects in it, in place; the number of new marks.

    An object's own metadata, and that of an embedded one, is left out: its fields are those of ObjectMeta.
    """
    marked = 0
    pending = [(schema, True)]
    while pending:
        node, whole = pending.pop()
        if node.get("type") == "object" and not node.get(PRESERVE):
            node[PRESERVE] = True
            marked += 1
        properties = node.get("properties")
        if isinstance(properties, dict):
            own = whole or node.get(EMBEDDED)
            pending += (
                (each, False)
                for name, each in properties.items()
                if isinstance(each, dict) and not (own and name == "metadata")
            )
        pending += (
            (node[key], False) for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)
        )
    return marked
