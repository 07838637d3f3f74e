"""Keywords that limit a value of one type: lengths, patterns, numeric bounds, sizes, enums.

Each becomes a function from a value to its findings, with kube-openapi's messages.
"""

from collections.abc import Callable
from typing import Any, Final

import re2

from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT
from crdkeeper.apiserver.golang.text import json_text, quote
from crdkeeper.apiserver.objects.effort import spend_on_branches, spend_on_match, spend_on_program
from crdkeeper.apiserver.objects.jsonvalue import same, stored
from crdkeeper.apiserver.objects.valuerules import SCHEMA
from crdkeeper.apiserver.schema import formats
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    NO_FINDINGS,
    NOT_SUPPORTED,
    TOO_LONG,
    TOO_MANY,
    FieldError,
    FieldErrors,
    Naming,
    UndecidedValue,
)
from crdkeeper.apiserver.schema.props import Schema

Check = Callable[[Any], FieldErrors]


def invalid(value: Any, detail: str) -> FieldError:
    """An invalid value, with a detail that begins with the field's name."""
    return FieldError(SCHEMA, INVALID, value, f" in body {detail}", Naming.BEFORE)


_PATTERN_MEMORY: Final = 8 << 20
_LONGEST_PATTERN: Final = 20_000


def _pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches, with RE2's syntax and in time linear in the text."""
    search: Any = None
    size = 0

    def matches(text: str) -> bool:
        nonlocal search, size
        if search is None:
            spend_on_program(0)
            compiled = _compiled(pattern)
            spend_on_program(compiled.programsize)
            search, size = compiled.search, compiled.programsize
        spend_on_match(size, text)
        try:
            return search(text) is not None
        except UnicodeEncodeError:
            raise UndecidedValue("the text holds half of a surrogate pair") from None

    return matches


def _compiled(pattern: str) -> Any:
    if len(pattern) > _LONGEST_PATTERN:
        raise UndecidedValue(f"patterns of more than {_LONGEST_PATTERN:,} characters are not tried")
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError):
        raise UndecidedValue("the pattern is read by Go alone") from None


def text_check(schema: Schema) -> Check | None:
    """maxLength, minLength (in code points) and pattern; only the first that fails is reported."""
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is None and shortest is None and not pattern:
        return None
    matches = _pattern(pattern) if pattern else None
    mismatch = f" in body should match '{pattern}'"

    def check(value: str) -> FieldErrors:
        if longest is not None and len(value) > longest:
            return (FieldError(SCHEMA, TOO_LONG, "", _too_long(longest)),)
        if shortest is not None and len(value) < shortest:
            return (invalid(value, f"should be at least {shortest} chars long"),)
        if matches is not None and not matches(value):
            return (FieldError(SCHEMA, INVALID, value, mismatch, Naming.BEFORE),)
        return NO_FINDINGS

    return check


def _too_long(limit: int) -> str:
    if limit < 0:
        return "value is too long"
    return f"may not be more than {limit} byte{'' if limit == 1 else 's'}"


def format_check(format: str) -> Check | None:
    """The format of a string, if the server knows it."""
    has_format = formats.check_of(format)
    if has_format is None:
        return None

    def check(value: str) -> FieldErrors:
        if has_format(value):
            return NO_FINDINGS
        detail = f" in body must be of type {format}: {quote(value)}"
        return (FieldError(SCHEMA, INVALID, value, detail, Naming.BEFORE, wrong_type=True),)

    return check


def size_check(schema: Schema, suffix: str) -> Check | None:
    """minItems and maxItems, or minProperties and maxProperties."""
    fewest, most = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
    if fewest is None and most is None:
        return None

    def check(value: Any) -> FieldErrors:
        size = len(value)
        found: list[FieldError] = []
        if fewest is not None and size < fewest:
            found.append(invalid(size, f"should have at least {fewest} {suffix.lower()}"))
        if most is not None and size > most:
            found.append(FieldError(SCHEMA, TOO_MANY, size, _too_many(most)))
        return found

    return check


def _too_many(limit: int) -> str:
    if limit < 0:
        return "has too many items"
    return f"must have at most {limit} item{'' if limit == 1 else 's'}"


def enum_check(schema: Schema) -> Check | None:
    """enum, with Go's conversions between numbers: 1.7 counts as 1 if that is listed."""
    accepted = stored(schema.get("enum") or [])
    if not accepted:
        return None
    words = [each if isinstance(each, str) else json_text(each) for each in accepted]
    detail = "supported values: " + ", ".join(map(quote, words))
    texts = frozenset(each for each in accepted if isinstance(each, str))

    def check(value: Any) -> FieldErrors:
        if type(value) is str:
            if value in texts:
                return NO_FINDINGS
        else:
            spend_on_branches(len(accepted))
            if any(_is_enum_value(value, each) for each in accepted):
                return NO_FINDINGS
        return (FieldError(SCHEMA, NOT_SUPPORTED, value, detail),)

    return check


def _is_enum_value(value: Any, accepted: Any) -> bool:
    if value is None or accepted is None:
        return False
    kind, other = type(value), type(accepted)
    if kind is other:
        return same(value, accepted)
    if kind is int and other is float:
        return bool(float(value) == accepted)
    if kind is float and other is int:
        if -(2.0**63) <= value < 2.0**63:
            return bool(int(value) == accepted)
        if accepted in (MIN_INT, MAX_INT):
            raise UndecidedValue("the result of a conversion beyond 64 bits depends on the processor")
        return False
    if kind is int and other is str:
        # Go converts an integer to the string with that code point.
        valid = 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF
        return bool((chr(value) if valid else "\ufffd") == accepted)
    return False
