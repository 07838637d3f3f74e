"""minimum, maximum and multipleOf, with the quirks of kube-openapi's number validator.

A bound is first checked against the type: 2.5 is not an integer, which is an error of its own for every
value. Otherwise an integer is compared with the integral part of the bound.
"""

import math
from collections.abc import Callable
from typing import Final

from crdkeeper.apiserver.golang.numbers import shortest
from crdkeeper.apiserver.objects.valuelimits import Check, invalid
from crdkeeper.apiserver.objects.valuerules import SCHEMA
from crdkeeper.apiserver.objects.valuetypes import is_json_integer
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    NO_FINDINGS,
    FieldError,
    FieldErrors,
    Naming,
    UndecidedValue,
)
from crdkeeper.apiserver.schema.props import Schema

Number = int | float

_BITS: Final = {"int32": 32, "int64": 64, "": 64}
_MAX_FLOAT32: Final = float.fromhex("0x1.ffffffp127")
"""From here on, a number is rounded to infinity as a 32-bit float."""


def number_check(schema: Schema, type_: str, format: str) -> Check | None:
    """The check of numbers under a schema with this numeric type and format (empty: none)."""
    bounds = [
        bound
        for bound in (
            _multiple_of(schema, type_, format),
            _bound(schema, "minimum", type_, format),
            _bound(schema, "maximum", type_, format),
        )
        if bound is not None
    ]
    ranged = type_ == "integer" or (type_ == "number" and format == "float")
    if not bounds and not ranged:
        return None
    outside = _range_error("Checked", type_, format)

    def check(value: Number) -> FieldErrors:
        found: list[FieldError] = []
        if ranged and not _within(value, type_, format):
            found.append(outside())
        for each in bounds:
            found += each(value)
        return found

    return check


def _within(value: Number, type_: str, format: str) -> bool:
    if type_ == "integer":
        limit = 1 << (_BITS[format] - 1)
        return (type(value) is int or float(value).is_integer()) and -limit <= value < limit
    return format != "float" or abs(value) < _MAX_FLOAT32


def _range_error(prefix: str, type_: str, format: str) -> Callable[[], FieldError]:
    kind = f"with format {format}" if format else "(default format)"
    detail = f"{prefix} value must be of type {type_} {kind} in "

    def error() -> FieldError:
        return FieldError(SCHEMA, INVALID, "", detail, Naming.AFTER, nowhere=True)

    return error


def _integral(bound: float) -> int:
    """A bound converted to a 64-bit integer like in Go."""
    if bound >= 2.0**63:
        raise UndecidedValue("what a bound of more than 64 bits means to an integer depends on the processor")
    return math.trunc(max(bound, -(2.0**63)))


def _bound(schema: Schema, keyword: str, type_: str, format: str) -> Callable[[Number], FieldErrors] | None:
    bound: float | None = schema.get(keyword)
    if bound is None:
        return None
    exclusive = bool(schema.get(f"exclusive{keyword.capitalize()}"))
    sign, words = (1, "less") if keyword == "maximum" else (-1, "greater")
    said = f"should be {words} than {'' if exclusive else 'or equal to '}"
    fits = _within(bound, type_, format)
    misfit = _range_error(f"{keyword.capitalize()} boundary", type_, format)

    def check(value: Number) -> FieldErrors:
        limit: Number = _integral(bound) if type(value) is int and fits else bound
        compared = value if fits else float(value)
        beyond = (compared - limit) * sign
        found: list[FieldError] = [] if fits else [misfit()]
        if beyond > 0 or (exclusive and beyond == 0):
            found.append(invalid(compared, said + (str(limit) if type(limit) is int else shortest(limit))))
        return found

    return check


def _multiple_of(schema: Schema, type_: str, format: str) -> Callable[[Number], FieldErrors] | None:
    factor: float | None = schema.get("multipleOf")
    if factor is None:
        return None
    fits = _within(factor, type_, format)
    misfit = _range_error("MultipleOf", type_, format)

    def check(value: Number) -> FieldErrors:
        if type(value) is int and fits:
            return _not_multiple(value, _integral(factor))
        found: list[FieldError] = [] if fits else [misfit()]
        return (*found, *_not_multiple(float(value), factor))

    return check


def _not_multiple(value: Number, factor: Number) -> FieldErrors:
    said = str(factor) if type(factor) is int else shortest(factor)
    if factor <= 0:
        detail = f"factor MultipleOf declared for \0 must be positive: {said}"
        return (FieldError(SCHEMA, INVALID, factor, detail, Naming.BETWEEN),)
    if type(factor) is int:
        multiple = value % factor == 0
    else:
        multiple = is_json_integer(1 / factor * value if factor < 1 else value / factor)
    return NO_FINDINGS if multiple else (invalid(value, f"should be a multiple of {said}"),)
