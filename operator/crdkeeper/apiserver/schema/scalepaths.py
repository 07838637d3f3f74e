"""Where the paths of the scale subresource lead in a schema, and whether the field there can be scaled.

The API server checks neither when a CRD is written. A field that no schema declares is pruned, so /scale
never finds it; with a value of a wrong type, the server rejects the whole object.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema

SCALE_TYPES: Final[Mapping[str, str]] = {
    "specReplicasPath": "integer",
    "statusReplicasPath": "integer",
    "labelSelectorPath": "string",
}
"""The type that each path must lead to."""


@dataclass(frozen=True, slots=True)
class SchemaSpot:
    """A place in a schema."""

    schema: Schema
    unpruned: bool = False
    """Whether everything below is preserved, declared or not: below an undeclared field that is preserved,
    and everywhere with preserveUnknownFields from v1beta1.
    """

    def child(self, name: str) -> "SchemaSpot | None":
        """A field; None if it is pruned."""
        properties = self.schema.get("properties") or {}
        if name in properties:
            return SchemaSpot(properties[name], self.unpruned)
        if self.schema.get(EMBEDDED) and name in ("apiVersion", "kind", "metadata"):
            return SchemaSpot({"type": "object"} if name == "metadata" else {"type": "string"}, True)
        values = self.schema.get("additionalProperties")
        if isinstance(values, dict):
            return SchemaSpot(values, self.unpruned)
        return SchemaSpot({}, True) if values is True or self._keeps_unknown else None

    @property
    def items(self) -> "SchemaSpot":
        """The entries of a list."""
        items = self.schema.get("items")
        return SchemaSpot(items, self.unpruned) if isinstance(items, dict) else SchemaSpot({}, True)

    def lacks_type(self, wanted: str) -> str:
        """What is declared here instead of that type; empty if the type matches, or anything is allowed."""
        found = self.schema.get("type")
        if found == wanted or (not found and self._keeps_unknown and not self.schema.get(INT_OR_STRING)):
            return ""
        if self.schema.get(INT_OR_STRING):
            return "an integer or a string"
        return f"of type {found}" if found else "of no type"

    @property
    def _keeps_unknown(self) -> bool:
        return self.unpruned or bool(self.schema.get(PRESERVE))


def find(root: SchemaSpot, path: str) -> SchemaSpot | None:
    """The target of a path; None if the field would be pruned."""
    here: SchemaSpot | None = root
    for name in path.removeprefix(".").split("."):
        if here is None:
            return None
        here = here.child(name)
    return here


@dataclass(frozen=True, slots=True)
class ScalePathProblem:
    """A path of the scale subresource that leads nowhere, or to a field of another type."""

    key: str
    """Which of the paths, such as specReplicasPath."""
    path: str
    declared: bool
    instead: str
    """What is declared there, such as `of type string`; empty if nothing is."""


def scale_path_problems(scale: Mapping[str, Any], root: SchemaSpot) -> list[ScalePathProblem]:
    """The problems of `subresources.scale` under the schema of its version."""
    problems = []
    for key, wanted in SCALE_TYPES.items():
        path = scale.get(key)
        if not path:
            continue
        found = find(root, path)
        instead = "" if found is None else found.lacks_type(wanted)
        if found is None or instead:
            problems.append(ScalePathProblem(key, path, found is not None, instead))
    return problems
