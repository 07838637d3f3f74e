"""Which values have the type in a schema, according to kube-openapi's type validator.

A float that is very nearly an integer counts as one. A format can match instead of the type: both are
compared.
"""

from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.objects.valuerules import SCHEMA
from crdkeeper.apiserver.schema import formats
from crdkeeper.apiserver.schema.finding import INVALID, NO_FINDINGS, FieldError, FieldErrors, Naming
from crdkeeper.apiserver.schema.props import INT_OR_STRING, Schema

_GO_NAMES: Final[dict[type, tuple[str, str]]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}
_MAX_JSON_INTEGER: Final = float((1 << 53) - 1)


def is_json_integer(value: float) -> bool:
    """Whether a float counts as an integer: within 2^53, and at most a billionth away from one."""
    if not -_MAX_JSON_INTEGER <= value <= _MAX_JSON_INTEGER:
        return False
    rounded = float(int(abs(value) + 0.5))
    distance = abs(abs(value) - rounded)
    return distance == 0 or (rounded != 0 and distance < 1e-9 * rounded)


@dataclass(frozen=True, slots=True)
class Typing:
    """The types and the format in the server's validator for a schema."""

    types: tuple[str, ...]
    format: str
    nullable: bool

    @property
    def applies(self) -> bool:
        """Whether there is anything to check."""
        return bool(self.types or self.format)

    @property
    def number(self) -> tuple[str, str]:
        """The type and format by which a number's range is checked; empty if there is none."""
        if len(self.types) != 1 or self.types[0] not in ("integer", "number"):
            return "", ""
        return self.types[0], self.format if formats.is_numeric(self.format, self.types[0]) else ""

    def check(self, value: Any) -> FieldErrors:
        """The errors of a value's type."""
        if value is None:
            if self.types and not self.nullable:
                return (_wrong(",".join(self.types), "null"),)
            return NO_FINDINGS
        if not self.applies:
            return NO_FINDINGS
        types, format = self.types, self.format
        name, go_format = _GO_NAMES[type(value)]
        fits = (
            name in types
            or (name == "integer" and "number" in types)
            or (name == "number" and "integer" in types and is_json_integer(value))
        )
        if name in ("string", "array"):
            if format and "number" not in types and "integer" not in types:
                # Also for an array instead of a string with a format.
                return NO_FINDINGS
        elif format and not fits and go_format != format:
            return (_wrong(format, go_format),)
        return NO_FINDINGS if fits else (_wrong(",".join(types), name),)


def typing_of(schema: Schema, *, request: bool) -> Typing:
    """The typing of a schema: for a `request`, or for a default, which has its own validator."""
    type_, format = schema.get("type", ""), schema.get("format", "")
    types: tuple[str, ...] = (type_,) if type_ else ()
    if request:
        if schema.get(INT_OR_STRING):
            types = ("integer", "string")
        if not formats.is_supported(format, types[0] if len(types) == 1 else ""):
            format = ""
    return Typing(types, format, bool(schema.get("nullable")))


def _wrong(wanted: str, got: str) -> FieldError:
    detail = f" in body must be of type {wanted}: {quote(got)}"
    return FieldError(SCHEMA, INVALID, got, detail, Naming.BEFORE, wrong_type=True)
