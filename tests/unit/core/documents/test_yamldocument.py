"""YAML as kubectl reads it, with positions, within bounds."""

from typing import Any

import pytest

from crdkeeper.core.documents.plainscalars import plain_scalar
from crdkeeper.core.documents.yamldocument import MAX_DEPTH, Position, Unreadable, documents


def only(text: str) -> Any:
    (document,) = documents(text)
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("yes", True),
        ("Off", False),
        ("12", 12),
        ("-0x1F", -31),
        ("0b11", 3),
        ("010", 8),
        ("1_000", 1000),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1.2.3", "1.2.3"),
        ("2026-01-01", "2026-01-01"),
        ("-", "-"),
        (".", "."),
        ("09", 9.0),
        ("1" * 5000, "1" * 5000),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", -(2.0**63)),
        ("9223372036854775808", 2**63),
        ("+9223372036854775808", 2.0**63),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("1" + "0" * 308, 1e308),
        ("1" + "0" * 309, "1" + "0" * 309),
        ("-" + "9" * 399, "-" + "9" * 399),
        ("0xffff_ffff_ffff_ffff", 2**64 - 1),
        ("0x10000000000000000", "0x10000000000000000"),
        ("-0x8000000000000000", -(2**63)),
        ("-0x8000000000000001", "-0x8000000000000001"),
        ("0b1" + "0" * 64, "0b1" + "0" * 64),
        ("0o2" + "0" * 21, "0o2" + "0" * 21),
        # What is too long as an octal number is read as a decimal one.
        ("02" + "0" * 21, 2e21),
    ],
)
def test_plain_scalars(text: str, value: Any) -> None:
    found = plain_scalar(text)
    assert (type(found), found) == (type(value), value)


def test_quotes_and_tags() -> None:
    assert only("a: '1'\nb: !!str 1\nc: \"true\"\nd: |\n  1\n") == {
        "a": "1",
        "b": "1",
        "c": "true",
        "d": "1\n",
    }


def test_keys_become_strings() -> None:
    assert only("1: a\ny: b\n") == {"1": "a", "true": "b"}


def test_positions() -> None:
    (document,) = documents("a:\n  b:\n  - x\n  - c: 1\n")
    assert document.find(("a", "b", 1, "c")) == Position(4, 5)
    assert document.find(("a", "b", 0)) == Position(3, 5)
    # A missing field is reported at its parent.
    assert document.find(("a", "nope", "x")) == Position(1, 1)
    assert document.find(("a", "b", 7)) == Position(2, 3)


def test_many_documents() -> None:
    found = list(documents("---\na: 1\n---\n# nothing\n---\nb: 2\n"))
    assert [(each.value, each.find(tuple(each.value)).line) for each in found] == [
        ({"a": 1}, 2),
        ({"b": 2}, 6),
    ]


def test_json() -> None:
    (document,) = documents('{\n\t"a": {\n\t\t"b": "\\ud83d\\ude00"\n\t}\n}\n')
    assert document.value == {"a": {"b": "\U0001f600"}}
    (document,) = documents('{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n')
    assert document.find(("a", "b")).line == 3


def test_aliases_and_merges() -> None:
    (document,) = documents("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\ne: *x\n")
    assert document.value == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}, "e": {"b": 1, "c": 2}}
    assert document.find(("d", "b")) == Position(1, 8)


def test_duplicate_keys() -> None:
    (document,) = documents("a: 1\nb: 2\na: 3\n")
    assert document.value == {"a": 3, "b": 2}
    assert document.duplicates == [("a", Position(3, 1))]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", "not YAML"),
        ("a: {b: c}}", "not YAML"),
        ("\ta: 1", "not YAML"),
        ("a: &x [*x]", "the alias *x is inside its own anchor"),
        ("a: *x", "the alias *x has no anchor"),
        (bomb(20), "more than 300,000 values, aliases expanded"),
        ("x" * 10_000_000 + ": [", "not YAML"),
        ("[" + "a," * 310_000 + "]", "more than 300,000 values, aliases expanded"),
        ("[" * 1_000_000, f"nested deeper than {MAX_DEPTH} levels"),
        ("".join(f"{' ' * i}a:\n" for i in range(1000)), f"nested deeper than {MAX_DEPTH} levels"),
        ("? [a]\n: b", "a key must be a string"),
        ('{"a":' * 1000 + '"\\ud83d\\ude00"' + "}" * 1000, f"nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_unreadable(text: str, said: str) -> None:
    with pytest.raises(Unreadable) as raised:
        list(documents(text))
    assert said in str(raised.value)
