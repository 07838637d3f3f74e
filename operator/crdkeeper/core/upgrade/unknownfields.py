"""Preserves what a schema does not know, at every depth, as v1beta1 did by default.

Each schema prunes on its own (structural-schema pruning, apiextensions-apiserver's
pkg/apiserver/schema/pruning): the mark at the root preserves unknown fields of the root, but the schema of a
known field prunes that field's object again. So each schema of an object needs the mark.
"""

from typing import Any

from crdkeeper.apiserver.schema.props import EMBEDDED, PRESERVE


def keep_unknown_fields(schema: dict[str, Any]) -> int:
    """Mark a structural schema and all objects in it, in place; returns the number of new marks.

    Excludes an object's own metadata, and that of an embedded one: its fields are those of ObjectMeta.
    """
    marked = 0
    pending = [(schema, True)]
    while pending:
        node, whole = pending.pop()
        if node.get("type") == "object" and not node.get(PRESERVE):
            node[PRESERVE] = True
            marked += 1
        if node.get(PRESERVE) and node.get("additionalProperties") is True:
            # For the API server it names every value without naming any field, so it prunes all of theirs.
            del node["additionalProperties"]
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
