"""A node of a schema as its rules see it: the type of `self`, and how often the node can occur in one object.

Follows the CELSchemaContext of k8s.io/apiextensions-apiserver
(pkg/apis/apiextensions/validation/cel_validation.go).
"""

from crdkeeper.apiserver.cel.cost.estimates import MAX
from crdkeeper.apiserver.cel.syntax.names import escape
from crdkeeper.apiserver.cel.types.declared import Declared, declare, embedded
from crdkeeper.apiserver.schema.props import VALIDATIONS, Schema


class CannotDeclare(Exception):
    """CEL has no type for a node that has rules; with the server's message."""


class NoElement(CannotDeclare):
    """A node below items or additionalProperties of a string or an object instead of a list or map."""


class ServerPanics(CannotDeclare):
    """The API server looks for the type of a node in what has none, and panics."""


class RulePlace:
    """A node and its parents."""

    __slots__ = ("_declared", "_name", "_parent", "_step", "_with_rules", "cardinality", "schema")

    def __init__(self, schema: Schema, parent: "RulePlace | None", step: str, name: str) -> None:
        self.schema = schema
        self._parent = parent
        self._step = step
        self._name = name
        above = parent is not None and parent._with_rules
        self._with_rules: bool = above or bool(schema.get(VALIDATIONS))
        self._declared: Declared | None = None
        self.cardinality: int | None = 1
        """How often the node can occur in one object; None if the schema sets no limit."""
        if parent is not None:
            self.cardinality = None
            factor = _elements(parent.schema)
            if parent.cardinality is not None and factor is not None:
                self.cardinality = min(parent.cardinality * factor, MAX)

    @classmethod
    def root(cls, schema: Schema) -> "RulePlace":
        """The root of a version's schema."""
        return cls(schema, None, "", "")

    def field(self, name: str, schema: Schema) -> "RulePlace":
        return RulePlace(schema, self, "field", name)

    def items(self, schema: Schema) -> "RulePlace":
        """The items of a list."""
        return RulePlace(schema, self, "element", "")

    def values(self, schema: Schema) -> "RulePlace":
        """The values of a map (additionalProperties)."""
        return RulePlace(schema, self, "element", "")

    @property
    def declared(self) -> Declared:
        """The schema's declaration for CEL; raises CannotDeclare."""
        if self._declared is None:
            self._declared = self._from_parent() or self._own()
        return self._declared

    def _from_parent(self) -> Declared | None:
        parent = self._parent
        if parent is None or not parent._with_rules:
            return None
        try:
            above = parent.declared
        except NoElement:
            if self._step == "field" and escape(self._name) is None:
                return None
            raise ServerPanics("the API server panics over the schema above") from None
        if self._step == "element":
            if above.element is None:
                raise NoElement("failed to convert to declType for CEL validation rules")
            return above.element
        escaped = escape(self._name)
        return above.fields.get(escaped) if escaped is not None and above.kind == "object" else None

    def _own(self) -> Declared:
        declared = declare(self.schema, root=self._parent is None or embedded(self.schema))
        if declared is None:
            raise CannotDeclare(
                "internal error: failed to construct type information for x-kubernetes-validations rules: "
                "unable to convert structural schema to CEL declarations"
            )
        return declared


def _elements(schema: Schema) -> int | None:
    """How many children a node can have; None if there is no limit (extractMaxElements)."""
    kind = schema.get("type")
    if kind == "array":
        limit = schema.get("maxItems")
    elif kind == "object" and "additionalProperties" in schema:
        limit = schema.get("maxProperties")
    else:
        return 1
    return None if limit is None else max(limit, 0)
