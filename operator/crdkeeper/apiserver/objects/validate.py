"""Validation of a value by an OpenAPI schema, as in kube-openapi's validator.

A schema is compiled once. A valid value then takes little more than a walk over it: errors, their places and
the choice between the errors of anyOf's branches are computed only if something is invalid.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Self

from crdkeeper.apiserver.objects.correlation import Correlated
from crdkeeper.apiserver.objects.effort import spend_on_branches, spend_on_format, spend_on_parts
from crdkeeper.apiserver.objects.valuejunctors import AllOf, AnyOf, Junctor, Measured, Not, OneOf
from crdkeeper.apiserver.objects.valuelimits import (
    Check,
    enum_check,
    format_check,
    invalid,
    size_check,
    text_check,
)
from crdkeeper.apiserver.objects.valuenumbers import number_check
from crdkeeper.apiserver.objects.valuerules import SCHEMA
from crdkeeper.apiserver.objects.valuetypes import Typing, typing_of
from crdkeeper.apiserver.schema.finding import (
    MOST_FINDINGS,
    NO_FINDINGS,
    REQUIRED,
    FieldError,
    FieldErrors,
    Step,
    below,
)
from crdkeeper.apiserver.schema.props import Schema

_SCALARS = (str, bool, int, float)
_Part = tuple[Step, str | int, "Validator", Any]


class Validator:
    """The compiled validator of one schema."""

    __slots__ = (
        "_additional",
        "_any_key",
        "_enum",
        "_extra",
        "_free",
        "_items",
        "_junctors",
        "_limits",
        "_properties",
        "_typed",
        "_typing",
    )

    def __init__(self, schema: Schema, *, request: bool = True, nested: bool = False) -> None:
        """Validates values in a `request`, or else defaults: see `of_default`."""
        self._typing: Typing = typing_of(schema, request=request)
        self._typed = _always_typed(self._typing)
        """Some floats may count as integers, so float is never among them."""
        self._enum = enum_check(schema)
        self._limits = _limits(schema, self._typing, nested=nested)
        self._extra = 1 if format_check(self._typing.format) is not None else 0
        self._junctors = _junctors(schema, request)
        self._properties = {
            name: Validator(each, request=request, nested=nested)
            for name, each in (schema.get("properties") or {}).items()
        }
        additional = None if nested and not request else schema.get("additionalProperties")
        self._any_key = additional is not False
        self._additional = (
            Validator(additional, request=request, nested=nested) if isinstance(additional, dict) else None
        )
        items = schema.get("items")
        self._items = Validator(items, request=request, nested=nested) if isinstance(items, dict) else None
        self._free = frozenset(each for each in _SCALARS if self._accepts_all(each))

    @classmethod
    def of_default(cls, schema: Schema) -> Self:
        """The validator that the server uses for a default of a CRD (ToKubeOpenAPI).

        There, otherwise ignored formats count as types, int-or-string is not a type, and maps inside junctors
        are not checked.
        """
        return cls(schema, request=False)

    def _accepts_all(self, kind: type) -> bool:
        """Whether every value of a type is valid; a float may or may not count as an integer."""
        if kind in self._limits or self._enum or self._junctors:
            return False
        return kind in self._typed

    def check(self, value: Any) -> FieldErrors:
        """The errors of a value, about `MOST_FINDINGS` at most. Raises UndecidedValue, RecursionError."""
        kind = type(value)
        if kind in self._free:
            return NO_FINDINGS
        found = [*self._own(value)]
        if kind is dict or kind is list:
            for step, name, part, each in self._parts(value):
                if type(each) in part._free:
                    continue
                said = part.check(each)
                if said:
                    found += below(step, name, said)
                    if len(found) >= MOST_FINDINGS:
                        break
        return found

    def check_update(self, value: Any, correlated: Correlated | None, *, root: bool = True) -> FieldErrors:
        """The same for an update, which tolerates errors in unchanged parts.

        `correlated` is the value with its old one; without one (None) nothing is tolerated below. Errors of
        allOf, anyOf, oneOf and not are tolerated only if the whole value that has them is unchanged.
        """
        if correlated is None:
            return self.check(value)
        found = [*self._own(value)]
        for step, name, part, each in self._parts(value):
            if step is Step.INDEX:
                child = correlated.index(int(name))
            else:
                # The author of an object cannot keep its version.
                hidden = root and name in ("apiVersion", "kind")
                child = None if hidden else correlated.key(str(name))
            said = part.check_update(each, child, root=False)
            if said:
                found += below(step, name, said)
                if len(found) >= MOST_FINDINGS:
                    break
        return NO_FINDINGS if found and correlated.unchanged() else found

    def measured(self, value: Any) -> Measured:
        """The findings, and how many of the server's validators passed."""
        typing = self._typing
        wrong_type = typing.check(value)
        if value is None:
            return (*wrong_type, *self._enum_findings(value)), 0 if wrong_type else 1
        found = [*wrong_type]
        # The common validator, that of junctors with its own count, and the whole.
        count = 4
        if typing.applies:
            count += 1 if wrong_type else 2
        for junctor in self._junctors:
            said, passed = junctor.measured(value)
            found += said
            count += passed
        for limit in self._limits.get(type(value), ()):
            found += limit(value)
        found += self._enum_findings(value)
        kind = type(value)
        if kind is dict:
            found += self._forbidden(value)
        if kind is str:
            count += 1 + self._extra
        elif kind is dict:
            count += 1
        elif kind is not bool:
            count += 2
        for step, name, part, each in self._parts(value):
            said, passed = part.measured(each)
            if len(found) < MOST_FINDINGS:
                found += below(step, name, said)
            count += passed
        return found, count

    def _own(self, value: Any) -> FieldErrors:
        """The errors of a value itself, without those of its parts."""
        found = NO_FINDINGS if type(value) in self._typed else self._typing.check(value)
        if value is not None:
            for junctor in self._junctors:
                said = junctor.check(value)
                if said:
                    found = (*found, *said)
            for limit in self._limits.get(type(value), ()):
                said = limit(value)
                if said:
                    found = (*found, *said)
        if self._enum is not None:
            said = self._enum(value)
            if said:
                found = (*found, *said)
        if type(value) is dict and not self._any_key:
            found = (*found, *self._forbidden(value))
        return found

    def _enum_findings(self, value: Any) -> FieldErrors:
        return self._enum(value) if self._enum is not None else NO_FINDINGS

    def _forbidden(self, value: dict[str, Any]) -> FieldErrors:
        if self._any_key:
            return NO_FINDINGS
        unknown = (key for key in value if key not in self._properties)
        return [_forbidden_property(key) for key in islice(unknown, MOST_FINDINGS)]

    def _parts(self, value: Any) -> Iterator[_Part]:
        """The parts of a value that have a schema of their own."""
        if type(value) is dict:
            properties, additional = self._properties, self._additional
            if not properties and additional is None:
                return
            for key, each in value.items():
                part = properties.get(key)
                if part is not None:
                    yield Step.FIELD, key, part, each
                elif additional is not None:
                    yield Step.ENTRY, key, additional, each
        elif type(value) is list and self._items is not None:
            items = self._items
            for i, each in enumerate(value):
                yield Step.INDEX, i, items, each


def _forbidden_property(key: str) -> FieldError:
    finding = invalid(key, "is a forbidden property")
    finding.detail = f".{key}{finding.detail}"
    return finding


@lru_cache(maxsize=256)
def _always_typed(typing: Typing) -> frozenset[type]:
    """The Python types whose values all have the right type; a CRD has thousands of nodes and few typings."""
    return frozenset(
        each for each in (*_SCALARS, list, dict) if each is not float and not typing.check(each())
    )


def _limits(schema: Schema, typing: Typing, *, nested: bool) -> dict[type, tuple[Check, ...]]:
    """The checks of values by their Python type, in the server's order.

    What is `nested` in a junctor first counts what it goes through: each of many branches may do so.
    """
    has_format = format_check(typing.format)
    number = number_check(schema, *typing.number)
    found: dict[type, list[Check | None]] = {
        str: [text_check(schema), has_format],
        int: [number],
        float: [number],
        list: [size_check(schema, "Items")],
        dict: [size_check(schema, "Properties"), _required_check(schema.get("required", []))],
    }
    if nested:
        if has_format is not None:
            found[str].insert(0, _counted_text)
        if schema.get("items"):
            found[list].insert(0, _counted_parts)
        if schema.get("properties") or schema.get("additionalProperties"):
            found[dict].insert(0, _counted_parts)
    kept = {kind: tuple(each for each in checks if each is not None) for kind, checks in found.items()}
    return {kind: checks for kind, checks in kept.items() if checks}


def _counted_text(value: str) -> FieldErrors:
    spend_on_format(value)
    return NO_FINDINGS


def _counted_parts(value: list[Any] | dict[str, Any]) -> FieldErrors:
    spend_on_parts(value)
    return NO_FINDINGS


def _required_check(required: list[str]) -> Check | None:
    if not required:
        return None

    def check(value: dict[str, Any]) -> FieldErrors:
        found: list[FieldError] = []
        for key in required:
            if key not in value:
                spend_on_branches(1)
                found += below(Step.ENTRY, key, [FieldError(SCHEMA, REQUIRED, "", "")])
        return found

    return check


def _junctors(schema: Schema, request: bool) -> tuple[Junctor, ...]:
    def branches(key: str) -> list[Validator]:
        return [Validator(each, request=request, nested=True) for each in schema.get(key, ())]

    found: list[Junctor] = []
    for key, junctor in (("anyOf", AnyOf), ("oneOf", OneOf), ("allOf", AllOf)):
        if schema.get(key):
            found.append(junctor(branches(key)))
    if "not" in schema:
        found.append(Not(Validator(schema["not"], request=request, nested=True)))
    return tuple(found)
