"""Which texts Go parses as JSONPaths, and their meaning."""

import contextlib
import time

import pytest

from crdkeeper.apiserver.jsonpath.nodes import (
    Constant,
    Descent,
    Field,
    Filter,
    Keyword,
    Node,
    PathUnion,
    PlainText,
    Slice,
    Wildcard,
)
from crdkeeper.apiserver.jsonpath.parser import PathError, UndecidedPath, parse_column, parse_template


@pytest.mark.parametrize(
    ("path", "nodes"),
    [
        (".spec.a", (Field("spec"), Field("a"))),
        ("", ()),
        (".", (Field(""),)),
        (r".a\.b", (Field("a.b"),)),
        (".*", (Wildcard(),)),
        (r".\*", (Field("*"),)),
        ("['a.b']", (Field("a"), Field("b"))),
        (r"['a\.b']", (Field("a.b"),)),
        ("[*]", (Slice(),)),
        ("[]", (Slice(None, 1, single=True),)),
        ("[-1]", (Slice(-1, 0, single=True),)),
        ("[1:]", (Slice(1),)),
        ("[:2:3]", (Slice(None, 2, 3),)),
        ("..a", (Descent(), Field("a"))),
        ("..5", (Descent(), Field("5"))),
        (".. 5", (Descent(), Constant(5))),
        (".a true x", (Field("a"), Constant(True), Keyword("x"))),
        (r"'a\u00e9\x41\101'", (PlainText("aéAA"),)),
        ("[0,'a']", (PathUnion(((Slice(0, 1, single=True),), (Field("a"),))),)),
        ("[?(@.a)]", (Filter((Field("a"),), "exists", ()),)),
        ('[?(@.a=="b)")]', (Filter((Field("a"),), "==", (PlainText("b)"),)),)),
        ("[?(@.a => +1.5)]", (Filter((Field("a"),), "=>", (Constant(1.5),)),)),
    ],
)
def test_parses(path: str, nodes: tuple[Node, ...]) -> None:
    assert parse_column(path) == (nodes,)


@pytest.mark.parametrize(
    "path",
    [
        "[",
        '["a"]',
        "[x]",
        "[-]",
        "[0::-]",
        "[99999999999999999999]",
        "....",
        "'a",
        r"'\q'",
        r"'\ud800'",
        "?",
        "a\nb",
        "[?(@.a]",
        "[?(@.a) ]",
        "[?(@.a=='b'')]",
        "1.2.3",
        "-",
        "1" * 400,
        "\u0661",
        "}{[",
    ],
)
def test_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        parse_column(path)


@pytest.mark.parametrize("path", [".a \u0378", "..\u0378", "[?(\u0378)]", ".a \u2ffc"])
def test_a_letter_that_only_some_versions_of_unicode_have(path: str) -> None:
    with pytest.raises(UndecidedPath):
        parse_column(path)


def test_a_template_has_texts_between_its_blocks() -> None:
    assert parse_template("a{.b}c") == (PlainText("a"), (Field("b"),), PlainText("c"))


@pytest.mark.parametrize("part", [".a", "['a']", "[0,1]", "[?(@.a==1)]", "..a", "}{", "'x'", "1 ", "!<>="])
def test_the_time_is_bounded(part: str) -> None:
    start = time.process_time()
    with contextlib.suppress(PathError):
        parse_column(part * (200_000 // len(part)))
    assert time.process_time() - start < 5


def test_the_time_of_a_long_number_is_bounded() -> None:
    start = time.process_time()
    with pytest.raises(PathError):
        parse_column("1" * 200_000 + "..")
    assert time.process_time() - start < 5
