"""Named formats: format.dns1123Label() and so on, and their messages (library/format.go of Kubernetes)."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import re2

from crdkeeper.apiserver.cel.library.urls import request_problem
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.values import Indeterminate, Opaque, Value, no_overload
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.formats import check_of

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_RFC1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_Validate = Callable[[str], Sequence[str]]


class NamedFormat(Opaque):
    """A format by name."""

    __slots__ = ("name", "pattern_size", "validate")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, pattern_size: int, validate: _Validate) -> None:
        """`pattern_size` is the length of the pattern by which the server prices the format."""
        self.name = name
        self.pattern_size = pattern_size
        self.validate = validate

    def equals(self, other: Value) -> bool:
        """Formats are equal by name; there is no overload for other types."""
        if type(other) is not NamedFormat:
            raise no_overload()
        return self.name == other.name


def _pattern(pattern: str) -> Callable[[str], Any]:
    return re2.compile(pattern).fullmatch  # type: ignore[no-any-return]


_is_label, _is_subdomain, _is_rfc1035 = _pattern(_LABEL), _pattern(_SUBDOMAIN), _pattern(_RFC1035)
_is_key, _is_value = _pattern(_KEY), _pattern(f"({_KEY})?")


def _rule(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_RULE: Final = _rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE: Final = _rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_RFC1035_RULE: Final = _rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _RFC1035,
    "my-name",
    "abc-123",
)
_NAME_RULE: Final = _rule(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
_VALUE_RULE: Final = _rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character",
    f"({_KEY})?",
    "MyValue",
    "my_value",
    "12345",
)


def _too_long(text: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(text.encode()) > limit else []


def _label(text: str) -> list[str]:
    problems = _too_long(text, 63, "characters")
    if not _is_label(text):
        problems.append("must not contain dots" if _is_subdomain(text) else _LABEL_RULE)
    return problems


def _subdomain(text: str, unit: str = "characters") -> list[str]:
    return _too_long(text, 253, unit) + ([] if _is_subdomain(text) else [_SUBDOMAIN_RULE])


def _rfc1035(text: str) -> list[str]:
    return _too_long(text, 63, "characters") + ([] if _is_rfc1035(text) else [_RFC1035_RULE])


def _prefix(validate: _Validate) -> _Validate:
    """The prefix of a generated name: a dash at its end stands for what will follow (maskTrailingDash)."""

    def check(text: str) -> Sequence[str]:
        data = text.encode()
        if len(data) > 1 and data.endswith(b"-"):
            text = (data[:-2] + b"a").decode(errors="replace")
        return validate(text)

    return check


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    problems: list[str] = []
    if "/" in prefix:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    if slash:
        found = _subdomain(prefix, "bytes") if prefix else ["must be non-empty"]
        problems += [f"prefix part {each}" for each in found]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {each}" for each in _too_long(name, 63, "bytes")]
    return problems if _is_key(name) else [*problems, f"name part {_NAME_RULE}"]


def _label_value(text: str) -> list[str]:
    return _too_long(text, 63, "bytes") + ([] if _is_value(text) else [_VALUE_RULE])


def _uri(text: str) -> list[str]:
    problem = request_problem(text)
    return [] if problem is None else [problem]


def _checked(format: str, message: str) -> _Validate:
    check = check_of(format)
    if check is None:
        raise KeyError(format)

    def validate(text: str) -> list[str]:
        try:
            return [] if check(text) else [message]
        except UndecidedValue as undecided:
            raise Indeterminate(str(undecided)) from None

    return validate


FORMATS: Final[dict[str, NamedFormat]] = {
    name: NamedFormat(shown, size, validate)
    for name, shown, size, validate in (
        ("dns1123Label", "DNS1123Label", 30, _label),
        ("dns1123Subdomain", "DNS1123Subdomain", 60, _subdomain),
        ("dns1035Label", "DNS1035Label", 30, _rfc1035),
        ("qualifiedName", "QualifiedName", 60, _qualified_name),
        ("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, _prefix(_label)),
        ("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, _prefix(_subdomain)),
        ("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, _prefix(_rfc1035)),
        ("labelValue", "LabelValue", 40, _label_value),
        ("uri", "URI", 1103, _uri),
        ("uuid", "uuid", 70, _checked("uuid", "does not match the UUID format")),
        ("byte", "byte", 84, _checked("byte", "invalid base64")),
        ("date", "date", 71, _checked("date", "invalid date")),
        ("datetime", "datetime", 71, _checked("datetime", "invalid datetime")),
    )
}
"""The formats, by the names that format.named accepts."""


def _named(name: str) -> OptionalValue:
    found = FORMATS.get(name)
    return NONE if found is None else OptionalValue(found)


def _validate(named: NamedFormat, text: str) -> OptionalValue:
    problems = named.validate(text)
    return OptionalValue(list(problems)) if problems else NONE


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


MEMBERS: Final[Table] = {"validate": (Overload((NamedFormat.type_name, "string"), _validate),)}
GLOBALS: Final[Table] = {
    "format.named": (Overload(("string",), _named),),
    **{f"format.{name}": (Overload((), _constant(named)),) for name, named in FORMATS.items()},
}
