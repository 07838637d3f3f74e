"""Strings and numbers that a schema allows, from a list of common ones: field values of `samples`."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from crdkeeper.apiserver.objects.effort import limited
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.props import INT_OR_STRING, Schema
from crdkeeper.core.patterntexts import texts_of

_TEXTS: Final = (
    "one",
    "two",
    "three-3",
    "Four",
    "five",
    "example.com",
    "example.com/one",
    "one/two",
    "https://example.com:8443/one",
    "",
    "words with spaces: ä, 日本",
    "1",
    "30s",
    "1m30s",
    "1h",
    "1d",
    "512Mi",
    "500m",
    "50%",
    "v1",
    "v1alpha1",
    "One",
    "ONE_TWO",
    "[1-2]",
    "* * * * *",
    "@daily",
    "10.0.0.1",
    "10.0.0.0/8",
    "2001:db8::1",
    "GET",
    "*",
    "one.two.three",
    "one@two.iam.gserviceaccount.com",
    "sha256:" + "0123456789abcdef" * 4,
)
_PLAIN: Final = 11
"""This many of the strings are for fields without format or pattern; the others exist to match patterns."""
_FORMATS: Final = {
    "datetime": ("2026-01-02T03:04:05Z", "2025-12-31T23:59:59Z", "2026-01-02T03:04:05.123456Z"),
    "date": ("2026-01-02", "2024-02-29"),
    "duration": ("30s", "1h30m0s"),
    "byte": ("aGVsbG8=", "YQ==", ""),
    "uri": ("https://example.com/one", "mailto:one@example.com"),
    "email": ("one@example.com", "two@example.com"),
    "hostname": ("example.com", "one.example.com"),
    "ipv4": ("10.0.0.1", "192.0.2.2"),
    "ipv6": ("2001:db8::1", "::1"),
    "cidr": ("10.0.0.0/8", "2001:db8::/32"),
    "mac": ("01:23:45:67:89:ab", "01:23:45:67:89:ac"),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174001"),
    "uuid3": ("123e4567-e89b-32d3-a456-426614174000",),
    "uuid4": ("123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174001"),
    "uuid5": ("123e4567-e89b-52d3-a456-426614174000",),
    "bsonobjectid": ("507f1f77bcf86cd799439011",),
    "isbn": ("0321751043", "978-0321751041"),
    "isbn10": ("0321751043",),
    "isbn13": ("978-0321751041",),
    "creditcard": ("4111111111111111",),
    "ssn": ("111-22-3333",),
    "hexcolor": ("#FFFFFF", "#000000"),
    "rgbcolor": ("rgb(0,255,10)",),
    "password": ("one", "two"),
}
_INTEGERS: Final = (1, 2, 0, 80, 3600, -1, 2**31 - 1)
_NUMBERS: Final = (1, 0.5, 2, 0, 1.25, -1.5, 3600)
_ANYTHING: Final = ({"any": ["thing", 1, {"b": True}]}, "text", 3, ["x", {"y": 0.5}], False)
_LONGEST: Final = 4096
_FEW: Final = 8
_MOST_STEPS: Final = 50_000_000
"""For all values of a field: at most half a second, even with a malicious schema."""


def candidates(schema: Schema) -> Sequence[Any]:
    """Up to a dozen different values that match a schema without fields or items; none if none is known."""
    enum = schema.get("enum")
    fitting: list[Any] = []
    # To look up each value of an enum among all of them would take quadratic time.
    rest = {key: each for key, each in schema.items() if key != "enum"}
    with suppress(UndecidedValue, RecursionError), limited(_MOST_STEPS):
        validator = Validator(rest)
        for each in enum or _likely(schema):
            if not validator.check(each) and not (enum and each is None):
                fitting.append(each)
        if not (fitting or enum) and schema.get("type") == "string":
            fitting += [each for each in texts_of(schema.get("pattern") or "") if not validator.check(each)]
    if enum:
        return fitting
    kind = schema.get("type")
    plain = kind == "string" and not (schema.get("pattern") or schema.get("format"))
    return fitting[: _PLAIN if plain else _FEW]


def _likely(schema: Schema) -> Iterable[Any]:
    if schema.get(INT_OR_STRING):
        return (80, "50%", 1, "512Mi", *_texts(schema))
    match schema.get("type"):
        case "string":
            return _texts(schema)
        case "integer":
            return _numbers(schema, _INTEGERS)
        case "number":
            return _numbers(schema, _NUMBERS)
        case "boolean":
            return (True, False)
    return _ANYTHING


def _texts(schema: Schema) -> Sequence[str]:
    texts = [*_FORMATS.get((schema.get("format") or "").replace("-", ""), ()), *_TEXTS]
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    if 0 < least <= _LONGEST:
        texts += [text + text[-1:] * (least - len(text)) for text in texts if len(text) < least]
    if most is not None:
        texts += [text[: max(0, most)] for text in texts if len(text) > most]
    return list(dict.fromkeys(texts))


def _numbers(schema: Schema, usual: Sequence[int | float]) -> Sequence[int | float]:
    step = schema.get("multipleOf") or 1
    bounds = [schema[key] for key in ("minimum", "maximum") if schema.get(key) is not None]
    near = [each + by for each in bounds for by in (0, step, -step)]
    whole = schema.get("type") == "integer"
    if whole:
        near = [int(each) for each in near]
        step = int(step) or 1
    return list(dict.fromkeys((*usual, *(each * step for each in usual), *near)))
