"""Structural schemas of single properties: drawn keyword by keyword, or taken from the corpus and changed."""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
from hypothesis import strategies as st

from tests.cluster.definitions.lint.keywords import keyword_values
from tests.cluster.definitions.lint.variants import corpus
from tests.cluster.objects.rules import rules
from tests.cluster.objects.samples import FORMATTED
from tests.cluster.objects.values import values

Json = Any

_NAMES = ("a", "b", "c", "name", "kind", "x-y", "metadata")
_PATTERNS = (
    r"^[a-z]+$",
    r"^\d{1,3}$",
    "a",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    r"\p{L}",
    "^$",
    r"(?i)^abc$",
    "[^a]",
    r"^.{1,5}\z",
)
_FORMATS = (
    *FORMATTED,
    "date-time",
    "k8s-short-name",
    "k8s-long-name",
    "int-or-string",
    "int32",
    "double",
    "nonsense",
    "u-r-i",
)
_SMALL = (0, 1, 2, 3)
_BOUNDS = (0, 1, 2, 2.5, -1, 0.5, 10, 2**40, 1e15)
_BIGGEST = 3000
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@st.composite
def schemas(draw: st.DrawFn) -> Json:
    """The schema of one property; the API server may refuse a few."""
    parts = _corpus_parts()
    if draw(st.booleans()) and parts:
        schema = copy.deepcopy(draw(st.sampled_from(parts)))
        if draw(st.booleans()):
            _change(draw, schema)
        return schema
    return draw(_node(0))


def _change(draw: st.DrawFn, schema: Json) -> None:
    node = draw(st.sampled_from(list(_nodes(schema))))
    keyword, value = draw(keyword_values())
    if keyword in node and draw(st.booleans()):
        del node[keyword]
    else:
        node[keyword] = copy.deepcopy(value)


def _nodes(schema: Json) -> Iterator[Json]:
    yield schema
    for each in (schema.get("properties") or {}).values():
        yield from _nodes(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])


@cache
def _corpus_parts() -> tuple[Json, ...]:
    """The parts of the corpus' schemas that are small but not trivial."""
    found: dict[bytes, Json] = {}
    for crd in corpus():
        for version in crd["spec"]["versions"]:
            for node in _nodes(version.get("schema", {}).get("openAPIV3Schema", {})):
                bare = _bare(node)
                text = orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)
                if 40 < len(text) < _BIGGEST:
                    found[text] = bare
    return tuple(found[text] for text in sorted(found))


def _bare(schema: Json) -> Json:
    """Without descriptions."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(each) for key, each in schema.items() if key != "description" or not isinstance(each, str)
    }


@st.composite
def _node(draw: st.DrawFn, depth: int) -> Json:
    kinds = ["string", "string", "integer", "number", "boolean", "any", "int-or-string"]
    if depth < 4:
        kinds += ["array", "array", "object", "object", "object", "map", "embedded"]
    kind = draw(st.sampled_from(kinds))
    schema: dict[str, Json] = draw(_KINDS[kind](depth))
    if draw(st.integers(0, 5)) == 0:
        schema["nullable"] = True
    if draw(st.integers(0, 8)) == 0:
        schema |= draw(_junctors(schema))
    if draw(st.integers(0, 8)) == 0 and kind != "any":
        schema["enum"] = draw(st.lists(values({**schema, "enum": []}), min_size=1, max_size=3))
    if depth and draw(st.integers(0, 4)) == 0:
        schema["default"] = draw(values(schema))
    if draw(st.integers(0, 3)) == 0 and kind != "any":
        schema["x-kubernetes-validations"] = draw(rules(kind, schema))
    return schema


def _some(draw: st.DrawFn, schema: dict[str, Json], **choices: tuple[Json, ...]) -> dict[str, Json]:
    for key, each in choices.items():
        if draw(st.integers(0, 3)) == 0:
            schema[key] = draw(st.sampled_from(each))
    return schema


@st.composite
def _string(draw: st.DrawFn, depth: int) -> Json:
    return _some(
        draw,
        {"type": "string"},
        minLength=_SMALL,
        maxLength=(0, 1, 3, 63, -1),
        pattern=_PATTERNS,
        format=_FORMATS,
    )


@st.composite
def _number(draw: st.DrawFn, type_: str) -> Json:
    bounds = tuple(
        each for each in _BOUNDS if type_ == "number" or draw(st.booleans()) or float(each).is_integer()
    )
    schema = _some(
        draw,
        {"type": type_},
        minimum=bounds,
        maximum=bounds,
        multipleOf=(1, 2, 3, 0.5, 0.1, 1.5),
        format=("int32", "int64", "float", "double", "nonsense", "date"),
    )
    for key in ("Minimum", "Maximum"):
        if key.lower() in schema:
            schema = _some(draw, schema, **{f"exclusive{key}": (True,)})
    return schema


def _typed(schema: Json) -> Any:
    def strategy(depth: int) -> st.SearchStrategy[Json]:
        return st.builds(lambda: copy.deepcopy(schema))

    return strategy


@st.composite
def _array(draw: st.DrawFn, depth: int) -> Json:
    list_type = draw(st.sampled_from((None, None, "atomic", "set", "map", "map")))
    schema: dict[str, Json] = {"type": "array"}
    if list_type is not None:
        schema["x-kubernetes-list-type"] = list_type
    if list_type == "set":
        schema["items"] = draw(
            st.sampled_from(
                (
                    {"type": "string"},
                    {"type": "number"},
                    {"type": "integer", "maximum": 5},
                    {"x-kubernetes-int-or-string": True},
                    {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": {"a": {"type": "number"}, "b": {"type": "string"}},
                    },
                    {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "number"}},
                )
            )
        )
    elif list_type == "map":
        keys = draw(st.sampled_from((["name"], ["a"], ["a", "name"])))
        properties = {key: draw(st.sampled_from(({"type": "string"}, {"type": "number"}))) for key in keys}
        for name in draw(st.lists(st.sampled_from(("b", "c")), max_size=2, unique=True)):
            properties[name] = draw(_node(depth + 1))
        schema["x-kubernetes-list-map-keys"] = keys
        schema["items"] = {"type": "object", "required": keys, "properties": properties}
    else:
        schema["items"] = draw(_node(depth + 1))
    return _some(draw, schema, minItems=_SMALL, maxItems=(0, 1, 2, 3))


@st.composite
def _object(draw: st.DrawFn, depth: int) -> Json:
    names = draw(st.lists(st.sampled_from(_NAMES), max_size=4, unique=True))
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {name: draw(_node(depth + 1)) for name in names},
    }
    if draw(st.booleans()) and names:
        schema["required"] = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    choices: dict[str, tuple[Json, ...]] = {"minProperties": _SMALL, "maxProperties": (0, 1, 2)}
    if draw(st.booleans()):
        choices = {"x-kubernetes-preserve-unknown-fields": (True,), "x-kubernetes-map-type": ("atomic",)}
    return _some(draw, schema, **choices)


@st.composite
def _map(draw: st.DrawFn, depth: int) -> Json:
    schema = {"type": "object", "additionalProperties": draw(st.one_of(_node(depth + 1), st.booleans()))}
    return _some(draw, schema, minProperties=_SMALL, maxProperties=(0, 1, 2))


@st.composite
def _embedded(draw: st.DrawFn, depth: int) -> Json:
    schema: dict[str, Json] = {"type": "object", "x-kubernetes-embedded-resource": True}
    if draw(st.booleans()):
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if "x-kubernetes-preserve-unknown-fields" not in schema or draw(st.booleans()):
        schema["properties"] = {"spec": draw(_node(depth + 1)), "kind": {"type": "string", "enum": ["Pod"]}}
    return schema


_KINDS: dict[str, Any] = {
    "string": _string,
    "integer": lambda depth: _number("integer"),
    "number": lambda depth: _number("number"),
    "boolean": _typed({"type": "boolean"}),
    "any": _typed({"x-kubernetes-preserve-unknown-fields": True}),
    "int-or-string": lambda depth: st.sampled_from(
        (
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "anyOf": _INT_OR_STRING, "pattern": "^[0-9]+%?$"},
            {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": _INT_OR_STRING}, {"maximum": 100}]},
            {"x-kubernetes-int-or-string": True, "maxLength": 3, "minimum": 1, "format": "date"},
        )
    ).map(copy.deepcopy),
    "array": _array,
    "object": _object,
    "map": _map,
    "embedded": _embedded,
}  # fmt: skip


@st.composite
def _junctors(draw: st.DrawFn, schema: Json) -> Json:
    key = draw(st.sampled_from(("anyOf", "oneOf", "allOf", "not")))
    if key == "anyOf" and "anyOf" in schema:
        return {}
    if key == "not":
        return {key: draw(_branch(schema, 0))}
    return {key: draw(st.lists(_branch(schema, 0), min_size=1, max_size=3))}


@st.composite
def _branch(draw: st.DrawFn, schema: Json, depth: int) -> Json:
    """Restrictions of values for one branch, of fields in the schema."""
    found: dict[str, Json] = {}
    names = sorted(schema.get("properties") or {})
    if draw(st.booleans()) and names:
        found["required"] = [draw(st.sampled_from(names))]
    if draw(st.booleans()) and names:
        name = draw(st.sampled_from(names))
        found["properties"] = {name: draw(_branch(schema["properties"][name], depth + 1))}
    if isinstance(schema.get("items"), dict) and draw(st.booleans()):
        found["items"] = draw(_branch(schema["items"], depth + 1))
    found = _some(
        draw,
        found,
        pattern=_PATTERNS,
        maxLength=(1, 3),
        minimum=(1, 2.5),
        maximum=(5,),
        multipleOf=(2,),
        minItems=(1, 2),
        maxProperties=(1, 2),
        format=("date", "ipv4", "int32"),
        enum=(["a", 1], ["abc"], [True, None]),
    )
    if depth < 3 and draw(st.integers(0, 5)) == 0:
        key = draw(st.sampled_from(("anyOf", "oneOf", "allOf")))
        found[key] = draw(st.lists(_branch(schema, depth + 1), min_size=1, max_size=2))
    return found
