"""The formats that the API server checks, and what the author of another one may have meant.

The server ignores other formats. Many are meant for other tools: for forms, or for code generators, as in
the registry of OpenAPI (https://spec.openapis.org/registry/format/). A mistake resembles a format that is
checked.
"""

import re
from collections.abc import Mapping
from typing import Final

# Those of supportedVersionedFormats in apiextensions-apiserver (pkg/apiserver/validation/formats.go),
# compared without hyphens.
_OF_TEXT: Final = (
    *("bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac"),
    *("uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn"),
    *("hexcolor", "rgbcolor", "byte", "password", "date", "duration", "date-time"),
    *("k8s-short-name", "k8s-long-name"),
)
_CHECKED: Final = {each.replace("-", ""): each for each in _OF_TEXT}
_TEXTS: Final = frozenset(_CHECKED)
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "string": _TEXTS,
    "": _TEXTS,
    "integer": frozenset(("int32", "int64")),
    "number": frozenset(("float", "double")),
}
_ANYWHERE: Final = frozenset[str]().union(*_KNOWN.values())
_NUMBERS_IN_TEXTS: Final = frozenset(("int64",))
"""In JSON, Protocol Buffers write these numbers as strings."""
_OTHER_NAMES: Final = {
    "base64": "byte",
    "dnsname": "hostname",
    "domain": "hostname",
    "fqdn": "hostname",
    "guid": "uuid",
    "ip": "ipv4 or ipv6",
    "ipaddress": "ipv4 or ipv6",
    "macaddress": "mac",
    "rfc3339": "date-time",
    "timestamp": "date-time",
    "url": "uri",
}
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_./][A-Za-z0-9]+)*")
_SIZED: Final = re.compile(r"u?int[0-9]+")
_SEPARATORS: Final = str.maketrans("", "", "-_. ")
_SHORTEST: Final = 5
"""Letters of a name that is compared letter by letter; with fewer, too many words are alike."""
_LONGEST: Final = 40


def is_known(format_: str, type_: str) -> bool:
    """Whether the API server checks the format for the type, which is empty if there is none."""
    return format_.replace("-", "") in _KNOWN.get(type_, ())


def meant(format_: str, type_: str) -> str:
    """The format of a string that an unknown one resembles; empty if none."""
    if type_ not in ("string", "") or len(format_) > _LONGEST:
        return ""
    plain = format_.lower().translate(_SEPARATORS)
    if plain in _CHECKED or plain in _OTHER_NAMES:
        return _CHECKED.get(plain) or _OTHER_NAMES[plain]
    return next((name for each, name in _CHECKED.items() if _differ_by_one(plain, each)), "")


def is_hint(format_: str, type_: str) -> bool:
    """Whether an unknown format is a name for other tools, and no mistake.

    The server checks no range of integers for a size that it does not know, such as uint32.
    """
    plain = format_.replace("-", "")
    if meant(format_, type_) or not _NAME.fullmatch(format_):
        return False
    if type_ == "string" and plain in _NUMBERS_IN_TEXTS:
        return True
    return plain not in _ANYWHERE and not (type_ == "integer" and _SIZED.fullmatch(plain))


def _differ_by_one(one: str, other: str) -> bool:
    """Whether one letter was added, left out, replaced, or swapped with the next one; digits are meant."""
    if min(len(one), len(other)) < _SHORTEST or abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return not (one[len(other) :] + other[len(one) :]).isdigit()
    if one[start].isdigit() or other[start].isdigit():
        return False
    swapped = one[start : start + 2] == other[start : start + 2][::-1]
    return (
        one[start + 1 :] == other[start + 1 :]
        or one[start + 1 :] == other[start:]
        or one[start:] == other[start + 1 :]
        or (swapped and one[start + 2 :] == other[start + 2 :])
    )
