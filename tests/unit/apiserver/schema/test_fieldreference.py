"""Paths into a schema, with the API server's errors for those that lead nowhere."""

import pytest

from crdkeeper.apiserver.schema.fieldreference import BadReference, ReferenceTarget, ServerFails, resolve

TEXT = {"type": "string"}
NAMELESS = {"properties": {"": TEXT}}
LONGEST = "x" * 65_535
SCHEMA = {
    "properties": {
        "a": {"properties": {"b": TEXT, "c.d": TEXT}},
        "map": {"additionalProperties": TEXT},
        "open": {"additionalProperties": True},
        "": NAMELESS,
        "it's\t\\!": TEXT,
    }
}


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (".a.b", ReferenceTarget("a", "a.b", TEXT)),
        (".a['c.d']", ReferenceTarget("a", "a.c.d", TEXT)),
        ("['a'].b", ReferenceTarget("a", "a.b", TEXT)),
        (".map.x", ReferenceTarget("map", "map[x]", TEXT)),
        (".open.x", ReferenceTarget("open", "open[x]", None)),
        ("['']", ReferenceTarget("[]", "[]", NAMELESS)),
        ("['']['']", ReferenceTarget("[]", "[][]", TEXT)),
        (".map['']", ReferenceTarget("map", "map[]", TEXT)),
        (r"['it\'s\t\\!']", ReferenceTarget("it's\t\\!", "it's\t\\!", TEXT)),
        (r".map['\a\b\f\n\r\v']", ReferenceTarget("map", "map[\a\b\f\n\r\v]", TEXT)),
        pytest.param(".map." + LONGEST, ReferenceTarget("map", f"map[{LONGEST}]", TEXT), id="longest"),
        pytest.param(
            ".a['b']x" + LONGEST, ReferenceTarget("a", "a.b", TEXT), id="ends before a longer token"
        ),
    ],
)
def test_resolved(path: str, target: ReferenceTarget) -> None:
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
        (r".a['\q']", r"invalid string literal: invalid escape char \q"),
        (".a['\\\n']", "does not refer to a valid field"),
        (".''", "does not refer to a valid field"),
        (r".a['b\\']", r"expected single quoted string but got 'b\\']"),
        pytest.param(".map.x" + LONGEST, "unexpected end of JSON path", id="too long"),
        pytest.param(".map." + "é" * 32_768, "unexpected end of JSON path", id="too many bytes"),
    ],
)
def test_leads_nowhere(path: str, said: str) -> None:
    with pytest.raises(BadReference) as raised:
        resolve(path, SCHEMA, arrays=True)
    assert str(raised.value) == said


def test_arrays_not_allowed() -> None:
    with pytest.raises(BadReference, match="array notation is not allowed"):
        resolve(".a['b']", SCHEMA, arrays=False)


def test_a_key_of_a_map_is_no_field() -> None:
    assert resolve(".metadata", {"additionalProperties": TEXT}, arrays=False).first == "[metadata]"


@pytest.mark.parametrize("path", [".open.x.y", pytest.param("x" + LONGEST, id="too long")])
def test_no_answer(path: str) -> None:
    with pytest.raises(ServerFails):
        resolve(path, SCHEMA, arrays=True)
