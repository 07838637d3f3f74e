"""Admission policies against objects that the rules of a conversion cannot convert.

One such object does not affect others, but at another version it shows a stand-in. These policies reject new
ones at the version in which they are written; an existing one can still be changed.
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal

from crdkeeper.api.texts import bounded
from crdkeeper.api.versionconversion import ConversionRule, VersionConversionSpec
from crdkeeper.apiserver.cel.syntax.literaltext import literal_text
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.fieldpaths import FIRST, Steps, parse, show
from crdkeeper.core.text import visible

_API: Final = "admissionregistration.k8s.io/v1"
_LONGEST: Final = 64
_MOST_CHARACTERS: Final = 90_000
"""In an expression: the API server accepts 100,000 (expressionSizeCodePointLimit in cel-go)."""
_MOST_VALIDATIONS: Final = 100
"""In a policy, whose expressions share a budget (RuntimeCELCostBudget in k8s.io/apiserver)."""
_LONGEST_NAME: Final = 253
_DIGEST: Final = 16
_WHOLE: Final = "[+-]?[0-9]{1,18}"
_DECIMAL: Final = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?"
_DURATION: Final = r"[+-]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)"
_TEXTS: Final = {"integer": _WHOLE, "number": _DECIMAL, "boolean": "(true|false)"}
"""For each type, a pattern of the strings that can be converted to it."""

Side = Literal["hub", "spoke"]


@dataclass(frozen=True, slots=True)
class Check:
    """The CEL condition under which a field's value has a counterpart; and the field's name for people."""

    expression: str
    where: str


@dataclass(slots=True)
class Policies:
    """The policies with their bindings, and the rules that no policy covers."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)


def admission(spec: VersionConversionSpec, schemas: Mapping[str, Schema]) -> Policies:
    """The policies for each version in which a value may have no counterpart; the rules must compile."""
    made = Policies()
    checks: dict[str, list[Check]] = {}
    for number, spoke in enumerate(spec.spokes):
        sides: tuple[tuple[Side, str], ...] = (("hub", spec.hub), ("spoke", spoke.version))
        for i, rule in enumerate(spoke.rules):
            place = f"spec.spokes[{number}].rules[{i}]"
            for side, version in sides:
                other = schemas[spoke.version if side == "hub" else spec.hub]
                found = _Checks(side, made.uncovered, place).of(
                    rule, "object", schemas[version], other, "", depth=0
                )
                checks.setdefault(version, []).extend(found)
    for version, those in checks.items():
        for number, start in enumerate(range(0, len(those), _MOST_VALIDATIONS), 1):
            made.documents += _documents(spec, version, number, those[start : start + _MOST_VALIDATIONS])
    return made


class _Checks:
    """The checks of one rule for one side."""

    def __init__(self, side: Side, uncovered: list[str], place: str) -> None:
        self._side: Side = side
        self._uncovered = uncovered
        self._place = place

    def of(
        self, rule: ConversionRule, base: str, schema: Schema, other: Schema, where: str, *, depth: int
    ) -> Iterator[Check]:
        """`base` is the CEL expression of the parent of the fields, `schema` its schema, `where` its name."""
        mine, theirs = (rule.hub, rule.spoke) if self._side == "hub" else (rule.spoke, rule.hub)
        if mine is None:
            return
        steps = parse(mine)
        here = _at(schema, steps)
        there = _at(other, parse(theirs)) if theirs is not None else {}
        shown = f"{where}{show(steps)}"
        # Without dyn(), the comparison with null would give the type null to everything compared with it.
        name, value = f"v{depth}", f"dyn(v{depth})"
        condition = None
        if rule.cel is not None:
            self._uncovered.append(f"{self._place}: {shown}: an expression")
        elif rule.each:
            condition, shown = self._each(rule, value, here, there, shown, depth)
        else:
            condition = _condition(rule, value, here, there, other, self._side)
        if condition is not None and len(condition) > _MOST_CHARACTERS // 2:
            self._uncovered.append(f"{self._place}: {shown}: too long for an expression")
        elif condition is not None:
            field_ = base + "".join(f"[?{0 if step == FIRST else _text(step)}]" for step in steps)
            yield Check(f"{field_}.optMap({name}, {value} == null || {condition}).orValue(true)", shown)

    def _each(
        self, rule: ConversionRule, value: str, here: Schema, there: Schema, shown: str, depth: int
    ) -> tuple[str | None, str]:
        """The condition that all items, entries or fields have a counterpart, and the fields involved."""
        item = f"i{depth}"
        inner_here, inner_there = _inside(here), _inside(there)
        one = here.get("type") == "array" or isinstance(here.get("additionalProperties"), dict)
        base = item if here.get("type") == "array" else f"{value}[{item}]" if one else value
        mark = "[*]." if one else "."
        found = [
            each
            for inner in rule.each or ()
            for each in self.of(inner, base, inner_here, inner_there, f"{shown}{mark}", depth=depth + 1)
        ]
        if not found:
            return None, shown
        conditions = " && ".join(each.expression for each in found)
        fields = ", ".join(each.where for each in found)
        return f"{value}.all({item}, {conditions})" if one else f"({conditions})", fields


def _condition(
    rule: ConversionRule, value: str, here: Schema, there: Schema, other: Schema, side: Side
) -> str | None:
    """The condition for the value of a rule's field; None if every value has a counterpart."""
    mine, theirs = here.get("type"), there.get("type")
    textual = mine not in ("integer", "number", "boolean")
    number = f"type({value}) == int || type({value}) == double"
    if rule.quantity is not None and textual:
        return (
            f"({number} || (type({value}) == string && size({value}) <= {_LONGEST} && isQuantity({value})))"
        )
    if rule.duration is not None and textual:
        return f"(size({value}) <= {_LONGEST} && {value}.matches({_pattern(_DURATION)}))"
    if rule.cast and textual and theirs in _TEXTS:
        return f"(type({value}) != string || {value}.matches({_pattern(_TEXTS[theirs])}))"
    if rule.cast and theirs == "boolean" and mine in ("integer", "number"):
        return f"{value} in [0, 1]"
    if rule.values is not None:
        known = [each.hub if side == "hub" else each.spoke for each in rule.values]
        known = [each for each in known if not isinstance(each, float) or math.isfinite(each)]
        return f"{value} in {literal_text(known, dynamic=True)}"
    if rule.separator is not None and textual and mine != "array":
        items = _TEXTS.get(_inside(there).get("type", ""))
        if items is not None:
            split = f"{value}.split({_text(rule.separator)})"
            return f"({value} == '' || {split}.all(part, part.matches({_pattern(items)})))"
    if rule.join is not None:
        return f"{value}.matches({_pattern(_template(rule, other))})"
    return None


def _template(rule: ConversionRule, other: Schema) -> str:
    """The strings that match a template."""
    assert rule.join is not None
    pattern = ""
    for i, part in enumerate(re.split(r"\{([A-Za-z_]\w*)\}", rule.join.template)):
        if i % 2:
            type_ = _at(other, parse(rule.join.parts[part])).get("type", "")
            pattern += f"({_TEXTS.get(type_, '(?s:.*)')})"
        else:
            pattern += re.sub(
                r"[^\w\s]", lambda found: f"[{found[0]}]" if found[0] not in "^\\" else f"\\{found[0]}", part
            )
    return pattern


def _at(schema: Schema, steps: Steps) -> Schema:
    """The schema of a field; an empty one if it is unknown."""
    for step in steps:
        properties = schema.get("properties") or {}
        schema = _inside(schema) if step == FIRST or step not in properties else properties[step]
    return schema


def _inside(schema: Schema) -> Schema:
    """The schema of a list's items or a map's values; for an object, the schema itself."""
    if schema.get("type") == "array":
        return schema.get("items") or {}
    values = schema.get("additionalProperties")
    return values if isinstance(values, dict) else schema


def _text(value: Any) -> str:
    """A CEL literal: JSON is one, unless it escapes surrogates."""
    return json.dumps(value, ensure_ascii=False)


def _pattern(pattern: str) -> str:
    return _text(f"^({pattern})$")


def _documents(
    spec: VersionConversionSpec, version: str, number: int, checks: Sequence[Check]
) -> list[dict[str, Any]]:
    name = _name(f"convertible.{version}{f'-{number}' if number > 1 else ''}.{spec.resource}")
    resource = {
        "apiGroups": [spec.resource.group],
        "apiVersions": [version],
        "resources": [spec.resource.resource],
        "operations": ["CREATE", "UPDATE"],
    }
    policy = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            # Each version has its own policy, because the object is checked as it was written.
            "matchConstraints": {"matchPolicy": "Exact", "resourceRules": [resource]},
            "validations": [_validation(each) for each in checks],
        },
    }
    binding = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return [policy, binding]


def _name(name: str) -> str:
    """A valid object name, always the same for the same input."""
    if len(name) <= _LONGEST_NAME:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST_NAME - _DIGEST - 1].rstrip('-.')}-{digest}"


def _validation(check: Check) -> dict[str, Any]:
    # An object that was invalid before may be written: its other fields must remain editable.
    before = f"(oldObject != null && !({check.expression.replace('object[', 'oldObject[', 1)}))"
    where = bounded(visible(check.where), _LONGEST_NAME)
    return {
        "expression": f"({check.expression}) || {before}",
        "message": f"{where}: a value that has no counterpart in another version",
        "reason": "Invalid",
    }
