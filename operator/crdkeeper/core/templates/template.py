"""A template as a function: checked against its schema once, called for each object."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE, Schema
from crdkeeper.core.conversion.results import fitted, plain, type_problem
from crdkeeper.core.conversion.values import NOTHING, Unconvertible
from crdkeeper.core.templates.environment import Environment, Excluded, NotYet, NoValue
from crdkeeper.core.templates.expression import (
    ExpressionAllowance,
    TemplateExpression,
    TemplateScope,
    alternatives,
    compile_embedded,
    no_value,
)
from crdkeeper.core.templates.openapi import QUANTITY
from crdkeeper.core.templates.problem import Problems
from crdkeeper.core.templates.sizes import MOST_DEPTH, SizeExceeded
from crdkeeper.core.templates.statusgap import StatusGap, StatusGapKind
from crdkeeper.core.templates.texts import BadText, Embedded, parts_of

Make = Callable[[Environment], Any]
"""Makes a value. Raises NOTHING to leave the field out, NotYet, Excluded or NoValue."""

OPEN: Final[Schema] = {PRESERVE: True}
"""The schema of what is not checked."""
_ESCAPED: Final = re.compile(r"\$\{")
_KINDS: Final = {
    NotYet: StatusGapKind.NOT_YET,
    Excluded: StatusGapKind.EXCLUDED,
    NoValue: StatusGapKind.FAILED,
}


class TemplateCompiler:
    """Compiles the templates of a Composition, or what else has expressions in it."""

    def __init__(self, scope: TemplateScope, allowance: ExpressionAllowance, problems: Problems) -> None:
        self.scope = scope
        self.expressions: list[TemplateExpression] = []
        """Those of all that was compiled."""
        self._allowance = allowance
        self._problems = problems

    def compile(self, value: Any, schema: Schema, path: Path, depth: int = 1) -> Make:
        """The function for a part of a template; `schema` is that of the part."""
        if value is None:
            return lambda _: fitted(None, schema)
        if schema.get("format") == QUANTITY:
            schema = OPEN
        if depth > MOST_DEPTH:
            self._problems.add(path, f"more than {MOST_DEPTH} levels", "Nest less.")
        elif isinstance(value, str):
            return self._text(value, schema, path)
        elif isinstance(value, dict):
            return self._object(value, schema, path, depth)
        elif isinstance(value, list):
            return self._list(value, schema, path, depth)
        else:
            self._literal(value, schema, path)
        return lambda _: value

    def expression(self, text: str, path: Path) -> TemplateExpression | None:
        """An expression that has to be the whole of a text, as in conditions."""
        parts = self._parts(text, path)
        if parts is None:
            return None
        if len(parts) != 1 or not isinstance(parts[0], Embedded):
            self._problems.add(
                path, "must be one expression in ${…}", "Write the whole condition in one ${…}."
            )
            return None
        return self._expression(parts[0], path)

    def _expression(self, part: Embedded, path: Path, *, as_text: bool = False) -> TemplateExpression | None:
        if self._problems.full:
            return None
        made = compile_embedded(part, path, self.scope, self._allowance, self._problems, as_text=as_text)
        if made is not None:
            self.expressions.append(made)
        return made

    def _parts(self, text: str, path: Path) -> tuple[str | Embedded, ...] | None:
        try:
            return parts_of(text)
        except BadText as error:
            self._problems.add(path, str(error), error.hint, error.offset + 1)
            return None

    def _text(self, text: str, schema: Schema, path: Path) -> Make:
        parts = self._parts(text, path)
        if parts is None:
            return lambda _: None
        if not any(isinstance(each, Embedded) for each in parts):
            literal = "".join(each for each in parts if isinstance(each, str))
            self._literal(literal, schema, path)
            return lambda _: literal
        if len(parts) == 1 and isinstance(parts[0], Embedded):
            return self._value(parts[0], schema, path)
        if schema.get("type", "string") != "string":
            message = f"a text, but the field is of type {schema['type']}"
            self._problems.add(path, message, "Write one expression, without text around it.")
        elif schema.get("format") == "byte":
            message = "a text, but the field has bytes in base64"
            self._problems.add(path, message, "Write bytes(…) in one expression: it is encoded.")
        pieces: list[str | TemplateExpression] = []
        for each in parts:
            piece = each if isinstance(each, str) else self._expression(each, path, as_text=True)
            if piece is not None:
                pieces.append(piece)
        return _recording(path, _joined(path, pieces))

    def _value(self, part: Embedded, schema: Schema, path: Path) -> Make:
        expression = self._expression(part, path)
        if expression is None:
            return lambda _: None
        problem = type_problem(expression.type, schema, strict=True)
        if problem is not None:
            self._problems.add(path, problem, _conversion(schema), part.start + 1)

        def make(environment: Environment) -> Any:
            value = expression.evaluate(environment)
            try:
                made = plain(value, environment.account)
                environment.spend(made)
                made = fitted(made, schema)
                if _no_bytes(made, schema):
                    raise Unconvertible("it is no base64")
                return made
            except (Unconvertible, SizeExceeded) as error:
                raise NoValue(path, expression.column, f"does not fit: {error}") from None
            except (EvaluationError, Indeterminate) as error:
                raise no_value(path, expression.column, str(error)) from None

        return _recording(path, make)

    def _literal(self, value: Any, schema: Schema, path: Path) -> None:
        try:
            fitted(value, schema)
        except Unconvertible as error:
            self._problems.add(path, str(error))
        if _no_bytes(value, schema):
            self._problems.add(path, "it is no base64", "Write ${bytes('…')}.")

    def _object(self, value: dict[str, Any], schema: Schema, path: Path, depth: int) -> Make:
        if not _may_be(schema, "object"):
            self._problems.add(path, f"an object, but the field is of type {_type(schema)}")
            schema = OPEN
        fields: list[tuple[str, Make]] = []
        for key, each in value.items():
            at = path.child(key)
            if _ESCAPED.search(key):
                self._problems.add(
                    at, "a key cannot contain expressions", "Use an expression that gives the map."
                )
            inner = field_of(schema, key)
            if inner is None:
                known = tuple(schema.get("properties") or {})
                self._problems.add(at, "there is no such field", alternatives(key, known, "Known are"))
                inner = OPEN
            fields.append((key, self.compile(each, inner, at, depth + 1)))

        def make(environment: Environment) -> Any:
            made = {}
            for key, field in fields:
                try:
                    made[key] = field(environment)
                except NOTHING:
                    continue
            return made

        return make

    def _list(self, value: list[Any], schema: Schema, path: Path, depth: int) -> Make:
        if not _may_be(schema, "array"):
            self._problems.add(path, f"a list, but the field is of type {_type(schema)}")
            schema = OPEN
        items = schema.get("items")
        inner = items if isinstance(items, Mapping) else OPEN
        made = [self.compile(each, inner, path.index(i), depth + 1) for i, each in enumerate(value)]

        def make(environment: Environment) -> Any:
            found = []
            for each in made:
                try:
                    found.append(each(environment))
                except NOTHING:
                    continue
            return found

        return make


def _recording(path: Path, make: Make) -> Make:
    """With `gaps`, what has no value is left out and recorded."""

    def made(environment: Environment) -> Any:
        try:
            return make(environment)
        except (NotYet, Excluded, NoValue) as error:
            if environment.gaps is None:
                raise
            environment.gaps.append(StatusGap(path, _KINDS[type(error)], why(error)))
            raise NOTHING from None

    return made


def why(error: NotYet | Excluded | NoValue) -> str:
    """Why there is no value, as a part of a sentence."""
    if isinstance(error, NotYet):
        return f"waits for {error.what}"
    if isinstance(error, Excluded):
        return f"refers to {error.name}, which is excluded"
    return error.message


def _joined(path: Path, pieces: Sequence[str | TemplateExpression]) -> Make:
    def make(environment: Environment) -> Any:
        found = []
        for each in pieces:
            text = each if isinstance(each, str) else each.evaluate(environment)
            try:
                environment.spend(text)
            except SizeExceeded as error:
                raise NoValue(path, None, f"does not fit: {error}") from None
            found.append(text)
        return "".join(found)

    return make


def field_of(schema: Schema, name: str) -> Schema | None:
    """The schema of a field or entry; None if objects of the schema have no such field."""
    found = (schema.get("properties") or {}).get(name)
    if isinstance(found, Mapping):
        return found
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return values
    if values is True or schema.get(PRESERVE) or schema.get(EMBEDDED) or not schema.get("type"):
        return OPEN
    return None


def _no_bytes(value: Any, schema: Schema) -> bool:
    """Whether it is a string of a field of bytes, but no base64."""
    if schema.get("format") != "byte" or not isinstance(value, str):
        return False
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        return True
    return False


def _may_be(schema: Schema, kind: str) -> bool:
    return not schema.get(INT_OR_STRING) and schema.get("type", kind) == kind


def _type(schema: Schema) -> str:
    return "integer or string" if schema.get(INT_OR_STRING) else str(schema.get("type"))


def _conversion(schema: Schema) -> str:
    """How to make a value of the type."""
    if schema.get("format") == "byte":
        return "Write bytes(…): it is encoded in base64."
    return {
        "string": "Convert it with string(…).",
        "integer": "Convert it with int(…).",
        "number": "Convert it with double(…).",
    }.get(schema.get("type", ""), "")
