"""Values for each keyword of a schema: some valid, many invalid, some only unusual."""

from typing import Any

from hypothesis import strategies as st

Json = Any

TYPES = ("object", "array", "string", "integer", "number", "boolean")
FORMATS = (
    "bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "double", "duration",
    "email", "float", "hexcolor", "hostname", "int32", "int64", "ipv4", "ipv6", "isbn", "isbn10",
    "isbn13", "k8s-long-name", "k8s-short-name", "mac", "nonsense", "password", "rgbcolor", "ssn", "uri",
    "uuid", "uuid3", "uuid4", "uuid5",
)  # fmt: skip
PATTERNS = (
    r"^[a-z]+$", r"^\d{1,3}$", "(", "a)", "[a", "a**", r"(?=a)", r"\1", "a{2,1}", "a{1001}", "(a{500}){3}",
    r"\p{L}+", r"\p{Han}", r"\p{han_x}", r"\p", "[[:alpha:]]", "[[:foo:]]", "x{,3}", r"\Qa(", "(?P<n>a)",
    "(?P<n-o>a)", "[z-a]", "*", "a\\",
)  # fmt: skip


def _one_of(*values: Json) -> st.SearchStrategy[Json]:
    return st.sampled_from(values)


SCALARS = _one_of("a", "", "x<&>y", 'q"\n\t', 0, 1, -3, 1.5, True, False)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(("a", "b", "name")), inner, max_size=2)
    ),
    max_leaves=4,
)
_COUNTS = _one_of(0, 1, 3, -1)
_FLAGS = _one_of(True, True, False)
_KEYS = st.sampled_from(("a", "b", "name", "", "it's", "kind", "apiVersion", "metadata", "generateName"))

# The other fields of rules; `expressions` has more expressions.
_STEPS = (
    ".",
    ".a",
    ".b",
    "['a']",
    "['']",
    "['it\\'s']",
    "[",
    "]",
    "'",
    "\\",
    "\\q",
    "a",
    "''",
    ".name",
    "\n",
)
_FIELD_PATHS = st.lists(st.sampled_from(_STEPS), min_size=1, max_size=4).map("".join)
_FIXED_RULES = _one_of(
    {"rule": "true"},
    {"rule": "true", "message": "no"},
    {"rule": " "},
    {"rule": ""},
    {"rule": "true", "message": " "},
    {"rule": "true", "message": "a\nb"},
    {"rule": "true &&\ntrue"},
    {"rule": "true &&\ntrue", "message": "m"},
    {"rule": "true", "messageExpression": " "},
    {"rule": "true", "reason": "FieldValueInvalid"},
    {"rule": "true", "reason": "Bad<"},
    {"rule": "true", "reason": ""},
    {"rule": "true", "fieldPath": " "},
    {"rule": "true", "fieldPath": ".a"},
    {"rule": "true", "fieldPath": ".a.b"},
    {"rule": "true", "fieldPath": "a"},
    {"rule": "true", "fieldPath": "['a']"},
    {"rule": "true", "fieldPath": "['a"},
    {"rule": "true", "fieldPath": ".a\n"},
    {"rule": "true", "optionalOldSelf": True},
    {},
)
_RULES = st.one_of(_FIXED_RULES, _FIELD_PATHS.map(lambda path: {"rule": "true", "fieldPath": path}))


def _typed(type_: str) -> Json:
    return {"type": type_, "items": {"type": "string"}} if type_ == "array" else {"type": type_}


def _schemas() -> st.SearchStrategy[Json]:
    return st.deferred(lambda: SMALL)


def _keywords() -> dict[str, st.SearchStrategy[Json]]:
    junctor = st.lists(st.one_of(_schemas(), _one_of({"type": "integer"}, {"type": "string"})), max_size=2)
    int_or_string = st.just([{"type": "integer"}, {"type": "string"}])
    maps = st.dictionaries(_KEYS, _schemas(), max_size=3)
    return {
        "type": st.one_of(st.sampled_from(TYPES), _one_of("null", "", "any", 'o"x')),
        "format": st.sampled_from(FORMATS),
        "title": _one_of("t", ""),
        "description": _one_of("d", ""),
        "default": VALUES,
        "example": VALUES,
        "maximum": _one_of(1, 2.5, 0),
        "exclusiveMaximum": _FLAGS,
        "minimum": _one_of(1, -1),
        "maxLength": _COUNTS,
        "minLength": _COUNTS,
        "pattern": st.sampled_from(PATTERNS),
        "maxItems": _COUNTS,
        "minItems": _COUNTS,
        "uniqueItems": _FLAGS,
        "multipleOf": _one_of(2, 0.5),
        "enum": st.lists(SCALARS, max_size=3),
        "maxProperties": _COUNTS,
        "minProperties": _COUNTS,
        "required": st.lists(_KEYS, max_size=2),
        "items": st.one_of(_schemas(), _schemas(), _one_of({}, []), st.lists(_schemas(), max_size=2)),
        "allOf": st.one_of(junctor, int_or_string.map(lambda any_of: [{"anyOf": any_of}, {"minLength": 1}])),
        "anyOf": st.one_of(junctor, int_or_string),
        "oneOf": junctor,
        "not": _schemas(),
        "properties": st.one_of(maps, st.dictionaries(_KEYS, st.sampled_from(TYPES).map(_typed), max_size=3)),
        "additionalProperties": st.one_of(_schemas(), st.booleans()),
        "patternProperties": st.dictionaries(_KEYS, _schemas(), max_size=1),
        "dependencies": st.one_of(
            st.dictionaries(_KEYS, st.one_of(_schemas(), st.just(["a"])), max_size=1), st.just({})
        ),
        "additionalItems": st.one_of(_schemas(), st.booleans()),
        "definitions": st.dictionaries(_KEYS, _schemas(), max_size=1),
        "externalDocs": _one_of({"url": "https://example.com"}, {}),
        "nullable": _FLAGS,
        "id": _one_of("x", ""),
        "$schema": _one_of("https://example.com", ""),
        "$ref": _one_of("#/definitions/a", ""),
        "x-kubernetes-preserve-unknown-fields": _FLAGS,
        "x-kubernetes-embedded-resource": _FLAGS,
        "x-kubernetes-int-or-string": _FLAGS,
        "x-kubernetes-list-type": _one_of("atomic", "set", "map", "map", "bag", ""),
        "x-kubernetes-list-map-keys": st.lists(_KEYS, max_size=2),
        "x-kubernetes-map-type": _one_of("atomic", "granular", "", "round"),
        "x-kubernetes-validations": st.lists(_RULES, max_size=2),
        "x-unknown": st.just(1),
    }


_COMMON = (
    "type", "properties", "items", "pattern", "anyOf", "allOf", "nullable", "title", "description", "format",
    "maximum", "maxLength", "required", "enum", "example", "externalDocs", "additionalProperties",
    "x-kubernetes-list-type", "x-kubernetes-map-type",
)  # fmt: skip


_TELLING = (
    "default",
    "uniqueItems",
    "oneOf",
    "not",
    "x-kubernetes-validations",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-map-keys",
)


@st.composite
def _small(draw: st.DrawFn) -> Json:
    """A schema with few keywords, most of them where they belong."""
    schema: dict[str, Json] = {}
    if draw(st.integers(0, 3)):
        schema["type"] = draw(st.sampled_from(TYPES))
    for _ in range(draw(st.sampled_from((0, 0, 1, 1, 2)))):
        keyword, value = draw(keyword_values())
        schema[keyword] = value
    return schema


@st.composite
def keyword_values(draw: st.DrawFn) -> tuple[str, Json]:
    """A keyword with a value for it."""
    keyword = draw(st.sampled_from(draw(st.sampled_from((tuple(KEYWORDS), _COMMON, _TELLING)))))
    if draw(st.integers(0, 60)) == 0:
        return keyword, draw(VALUES)
    return keyword, draw(KEYWORDS[keyword])


SMALL = _small()
KEYWORDS = _keywords()
