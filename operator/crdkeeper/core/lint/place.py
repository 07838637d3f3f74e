"""A walk over the fields of a schema: each node once, with what the checks need to know about its context.

A large CRD has thousands of nodes, and most have no findings. So a place is small, and its path is computed
only on demand.
"""

from collections.abc import Iterator
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Step, joined
from crdkeeper.apiserver.schema.props import EMBEDDED, VALIDATIONS, Schema
from crdkeeper.core.lint.borrowed import is_borrowed
from crdkeeper.core.lint.comparisons import compared
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.found import Findings, Found, Steps
from crdkeeper.core.lint.references import References
from crdkeeper.core.lint.severity import Severity

_META = frozenset(("apiVersion", "kind", "metadata"))


class SchemaPlace:
    """A node of a version's schema: the root, a property, the items of a list or the values of a map."""

    __slots__ = (
        *("area", "name", "parent", "required", "schema", "stable", "tail", "text", "version"),
        *("_compared", "_references"),
    )

    def __init__(
        self,
        schema: Schema,
        parent: "SchemaPlace | None",
        tail: Steps,
        text: str,
        name: str = "",
        area: str = "",
        required: bool = False,
    ) -> None:
        self.schema = schema
        self.parent = parent
        self.tail = tail
        self.text = text
        self.name = name
        """The property's name; empty for other nodes."""
        self.area = area
        """The property of the root that it is or that contains it; empty at the root."""
        self.required = required
        """Whether the object around it requires this property."""
        self.stable: bool = parent.stable if parent is not None else False
        """Whether its version is beta or stable, so that its fields keep their names."""
        self.version: str = parent.version if parent is not None else ""
        self._compared: frozenset[str] | None = None
        self._references: References | None = None

    @property
    def compared(self) -> frozenset[str]:
        """The paths below it that its rules compare with the old object; empty for itself."""
        if self._compared is None:
            rules = self.schema.get(VALIDATIONS) or ()
            self._compared = compared(str(each.get("rule")) for each in rules)
        return self._compared

    @property
    def references(self) -> References:
        """Its properties that refer to a secret."""
        if self._references is None:
            self._references = References(self.schema)
        return self._references

    @property
    def field(self) -> str:
        """The path as shown to users, such as `v1:.spec.ports[*].name`; for the root, only the version."""
        return f"{self.version}:{self.path}" if self.parent is not None else self.version

    @property
    def path(self) -> str:
        """The path without the version; `.` for the root."""
        if self.parent is None:
            return "."
        texts: list[str] = []
        at: SchemaPlace = self
        while at.parent is not None:
            texts.append(at.text)
            at = at.parent
        return joined(reversed(texts))

    @property
    def steps(self) -> Steps:
        """The keys and indexes from the top of the CRD."""
        tails: list[Steps] = []
        at: SchemaPlace | None = self
        while at is not None:
            tails.append(at.tail)
            at = at.parent
        return tuple(step for tail in reversed(tails) for step in tail)

    def report(
        self,
        found: Findings,
        convention: Convention,
        message: str,
        *below: Step,
        severity: Severity | None = None,
    ) -> None:
        """Add a finding about this field; `below` leads to the invalid keyword.

        `severity` if it is not the convention's own.
        """
        severity = severity or convention.severity_in(stable=self.stable)
        found.items.append(Found(convention, self, below, message, severity))

    def child(self, name: str) -> "SchemaPlace | None":
        """The property of that name."""
        properties = self.schema.get("properties")
        schema = properties.get(name) if isinstance(properties, dict) else None
        if not isinstance(schema, dict):
            return None
        required = name in (self.schema.get("required") or ())
        area = self.area or name
        return SchemaPlace(
            schema, self, ("properties", name), f".{name}", name=name, area=area, required=required
        )

    def items(self) -> "SchemaPlace | None":
        """The items of a list."""
        schema = self.schema.get("items")
        return (
            SchemaPlace(schema, self, ("items",), "[*]", area=self.area) if isinstance(schema, dict) else None
        )

    def values(self) -> "SchemaPlace | None":
        """The values of a map."""
        schema = self.schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
        return SchemaPlace(schema, self, ("additionalProperties",), ".*", area=self.area)


def root_place(version: str, index: int, schema: Schema) -> SchemaPlace:
    """The root of the schema of one version."""
    root = SchemaPlace(schema, None, ("spec", "versions", index, "schema", "openAPIV3Schema"), "")
    root.version = version
    root.stable = "alpha" not in version
    return root


def walk(root: SchemaPlace) -> Iterator[SchemaPlace]:
    """All fields, outer ones first, except those inside a Kubernetes type.

    Authors do not design a pod's spec or a label selector.
    """
    stack = [root]
    while stack:
        place = stack.pop()
        yield place
        schema = place.schema
        properties = schema.get("properties")
        if properties:
            if is_borrowed(properties):
                continue
            meta = place.parent is None or schema.get(EMBEDDED)
            names: Any = schema.get("required") or ()
            area = place.area
            below = [
                # By position: names take half as much time again, and a schema has thousands of fields.
                SchemaPlace(each, place, ("properties", name), f".{name}", name, area or name, name in names)
                for name, each in properties.items()
                if isinstance(each, dict) and not (meta and name in _META)
            ]
            below.reverse()
            stack += below
        items = place.items() if "items" in schema else None
        if items is not None:
            stack.append(items)
        values = place.values() if "additionalProperties" in schema else None
        if values is not None:
            stack.append(values)
