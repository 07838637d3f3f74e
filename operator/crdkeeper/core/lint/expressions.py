"""Conventions for x-kubernetes-validations; other checks decide whether the expressions compile."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import accumulate, islice
from typing import Any, Final

from crdkeeper.apiserver.schema.props import PRESERVE, VALIDATIONS, Schema
from crdkeeper.core.lint.conventions.values import IMMUTABLE_BYPASS, IMMUTABLE_OPEN, RULE_MESSAGE
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.severity import Severity

_IMMUTABLE = frozenset(("self==oldSelf", "oldSelf==self"))
_BLANK = re.compile(r"\s+")
_PRESENCE = re.compile(r"\bhas\((?:self|oldSelf)\.(\w+)\)")
_ONCE_SET: Final = re.compile(r"\b(?:once|after) (?:it (?:is|has been) |being )?set\b", re.IGNORECASE)
_FINAL: Final = re.compile(
    r"\b(?:immutab|(?:can ?not|can't|must not|may not) be (?:changed|modified|updated|edited)|once\s+set\b)",
    re.IGNORECASE,
)
"""Phrases in descriptions of fields that keep their value."""
_ALIKE: Final = 0.8
"""How alike two names are of which one is the other, misspelt: at most a fifth of the letters differ."""
_LONGEST_NAME: Final = 64
_MOST_UNKNOWN: Final = 20
"""Names in the rules of one object that none of its fields has."""
_MOST_AROUND: Final = 64
"""Objects around an object whose rules are considered."""


def check_rules(place: SchemaPlace, found: Findings) -> None:
    """Report rules without explanation, and immutability that can be circumvented."""
    if VALIDATIONS not in place.schema:
        return
    for i, rule in enumerate(place.schema[VALIDATIONS] or ()):
        if not rule.get("message") and not rule.get("messageExpression"):
            place.report(found, RULE_MESSAGE, "has a rule without a message", VALIDATIONS, i)
        if _is_immutable(rule) and _can_be_removed(place):
            message = "is immutable, but may be removed and set again"
            severity = Severity.INFO if _is_meant(place) or _is_set_later(place, rule) else None
            place.report(found, IMMUTABLE_BYPASS, message, VALIDATIONS, i, severity=severity)


def _is_immutable(rule: Mapping[str, Any]) -> bool:
    text = _BLANK.sub("", rule.get("rule") or "")
    return text in _IMMUTABLE and not rule.get("optionalOldSelf")


def _is_meant(place: SchemaPlace) -> bool:
    """Whether nobody removes the field by mistake, or its absence has a meaning.

    Only its controller writes status, and nobody drops all that an object says. Beside a reference such as
    nameRef or nameSelector, a controller sets the field later.
    """
    parent = place.parent
    if place.area == "status" or parent is None:
        return True
    if parent.parent is None and place.schema.get("type") == "object":
        return True
    fields = parent.schema.get("properties") or {}
    return any(f"{place.name}{suffix}" in fields for suffix in ("Ref", "Refs", "Selector", "From"))


def _is_set_later(place: SchemaPlace, rule: Mapping[str, Any]) -> bool:
    """Whether the field has its value only after creation, as the message says, and no text promises more.

    Generators write "immutable once set" for each field that a controller may fill in.
    """
    promised = _FINAL.search(place.schema.get("description") or "")
    return not promised and _ONCE_SET.search(rule.get("message") or "") is not None


def _can_be_removed(place: SchemaPlace) -> bool:
    """Whether the field is optional and no rule of an object around it is about its presence or its value.

    That holds for a rule with a misspelt name, too: the API server refuses it, and its correction closes the
    gap.
    """
    parent = place.parent
    if not place.name or parent is None or place.required or "default" in place.schema:
        return False
    rules = parent.schema.get(VALIDATIONS) or ()
    texts = (_BLANK.sub("", each.get("rule") or "") for each in rules)
    names = {name for text in texts for name in _PRESENCE.findall(text)}
    if place.name in names or _is_misspelt(place.name, parent, names):
        return False
    return _comparing(parent) is None


def _is_misspelt(name: str, parent: SchemaPlace, names: set[str]) -> bool:
    """Whether one of the names, which no field has, is meant to be that of the field."""
    fields = parent.schema.get("properties") or {}
    unknown = (each.casefold() for each in sorted(names) if each not in fields and len(each) <= _LONGEST_NAME)
    if len(name) > _LONGEST_NAME:
        return False
    return bool(get_close_matches(name.casefold(), islice(unknown, _MOST_UNKNOWN), n=1, cutoff=_ALIKE))


def check_comparison(place: SchemaPlace, found: Findings) -> None:
    """Report an object of which rules compare only the declared fields with the old object.

    Follows unstructuredMap.Equal of k8s.io/apiserver (pkg/cel/common/valuesunstructured.go): it passes over a
    field without a schema that the other object lacks.
    """
    if _is_open(place.schema):
        around = _comparing(place)
        if around is not None:
            key = PRESERVE if place.schema.get(PRESERVE) else "additionalProperties"
            rule = "" if around is place else f" by a rule of {around.path}"
            message = f"is immutable{rule}, but undeclared fields in it may be replaced"
            severity = Severity.INFO if place.area == "status" else None
            place.report(found, IMMUTABLE_OPEN, message, key, severity=severity)


def _is_open(schema: Schema) -> bool:
    """Whether an object may have fields without a schema. CEL compares a value without a type as a whole."""
    additional = schema.get("additionalProperties")
    if schema.get("type") != "object" or isinstance(additional, dict):
        return False
    return bool(schema.get(PRESERVE) or additional)


def _comparing(place: SchemaPlace) -> SchemaPlace | None:
    """The object whose rules compare the place with the old one: itself, or one around it."""
    texts: list[str] = []
    around: SchemaPlace | None = place
    while around is not None and len(texts) < _MOST_AROUND:
        paths = accumulate(reversed(texts), initial="") if around.compared else ()
        if any(each in around.compared for each in paths):
            return around
        texts.append(around.text)
        around = around.parent
    return None
