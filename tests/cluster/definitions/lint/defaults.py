"""Schemas with nearly valid defaults: the API server's messages come from three libraries."""

from typing import Any

from hypothesis import strategies as st

from tests.cluster.definitions.lint.keywords import FORMATS, PATTERNS, SCALARS, SMALL, VALUES

Json = Any
_EMBEDDED, _PRESERVE = "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_TEXTS = st.sampled_from(
    ("", "a", "ab1", "2026-01-02", "2026-01-02T03:04:05Z", "10.0.0.1", "::1", "https://a.b/c", "1h", "YQ==",
     "x@y.z", "6f1c0c5e-8f2b-4a57-9c11-6a0d8f5b7e10", "é" * 5, "a.b-c", "127.0.0.0/8", "00:11:22:33:44:55")
)  # fmt: skip
_NUMBERS = st.sampled_from((0, 1, 2, 3, -1, 1.0, 1.5, 2**31, 2**40, 1e300, 2**70))
_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "maximum": st.sampled_from((0, 1.5, 2)),
        "minimum": st.sampled_from((1, 2, -3)),
        "exclusiveMaximum": st.booleans(),
        "exclusiveMinimum": st.booleans(),
        "multipleOf": st.sampled_from((2, 0.5, 3)),
        "format": st.sampled_from(("int32", "int64", "float", "double", "date")),
        "enum": st.lists(_NUMBERS, max_size=3),
    },
)
_TEXT_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "format": st.sampled_from(FORMATS),
        "pattern": st.sampled_from((*PATTERNS[:3], "^a", r"\.", "b$", "^[^a]*$", r"\bx")),
        "minLength": st.sampled_from((0, 2, 3)),
        "maxLength": st.sampled_from((0, 1, 4)),
        "enum": st.lists(st.sampled_from(("a", "b", 1, None)), max_size=3),
    },
)
_SHAPE = {
    "type": "object",
    "required": ["a"],
    "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "array", "items": {"type": "integer", "maximum": 1}, "maxItems": 2},
        "c": {"type": "object", "additionalProperties": {"type": "string", "minLength": 2}},
        "e": {"type": "object", "properties": {"f": {"type": "boolean"}}, "required": ["f"]},
    },
}
_PART = st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=3), st.dictionaries(st.just("f"), SCALARS))
_OBJECTS = st.dictionaries(st.sampled_from(("a", "b", "c", "e", "z")), _PART, max_size=4)
_JUNCTORS: tuple[Json, ...] = (
    {"allOf": [{"required": ["b"]}, {"properties": {"a": {"minLength": 1}}}]},
    {"anyOf": [{"required": ["b"]}, {"required": ["c"]}]},
    {"oneOf": [{"required": ["a"]}, {"required": ["c"]}]},
    {"not": {"required": ["e"]}},
    {"anyOf": [{"properties": {"a": {"pattern": "^x"}}}, {"properties": {"b": {"minItems": 1}}}]},
    {"minProperties": 2},
    {"maxProperties": 1},
    {},
)
_METADATA: tuple[Json, ...] = (
    {}, None, "x", [], {"name": "a/b"}, {"labels": {"a b": "c"}}, {"labels": []}, {"name": 1}, {"foo": 1},
    {"creationTimestamp": None}, {"creationTimestamp": "x"}, {"namespace": "A"}, {"finalizers": ["a b"]},
    {"annotations": {"a": "b"}, "generation": -1}, {"ownerReferences": [{}]}, {"labels": {"a": "!"}},
)  # fmt: skip
_RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(("v1", "a/v1", "a/b/c", "", 1)),
        "kind": st.sampled_from(("Pod", "", "a b", 2)),
        "metadata": st.sampled_from(_METADATA),
        "spec": VALUES,
    },
)
_FIELDS_OF_METADATA: dict[str, Json] = {
    "name": {"type": "string"},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "foo": {"type": "object", _PRESERVE: True},
}


def _with(default: st.SearchStrategy[Json], **schema: Any) -> st.SearchStrategy[Json]:
    return default.map(lambda value: {**schema, "default": value})


@st.composite
def _limited(draw: st.DrawFn, types: tuple[str, ...], limits: Any, values: Any) -> Json:
    schema = {"type": draw(st.sampled_from(types)), **draw(limits)}
    return {**schema, "default": draw(st.one_of(values, values, values, SCALARS))}


@st.composite
def _object(draw: st.DrawFn) -> Json:
    schema = {**_SHAPE, **draw(st.sampled_from(_JUNCTORS)), **draw(st.sampled_from(_JUNCTORS))}
    default = draw(_OBJECTS)
    if draw(st.booleans()):
        default = {"a": "x", **default}
    if draw(st.integers(0, 3)):
        return {**schema, "default": default}
    # The same at a deeper level in a list.
    return {"type": "array", "items": schema, "default": [default, draw(_OBJECTS)]}


@st.composite
def _metadata(draw: st.DrawFn) -> Json:
    """An embedded resource with a default inside its metadata."""
    name = draw(st.sampled_from(sorted(_FIELDS_OF_METADATA)))
    value = draw(st.sampled_from(("a", "a/b", 1, {"a": "b"}, {"a b": "!"}, {"x": 1}, [])))
    fields = {**_FIELDS_OF_METADATA, name: {**_FIELDS_OF_METADATA[name], "default": value}}
    metadata: Json = {"type": "object", "properties": fields}
    if draw(st.integers(0, 3)) == 0:
        metadata["default"] = draw(st.sampled_from(_METADATA))
    properties = {
        "metadata": metadata,
        "kind": {"type": "string", "default": draw(st.sampled_from(("Pod", "a b")))},
    }
    return {"type": "object", _EMBEDDED: True, "properties": properties}


DEFAULTED: st.SearchStrategy[Json] = st.one_of(
    _limited(("integer", "number"), _LIMITS, _NUMBERS),
    _limited(("string",), _TEXT_LIMITS, _TEXTS),
    _object(),
    _object(),
    _with(_RESOURCES, type="object", **{_EMBEDDED: True, _PRESERVE: True}),
    _metadata(),
    _with(VALUES, **{_INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
    _with(VALUES, type="object", additionalProperties={"type": "object", "nullable": True}),
    st.tuples(SMALL, VALUES).map(lambda pair: {**pair[0], "default": pair[1]}),
)
"""A schema for a property."""
