"""Paths into a schema, with the API server's words for those that lead nowhere."""

import pytest

from crdkeeper.apiserver.schema.fieldreference import BadReference, ServerFails, Target, resolve

TEXT = {"type": "string"}
SCHEMA = {
    "properties": {
        "a": {"properties": {"b": TEXT, "c.d": TEXT}},
        "map": {"additionalProperties": TEXT},
        "open": {"additionalProperties": True},
    }
}


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (".a.b", Target("a", "a.b", TEXT)),
        (".a['c.d']", Target("a", "a.c.d", TEXT)),
        ("['a'].b", Target("a", "a.b", TEXT)),
        (".map.x", Target("map", "map[x]", TEXT)),
        (".open.x", Target("open", "open[x]", None)),
    ],
)
def test_resolved(path: str, target: Target) -> None:
    assert resolve(path, SCHEMA, arrays=True) == target


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        (".x", "does not refer to a valid field"),
        (".a.b.c", "does not refer to a valid field"),
        ("..a", "does not refer to a valid field"),
        (".a[b]", "expected single quoted string but got b"),
        (".a['b", "expected single quoted string but got 'b"),
        (".a['b'", "unexpected end of JSON path"),
        (".a['b'.", "expected ] but got ."),
    ],
)
def test_leads_nowhere(path: str, said: str) -> None:
    with pytest.raises(BadReference) as raised:
        resolve(path, SCHEMA, arrays=True)
    assert str(raised.value) == said


def test_arrays_not_allowed() -> None:
    with pytest.raises(BadReference, match="array notation is not allowed"):
        resolve(".a['b']", SCHEMA, arrays=False)


@pytest.mark.parametrize("path", [".open.x.y", r"['a\'b']"])
def test_no_answer(path: str) -> None:
    with pytest.raises(ServerFails):
        resolve(path, SCHEMA, arrays=True)
