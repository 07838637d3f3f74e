"""Strings, numbers and booleans, and the keywords that limit values of any type."""

import re

from crdkeeper.apiserver.schema.props import INT_OR_STRING, TYPES, VALIDATIONS
from crdkeeper.core.lint.conventions.limits import MIN_LENGTH, UNBOUNDED
from crdkeeper.core.lint.conventions.style import BOOLEAN, DURATION_UNIT, ENUM_CASE, FLOAT, REFERENCE_SHAPE
from crdkeeper.core.lint.conventions.values import (
    BOUNDS,
    DURATION_TEXT,
    FORBIDDEN_KEYWORD,
    FORMAT_UNKNOWN,
    KEYWORD_TYPE,
    PATTERN_ALTERNATION,
    PATTERN_ANCHORS,
    QUANTITY_TEXT,
    SECRET_TEXT,
    TIME_TEXT,
)
from crdkeeper.core.lint.durations import promises_duration
from crdkeeper.core.lint.formats import is_hint, is_known, meant
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.namedvalues import named_values
from crdkeeper.core.lint.patterns import is_unanchored, refused_if_anchored, unmeant
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.secrets import is_secret
from crdkeeper.core.lint.severity import Severity

_ABOUT = {
    "string": ("maxLength", "minLength", "pattern"),
    "integer": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "array": ("maxItems", "minItems", "items"),
    "object": ("maxProperties", "minProperties", "required", "properties", "additionalProperties"),
    "boolean": (),
}
_ABOUT["number"] = _ABOUT["integer"]
_FOREIGN = {
    type_: frozenset(word for words in _ABOUT.values() for word in words) - frozenset(own)
    for type_, own in _ABOUT.items()
}
_BOUNDS = (
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minimum", "maximum"),
)
_UPPER = frozenset(upper for _, upper in _BOUNDS)


def check_keywords(place: SchemaPlace, found: Findings) -> None:
    """Check a node of any type: formats, bounds and misplaced keywords."""
    schema = place.schema
    type_ = schema.get("type") or ""
    format_ = schema.get("format")
    if format_ and (not type_ or type_ in TYPES) and not is_known(format_, type_):
        _report_format(place, format_, type_, found)
    foreign = _FOREIGN.get(type_)
    if foreign is not None and not foreign.isdisjoint(schema) and not schema.get(INT_OR_STRING):
        for key in sorted(foreign & schema.keys()):
            if schema[key] not in (None, False, [], {}):
                message = f"{key} has no effect on type {type_}"
                place.report(found, KEYWORD_TYPE, message, key)
    if not _UPPER.isdisjoint(schema):
        _check_bounds(place, found)


def _report_format(place: SchemaPlace, format_: str, type_: str, found: Findings) -> None:
    known = meant(format_, type_)
    more = f"; {known} is" if known else ""
    message = f"format {format_} is not known for {type_ or 'a field without a type'}{more}"
    # Code generators write the number's type in the program as its format, together with its bounds.
    bounded = type_ == "integer" and "minimum" in place.schema
    severity = Severity.INFO if bounded or is_hint(format_, type_) else None
    place.report(found, FORMAT_UNKNOWN, message, "format", severity=severity)


def check_forbidden(place: SchemaPlace, forbidden: frozenset[str], found: Findings) -> None:
    """Report keywords that the configuration forbids."""
    for key in sorted(forbidden & place.schema.keys()):
        if place.schema[key] not in (None, False):
            place.report(found, FORBIDDEN_KEYWORD, f"{key} is forbidden by the configuration", key)


def _check_bounds(place: SchemaPlace, found: Findings) -> None:
    schema = place.schema
    for low, high in _BOUNDS:
        least, most = schema.get(low), schema.get(high)
        if least is None or most is None:
            continue
        open_ = high == "maximum" and (schema.get("exclusiveMaximum") or schema.get("exclusiveMinimum"))
        if least > most or (open_ and least == most):
            place.report(found, BOUNDS, f"{low} {least} and {high} {most} leave no value", high)


_TIMES = ("Duration", "Timeout", "Interval", "Period", "Delay", "Backoff", "TTL")
_TIME_NAMES = frozenset(("duration", "timeout", "interval", "period", "delay", "backoff", "ttl"))
_UNIT = re.compile(
    r"\b(?:(?:nano|micro|milli)?seconds?|secs?|minutes?|mins?|hours?|days?|weeks?|months?|years?|blocks?|ms)\b",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b(?:numbers?|counts?|percentage|limit) (?:of|at which)\b", re.IGNORECASE)
"""What has no unit of time, whatever it is called."""
_DEMANDED = ", although the description demands a format"
_INSTANTS = ("Time", "Timestamp")
_INSTANT_NAMES = frozenset(("timestamp",))
_AMOUNTS = ("Memory", "Storage", "CPU", "Cpu")
_AMOUNT_NAMES = frozenset(("memory", "storage", "cpu"))
_UPPER_CAMEL = re.compile("[A-Z][A-Za-z0-9]*").fullmatch


def check_string(place: SchemaPlace, found: Findings) -> None:
    """Check a string."""
    schema, name = place.schema, place.name
    enum = schema.get("enum")
    if enum:
        odd = [each for each in enum if isinstance(each, str) and each and not _UPPER_CAMEL(each)]
        if odd:
            place.report(found, ENUM_CASE, f"{odd[0]} is not UpperCamelCase", "enum")
        return
    pattern = schema.get("pattern")
    if pattern:
        _check_pattern(place, pattern, found)
    if pattern or schema.get("format"):
        return
    if "maxLength" not in schema:
        place.report(found, UNBOUNDED, "has no maxLength")
    if not name or place.area == "status" or VALIDATIONS in schema or schema.get("allOf"):
        return
    if place.required and not schema.get("minLength") and "default" not in schema:
        place.report(found, MIN_LENGTH, "is required, and may be empty")
    if name in _TIME_NAMES or name.endswith(_TIMES):
        promised = promises_duration(schema)
        message = f"takes any text for a duration{_DEMANDED if promised else ''}"
        place.report(found, DURATION_TEXT, message, severity=None if promised else Severity.INFO)
    elif name in _INSTANT_NAMES or name.endswith(_INSTANTS):
        place.report(found, TIME_TEXT, "takes any text for a time")
    elif name in _AMOUNT_NAMES or name.endswith(_AMOUNTS):
        place.report(found, QUANTITY_TEXT, "takes any text for a quantity")
    elif is_secret(place):
        place.report(found, SECRET_TEXT, "holds a secret in plain text")
    elif name.endswith("Ref"):
        place.report(found, REFERENCE_SHAPE, "is a reference, but a text")


def _check_pattern(place: SchemaPlace, pattern: str, found: Findings) -> None:
    if is_unanchored(pattern):
        message = f"{pattern} matches anywhere{_caution(place, pattern)}"
        place.report(found, PATTERN_ANCHORS, message, "pattern")
        return
    text = unmeant(pattern)
    if text is not None:
        message = f"{pattern} accepts {text!r}{_caution(place, pattern)}"
        place.report(found, PATTERN_ALTERNATION, message, "pattern")


def _caution(place: SchemaPlace, pattern: str) -> str:
    """What the pattern would refuse of what its author names, if someone only anchored it."""
    named = list(named_values(place.schema))
    value = refused_if_anchored(pattern, [each.text for each in named])
    known = next((each for each in named if each.text == value), None)
    return f"; ^(…)$ would refuse {known}" if known is not None else ""


def check_integer(place: SchemaPlace, found: Findings) -> None:
    """Check an integer."""
    name = place.name
    if not name or place.area == "status" or not (name in _TIME_NAMES or name.endswith(_TIMES)):
        return
    said = place.schema.get("description") or ""
    if not _UNIT.search(said) and not _COUNT.search(said):
        place.report(found, DURATION_UNIT, "is a number of an unnamed unit")


def check_number(place: SchemaPlace, found: Findings) -> None:
    """Check a float."""
    place.report(found, FLOAT, "is a float", "type")


def check_boolean(place: SchemaPlace, found: Findings) -> None:
    """Check a boolean."""
    if place.area != "status":
        place.report(found, BOOLEAN, "is a boolean", "type")
