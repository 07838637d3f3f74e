"""Conventions for x-kubernetes-validations; other checks decide whether the expressions compile."""

import re

from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.core.lint.conventions.values import IMMUTABLE_BYPASS, RULE_MESSAGE
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.severity import Severity

_IMMUTABLE = frozenset(("self==oldSelf", "oldSelf==self"))
_BLANK = re.compile(r"\s+")


def check_rules(place: SchemaPlace, found: Findings) -> None:
    """Report rules without explanation, and immutability that can be circumvented."""
    for i, rule in enumerate(place.schema.get(VALIDATIONS) or ()):
        if not rule.get("message") and not rule.get("messageExpression"):
            place.report(found, RULE_MESSAGE, "has a rule without a message", VALIDATIONS, i)
        text = _BLANK.sub("", rule.get("rule") or "")
        if text in _IMMUTABLE and not rule.get("optionalOldSelf") and _can_be_removed(place):
            message = "is immutable, but may be removed and set again"
            # Only its controller writes status.
            severity = Severity.INFO if place.area == "status" else None
            place.report(found, IMMUTABLE_BYPASS, message, VALIDATIONS, i, severity=severity)


def _can_be_removed(place: SchemaPlace) -> bool:
    """Whether the field is optional and no rule of the object around it requires its presence."""
    parent = place.parent
    if not place.name or parent is None or place.required or "default" in place.schema:
        return False
    presence = re.compile(rf"has\((?:self|oldSelf)\.{re.escape(place.name)}\)")
    rules = parent.schema.get(VALIDATIONS) or ()
    return not any(presence.search(_BLANK.sub("", each.get("rule") or "")) for each in rules)
