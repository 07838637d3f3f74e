"""The rules for each node of a schema besides those for structural schemas.

The same rules apply to nodes inside allOf, anyOf, oneOf, not and definitions.
"""

from dataclasses import dataclass, replace
from typing import Any

from crdkeeper.apiserver.cel.compilation import RulePlace
from crdkeeper.apiserver.definitions.rules.defaults import has_rules
from crdkeeper.apiserver.definitions.rules.expressions import ExpressionChecks
from crdkeeper.apiserver.definitions.rules.lists import check_key_nulls, check_list, check_map_type
from crdkeeper.apiserver.definitions.rules.requirements import Requirements
from crdkeeper.apiserver.definitions.rules.validations import check_validations
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import (
    EMBEDDED,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    TYPES,
    VALIDATIONS,
    Schema,
    is_plain,
    unsupported_keywords,
)
from crdkeeper.apiserver.schema.violation import Report, Violation

_META = frozenset(("metadata", "kind", "apiVersion"))
_JUNCTORS = frozenset(("not", "allOf", "oneOf", "anyOf", "definitions", "dependencies"))


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The position of a node, as far as rules depend on it."""

    root: bool = False
    place: RulePlace | None = None
    """The node for the compiler of expressions; None if the server does not compile them."""
    uncorrelatable: Path | None = None
    """The topmost parent whose parts have no old value for comparison."""
    in_meta: bool = False
    no_default: str | None = None
    """Why a default is not allowed here."""


class NodeChecks:
    """Walks a schema and reports the errors of each node."""

    def __init__(
        self, requirements: Requirements, report: Report, *, any_cost: bool, past_errors: bool = False
    ) -> None:
        """`any_cost` says whether the cost of a single expression is unlimited.

        With `past_errors`, errors at or below a node do not prevent the compilation of its rules.
        """
        self._past_errors = past_errors
        self._requirements = requirements
        self._report = report
        self._conversion_errors: dict[int, str | None] = {}
        """By the id of the node."""
        self._about_expressions = Report()
        self._expressions = ExpressionChecks(requirements, self._about_expressions, any_cost=any_cost)

    def check_all(self, schema: Schema, path: Path, *, expressions: bool) -> None:
        """Check a whole schema; `expressions` says whether they are compiled."""
        # Most schemas have no expression: then the nodes need not be tracked for the compiler.
        place = RulePlace.root(schema) if expressions and has_rules(schema) else None
        self._check(schema, path, CheckContext(root=True, place=place))
        self._report.violations += self._about_expressions.violations
        self._report.unchecked += self._about_expressions.unchecked

    def check_expressions(self, schema: Schema, path: Path) -> list[Violation]:
        """Check only the expressions."""
        if has_rules(schema):
            self._check(schema, path, CheckContext(root=True, place=RulePlace.root(schema)))
        return self._about_expressions.violations

    def check_total_cost(self, path: Path) -> None:
        """Report the error for the cost of all expressions together; `path` is that of the schema."""
        self._expressions.check_total(path, self._report)

    def _check(self, schema: Schema, path: Path, context: CheckContext) -> None:
        report = self._report
        before = len(report.violations)
        _check_type(schema, path, report, known=self._requirements.types)
        _check_keywords(schema, path, context, report)
        inner = replace(context, root=False) if context.root else context
        if "additionalProperties" in schema:
            self._additional(schema, path, inner)
        if schema.get("properties"):
            self._properties(schema, path, inner, at_root=context.root)
        self._junctors(schema, path, inner)
        self._items(schema, path, inner)
        if schema.get(PRESERVE) is False:
            report.invalid(rules.PRESERVE_FALSE, path.child(PRESERVE), False, "must be true or undefined")
        check_map_type(schema, path, report)
        check_list(schema, path, report, atomic_items=self._requirements.atomic_set_items)
        if self._requirements.map_keys:
            check_key_nulls(schema, path, report)
        if schema.get(VALIDATIONS):
            check_validations(schema, path, report, self._conversion_errors)
            hidden = len(report.violations) > before and not self._past_errors
            if context.place is not None and not hidden:
                self._expressions.check(context.place, path, context.uncorrelatable)

    def _properties(self, schema: Schema, path: Path, context: CheckContext, *, at_root: bool) -> None:
        below, place = path.child("properties"), context.place
        meta = at_root or schema.get(EMBEDDED)
        if schema.get(MAP_TYPE, "atomic") not in ("atomic", "granular"):
            context = _uncorrelatable(context, path)
        for name, each in schema["properties"].items():
            if is_plain(each):
                continue
            here = context if place is None else replace(context, place=place.field(name, each))
            if meta and name in _META:
                here = replace(here, in_meta=True)
                if at_root:
                    here = replace(here, no_default=f"in top-level {name}")
            self._check(each, below.key(name), here)

    def _additional(self, schema: Schema, path: Path, context: CheckContext) -> None:
        values = schema["additionalProperties"]
        at = path.child("additionalProperties")
        if schema.get("properties") and values is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            self._report.forbidden(rules.ADDITIONAL_PROPERTIES, at, detail)
        if context.in_meta:
            context = replace(context, no_default="inside additionalProperties applying to object metadata")
        if isinstance(values, dict):
            if context.place is not None:
                context = replace(context, place=context.place.values(values))
            self._check(values, at, context)

    def _junctors(self, schema: Schema, path: Path, context: CheckContext) -> None:
        if _JUNCTORS.isdisjoint(schema):
            return
        if context.place is not None:
            context = replace(context, place=None)
        if "not" in schema:
            self._check(schema["not"], path.child("not"), context)
        for key in ("allOf", "oneOf", "anyOf"):
            for i, each in enumerate(schema.get(key, ())):
                self._check(each, path.child(key).index(i), context)
        for key in ("definitions", "dependencies"):
            for name, each in schema.get(key, {}).items():
                if isinstance(each, dict):
                    self._check(each, path.child(key).key(name), context)

    def _items(self, schema: Schema, path: Path, context: CheckContext) -> None:
        items: Any = schema.get("items")
        if not items and not isinstance(items, dict):
            return
        at = path.child("items")
        if schema.get(LIST_TYPE) != "map":
            context = _uncorrelatable(context, path)
        if isinstance(items, dict):
            if context.place is not None:
                context = replace(context, place=context.place.items(items))
            self._check(items, at, context)
        else:
            for i, each in enumerate(items):
                self._check(each, at.index(i), context)


def _uncorrelatable(context: CheckContext, path: Path) -> CheckContext:
    return context if context.uncorrelatable is not None else replace(context, uncorrelatable=path)


def _check_type(schema: Schema, path: Path, report: Report, *, known: bool) -> None:
    type_ = schema.get("type", "")
    if known and type_ and type_ not in TYPES:
        report.not_supported(rules.TYPE, path.child("type"), type_, TYPES)
    if type_ == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        report.forbidden(rules.TYPE, path.child("type"), detail)


def _check_keywords(schema: Schema, path: Path, context: CheckContext, report: Report) -> None:
    if context.no_default is not None and "default" in schema:
        report.forbidden(rules.DEFAULT_PLACE, path.child("default"), f"must not be set {context.no_default}")
    if context.in_meta and schema.get(EMBEDDED):
        detail = "must not be used inside of resource meta"
        report.forbidden(rules.EMBEDDED_RESOURCE, path.child(EMBEDDED), detail)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        report.forbidden(rules.UNIQUE_ITEMS, path.child("uniqueItems"), detail)
    for key in unsupported_keywords(schema):
        report.forbidden(rules.UNSUPPORTED_KEYWORD, path.child(key), f"{key} is not supported")
    if isinstance(schema.get("items"), list) and schema["items"]:
        detail = "items must be a schema object and not an array"
        report.forbidden(rules.ITEMS, path.child("items"), detail)
