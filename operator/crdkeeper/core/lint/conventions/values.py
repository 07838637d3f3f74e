"""Conventions on which values a schema accepts."""

from typing import Final

from crdkeeper.core.lint.convention import error, info, warning

_GROUP: Final = "values"
ABOUT: Final = "which values a schema accepts"

FORMAT_UNKNOWN = warning(
    _GROUP,
    "format-unknown",
    "The API server ignores a format that it does not know for the field's type, and accepts any value.",
    "Use a format that the API server knows, a pattern, or bounds.",
    otherwise="info for a name that resembles no format that the server checks, because it is meant for "
    "forms or code generators, and for an integer with a minimum, of which these write the type as the "
    "format",
)
KEYWORD_TYPE = warning(
    _GROUP,
    "keyword-type",
    "A keyword that does not apply to the field's type has no effect.",
    "Remove the keyword, or move it to the schema it is meant for (for a list, usually items).",
)
FORBIDDEN_KEYWORD = warning(
    _GROUP,
    "forbidden-keyword",
    "The configuration forbids the keyword in schemas (lint.forbid).",
    "Remove the keyword.",
)
BOUNDS = error(
    _GROUP,
    "bounds",
    "The lower bound exceeds the upper bound, so no value is valid.",
    "Correct the bounds.",
)
PATTERN_ANCHORS = warning(
    _GROUP,
    "pattern-anchors",
    "A pattern matches anywhere in the string: without ^ and $, anything can precede or follow the match.",
    "Write ^(…)$. If that would refuse values that the field is to accept, extend the pattern.",
)
PATTERN_ALTERNATION = warning(
    _GROUP,
    "pattern-alternation",
    "In ^a|b$, each anchor applies to only one alternative, so anything can follow a or precede b.",
    "Write ^(a|b)$. If that would refuse values that the field is to accept, extend the pattern.",
)
DURATION_TEXT = warning(
    _GROUP,
    "duration-text",
    "Unless a webhook refuses it, an invalid duration fails only where a program parses it, after the object "
    "has been stored. A Go program that declares the field as metav1.Duration cannot decode a list with that "
    "object, and so gets none of the others either.",
    "Add a pattern, such as `^[+-]?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$` "
    "for what Go's time.ParseDuration accepts (in Go code, the marker +kubebuilder:validation:Pattern), or "
    "use an integer with the unit in its name.",
    otherwise="info where the description neither names Go's format nor demands one that it shows",
)
TIME_TEXT = info(
    _GROUP,
    "time-text",
    "Any string is accepted as a time.",
    "Set format: date-time.",
)
QUANTITY_TEXT = info(
    _GROUP,
    "quantity-text",
    "Any string is accepted as an amount of memory, storage or CPU.",
    "Use the schema of resource.Quantity: x-kubernetes-int-or-string with its pattern.",
)
SECRET_TEXT = info(
    _GROUP,
    "secret-text",
    "Everyone who can read the object can read the secret. RBAC, encryption at rest and audit rules "
    "for Secrets do not protect it.",
    "Reference a key of a Secret: {name, key}.",
)
RULE_MESSAGE = warning(
    _GROUP,
    "rule-message",
    "The error message shows users only the expression: `failed rule: …`.",
    "Set message or messageExpression.",
)
IMMUTABLE_BYPASS = warning(
    _GROUP,
    "immutable-bypass",
    "A transition rule is not evaluated when the field is added or removed, so users can change an "
    "optional field by removing it and adding it again.",
    "Require the field, or add a rule to the object around it: has(self.x) == has(oldSelf.x). If the field "
    "may be set later, but not removed: !has(oldSelf.x) || has(self.x).",
    otherwise="info for the whole spec, which nobody removes by mistake, in status, which only its "
    "controller writes, and for a field that a controller sets: beside a reference such as xRef, and where "
    "only the rule's message says that it is immutable once set",
)
IMMUTABLE_OPEN = warning(
    _GROUP,
    "immutable-open",
    "In an object that may have undeclared fields, CEL takes the new and the old object for equal if an "
    "undeclared field has replaced another field. So `self == oldSelf` does not make it immutable.",
    "Declare the fields. Or compare the object around it, and leave out the type of this field: CEL compares "
    "a value without a type as a whole. Or refuse the change with a ValidatingAdmissionPolicy, in which "
    "`object.spec == oldObject.spec` compares all fields.",
    otherwise="info in status, which only its controller writes",
)
