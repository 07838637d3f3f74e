"""Values for a schema: most of them valid or nearly so, some of a completely different type."""

import copy
from typing import Any

from hypothesis import strategies as st

from tests.cluster.objects.samples import FORMATTED, ODD, TEXTS, TIMES

Json = Any

_NUMBERS = (
    0,
    1,
    2,
    3,
    5,
    7,
    10,
    -1,
    -3,
    100,
    2**31,
    2**40,
    1.0,
    1.5,
    2.0,
    2.5,
    0.1,
    0.3,
    1e-7,
    1.0000000001,
    65,
)
_KEYS = ("a", "b", "c", "name", "x/y", "k.v", "A", "kind")
_DEEP = 6


@st.composite
def values(draw: st.DrawFn, schema: Json, depth: int = 0) -> Json:
    """A value that may match the schema."""
    if depth > _DEEP or draw(st.integers(0, 24)) == 0:
        return copy.deepcopy(draw(st.sampled_from(ODD)))
    if schema.get("enum") and draw(st.integers(0, 3)):
        return copy.deepcopy(draw(st.sampled_from(schema["enum"])))
    if schema.get("nullable") and draw(st.integers(0, 4)) == 0:
        return None
    if schema.get("x-kubernetes-int-or-string"):
        return draw(st.sampled_from((0, 1, 80, -1, "http", "50%", "", 1.0, 1.5, 2**33)))
    type_ = schema.get("type")
    if type_ == "string":
        return draw(_texts(schema))
    if type_ in ("integer", "number"):
        return draw(_numbers(schema))
    if type_ == "boolean":
        return draw(st.booleans())
    if type_ == "array":
        return draw(_arrays(schema, depth))
    if type_ == "object":
        return draw(_objects(schema, depth))
    return copy.deepcopy(draw(st.sampled_from(ODD)))


@st.composite
def _texts(draw: st.DrawFn, schema: Json) -> str:
    format = schema.get("format", "").replace("-", "")
    if format in FORMATTED and draw(st.integers(0, 4)):
        return draw(st.sampled_from(FORMATTED[format]))
    text: str = draw(st.sampled_from(TEXTS))
    limit = schema.get("maxLength")
    if isinstance(limit, int) and 0 <= limit <= 300 and draw(st.integers(0, 5)) == 0:
        return "aé" * (limit // 2) + "x" * (limit % 2 + draw(st.integers(0, 1)))
    return text


@st.composite
def _numbers(draw: st.DrawFn, schema: Json) -> int | float:
    bounds = [schema[key] for key in ("minimum", "maximum", "multipleOf") if key in schema]
    if draw(st.booleans()) and bounds:
        bound = draw(st.sampled_from(bounds))
        number = bound + draw(st.sampled_from((0, 0, 1, -1, 0.5)))
        return int(number) if float(number).is_integer() and draw(st.integers(0, 3)) else number
    if schema.get("type") == "integer" and draw(st.integers(0, 3)):
        return draw(st.sampled_from(tuple(each for each in _NUMBERS if isinstance(each, int))))
    return draw(st.sampled_from(_NUMBERS))


@st.composite
def _arrays(draw: st.DrawFn, schema: Json, depth: int) -> list[Json]:
    items = schema.get("items") or {}
    found = [draw(values(items, depth + 1)) for _ in range(draw(st.sampled_from((0, 1, 1, 2, 2, 3))))]
    if found and draw(st.integers(0, 3)) == 0:
        found.append(copy.deepcopy(draw(st.sampled_from(found))))
    if draw(st.integers(0, 30)) == 0:
        found.append(None)
    return found


@st.composite
def _objects(draw: st.DrawFn, schema: Json, depth: int) -> dict[str, Json]:
    found: dict[str, Json] = {}
    required = set(schema.get("required") or ())
    properties = schema.get("properties") or {}
    for name, each in properties.items():
        if draw(st.integers(0, 9)) < (9 if name in required else 5 if len(properties) < 12 else 1):
            found[name] = draw(values(each, depth + 1))
    additional = schema.get("additionalProperties")
    if additional:
        each = additional if isinstance(additional, dict) else {}
        for key in draw(st.lists(st.sampled_from(_KEYS), max_size=3, unique=True)):
            found.setdefault(key, draw(values(each, depth + 1)))
    if schema.get("x-kubernetes-embedded-resource"):
        found |= draw(_resources())
    if draw(st.integers(0, 12)) == 0:
        found[draw(st.sampled_from(_KEYS))] = copy.deepcopy(draw(st.sampled_from(ODD)))
    if found and draw(st.integers(0, 12)) == 0:
        found[draw(st.sampled_from(sorted(found)))] = None
    return found


_METADATA: dict[str, tuple[Json, ...]] = {
    "name": ("x", "", "a/b", "..", "Up_per", "a%b", 5),
    "generateName": ("x-", "a/b"),
    "namespace": ("default", "", "Bad", "a.b", "x" * 64),
    "labels": ({}, {"a": "b"}, {"a b": "c"}, {"a": "-"}, {"example.com/a": "x" * 64}, {"a": 1}, None, []),
    "annotations": ({}, {"a": "b"}, {"A B": ""}, {"example.com/A": "any thing"}, {"a": None}),
    "finalizers": ([], ["a.b/c"], ["a b"], ["orphan", "foregroundDeletion"], "a"),
    "ownerReferences": (
        [],
        [{}],
        [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
        [{"apiVersion": "a/b/c", "kind": "Event", "name": "p", "uid": "u", "extra": 1}],
        [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}],
    ),
    "creationTimestamp": TIMES,
    "deletionTimestamp": TIMES,
    "deletionGracePeriodSeconds": (0, 30, "30", 1.5),
    "generation": (0, 3, -1, 1.0),
    "resourceVersion": ("5", "", 5),
    "uid": ("u", ""),
    "selfLink": ("/x", ""),
    "managedFields": (
        [],
        [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}],
        [{"operation": "Other"}, {"manager": "x" * 200, "operation": "Apply", "fieldsType": "V2"}],
        [{"manager": "a\u0007b", "operation": "Apply", "time": "2026-01-02T03:04:05+02:00"}],
    ),
    "clusterName": ("old",),
    "nonsense": (1, {"a": 1}),
}


@st.composite
def _resources(draw: st.DrawFn) -> dict[str, Json]:
    """apiVersion, kind and metadata of an embedded resource."""
    found: dict[str, Json] = {}
    if draw(st.integers(0, 9)):
        found["apiVersion"] = draw(st.sampled_from(("v1", "v1", "apps/v1", "a/b/c", "", "/")))
    if draw(st.integers(0, 9)):
        found["kind"] = draw(st.sampled_from(("Pod", "Pod", "pod", "", "Bad Kind", "x" * 64)))
    if draw(st.integers(0, 40)) == 0:
        found[draw(st.sampled_from(("apiVersion", "kind", "metadata")))] = draw(
            st.sampled_from((1, None, [], "x"))
        )
        return found
    if draw(st.booleans()):
        metadata = {}
        for key in draw(st.lists(st.sampled_from(sorted(_METADATA)), max_size=3, unique=True)):
            metadata[key] = copy.deepcopy(draw(st.sampled_from(_METADATA[key])))
        found["metadata"] = metadata
    return found


@st.composite
def root_metadata(draw: st.DrawFn) -> dict[str, Json]:
    """Further metadata of our objects; nothing that changes the request."""
    found: dict[str, Json] = {}
    for key in draw(
        st.lists(st.sampled_from(("labels", "annotations", "finalizers", "nonsense")), max_size=2)
    ):
        found[key] = copy.deepcopy(draw(st.sampled_from(_METADATA[key])))
    return found


@st.composite
def changed(draw: st.DrawFn, value: Json, schema: Json, depth: int = 0) -> Json:
    """The value as an update may leave it: the same, or with a few parts drawn again."""
    if depth > _DEEP or draw(st.integers(0, 7)) == 0:
        return draw(values(schema, depth))
    if isinstance(value, dict) and value:
        found = copy.deepcopy(value)
        key = draw(st.sampled_from(sorted(found)))
        below = (schema.get("properties") or {}).get(key) or schema.get("additionalProperties")
        found[key] = draw(changed(found[key], below if isinstance(below, dict) else {}, depth + 1))
        if draw(st.integers(0, 9)) == 0:
            del found[draw(st.sampled_from(sorted(found)))]
        return found
    if isinstance(value, list) and value:
        found_items = copy.deepcopy(value)
        index = draw(st.integers(0, len(found_items) - 1))
        items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
        found_items[index] = draw(changed(found_items[index], items, depth + 1))
        if draw(st.integers(0, 3)) == 0:
            found_items.reverse()
        return found_items
    return copy.deepcopy(value) if draw(st.booleans()) else draw(values(schema, depth))
