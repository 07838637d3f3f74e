"""Texts are parsed to cel-go's trees, or errors at the right position."""

import pytest

from crdkeeper.apiserver.cel.syntax.nodes import (
    Call,
    CelDepthError,
    CelSyntaxError,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    Macro,
    MapLiteral,
    Select,
    StructLiteral,
)
from crdkeeper.apiserver.cel.syntax.parser import parse


def shown(node: Expr) -> str:
    """A tree in one line."""
    match node:
        case Literal():
            return f"{node.value!r}u" if node.kind == "uint" else f"{node.value!r}"
        case Identifier():
            return node.name
        case Select():
            return f"({'has ' if node.test_only else ''}{shown(node.operand)}.{node.field})"
        case Call():
            target = f"{shown(node.target)} " if node.target is not None else ""
            return f"[{target}{node.function}{''.join(f' {shown(each)}' for each in node.args)}]"
        case ListLiteral():
            marks = [
                ("?" if i in node.optional else "") + shown(each) for i, each in enumerate(node.elements)
            ]
            return f"list{marks}"
        case MapLiteral():
            marks = [
                f"{'?' if each.optional else ''}{shown(each.key)}: {shown(each.value)}"
                for each in node.entries
            ]
            return f"map{marks}"
        case StructLiteral():
            return f"{node.type_name}{[each.name for each in node.fields]}"
        case Macro():
            condition = f" if {shown(node.filter)}" if node.filter is not None else ""
            call = f"{shown(node.target)} {node.name} {','.join(node.variables)}"
            return f"<{call}{condition}: {shown(node.body)}>"
        case Comprehension():
            raise AssertionError("only expansions have these")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a.b.c", "((a.b).c)"),
        ("a.b(c).d[0]", "[_[_] ([a b c].d) 0]"),
        ("a + b * c == d && e || f", "[_||_ [_&&_ [_==_ [_+_ a [_*_ b c]] d] e] f]"),
        ("a - b - c", "[_-_ [_-_ a b] c]"),
        ("a == b in c", "[@in [_==_ a b] c]"),
        ("a && b && c && d", "[_&&_ [_&&_ a b] [_&&_ c d]]"),
        ("a && b && c", "[_&&_ [_&&_ a b] c]"),
        ("a ? b : c ? d : e", "[_?_:_ a b [_?_:_ c d e]]"),
        ("!!a", "a"),
        ("!!!a", "[!_ a]"),
        ("-5", "-5"),
        ("--5", "5"),
        ("-a.b", "[-_ (a.b)]"),
        ("1 - -1", "[_-_ 1 -1]"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("0x1f", "31"),
        ("4u", "4u"),
        ("1e3", "1000.0"),
        ("[a, ?b,]", "list['a', '?b']"),
        ("[,]", "list[]"),
        ("{'k': 1, ?x: y}", "map[\"'k': 1\", '?x: y']"),
        ("a.?b[?c]", "[_[?_] [_?._ a 'b'] c]"),
        ("has(a.b)", "(has a.b)"),
        ("a.`x-y/z`", "(a.x-y/z)"),
        ("a.b.C{x: 1, ?y: 2}", "a.b.C['x', 'y']"),
        ("l.all(x, x > 0)", "<l all x: [_>_ x 0]>"),
        ("l.map(x, x > 0, x)", "<l map x if [_>_ x 0]: x>"),
        ("m.existsOne(k, v, v)", "<m exists_one k,v: v>"),
        ("l.existsOne(x, x)", "[l existsOne x x]"),
        ("o.optMap(x, x)", "<o optMap x: x>"),
        ("l.sortBy(x, x)", "<l sortBy x: x>"),
        ("all(x, y)", "[all x y]"),
        ("'\\u00e9\\x41\\101\\n'", "'éAA\\n'"),
        ("b'\\xff\\101é'", "b'\\xffA\\xc3\\xa9'"),
        ("r'\\d'", "'\\\\d'"),
        ("'''a'b'''", '"a\'b"'),
        ("a // b\n", "a"),
        (".a", ".a"),
        ("a.namespace", "(a.namespace)"),
    ],
)
def test_tree(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


def test_offsets_are_those_of_the_tokens_that_the_server_reports() -> None:
    tree = parse("'é'.b(c.d) + e[0]")
    assert isinstance(tree, Call)
    call, index = tree.args
    assert isinstance(call, Call)
    assert (tree.offset, call.offset, call.args[0].offset, index.offset) == (11, 5, 7, 14)


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("for", 0, "reserved identifier: for"),
        ("a + while(1)", 4, "reserved identifier: while"),
        ("9223372036854775808", 0, "invalid int literal"),
        ("18446744073709551616u", 0, "invalid uint literal"),
        ("1e999", 0, "invalid double literal"),
        ("'\\ud800'", 0, "invalid unicode code point"),
        ("b'\\u00e9'", 0, "unable to unescape string"),
        ("has(a)", 4, "invalid argument to has() macro"),
        ("l.all(x.y, true)", 7, "argument must be a simple name"),
        ("l.map(1, true)", 6, "argument is not an identifier"),
        ("l.all(x, x, true)", 9, "duplicate variable name: x"),
        ("l.all(__result__, true)", 6, "iteration variable overwrites accumulator variable"),
        ("o.optMap(1, 2)", 9, "optMap() variable name must be a simple identifier"),
    ],
)
def test_error_that_the_server_words_the_same(text: str, offset: int, message: str) -> None:
    with pytest.raises(CelSyntaxError) as raised:
        parse(text)
    assert raised.value.exact
    assert (raised.value.offset, raised.value.message) == (offset, message)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a +",
        "(a",
        "a)",
        "a..b",
        "a ? b",
        "a ? b ? c : d : e",
        "f(a,)",
        "[a,,b]",
        "a.in",
        "a.true",
        "1 = 1",
        "!-a",
        "'a",
        "'\\q'",
        "'\\400'",
        "a # b",
        "a.?b(c)",
        "`a`",
        "a, b",
        "0x",
        "1.",
    ],
)
def test_syntax_error(text: str) -> None:
    with pytest.raises(CelSyntaxError) as raised:
        parse(text)
    assert not raised.value.exact


def test_several_errors_are_all_kept() -> None:
    with pytest.raises(CelSyntaxError) as raised:
        parse("for + has(a) + 9223372036854775808")
    assert [each.offset for each in raised.value.problems] == [0, 10, 15]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a" * 100_001, "expression code point size exceeds limit: size: 100001, limit 100000"),
        ("a" + ".b" * 251, "max recursion depth exceeded"),
        ("1" + "+1" * 251, "max recursion depth exceeded"),
        ("a ? b : " * 250 + "c", "expression recursion limit exceeded: 250"),
    ],
)
def test_limits(text: str, message: str) -> None:
    with pytest.raises(CelSyntaxError, match=message):
        parse(text)


def test_just_within_the_limits() -> None:
    parse("a" + ".b" * 250)
    parse("1" + "+1" * 250)
    parse(" || ".join(["a"] * 5000))
    parse("!" * 5000 + "a")


@pytest.mark.parametrize("text", ["(" * 90_000, "[" * 200, "f(" * 249 + ")" * 249])
def test_deep_nesting_is_given_up(text: str) -> None:
    with pytest.raises(CelDepthError):
        parse(text)
