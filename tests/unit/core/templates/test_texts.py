"""`${…}` in texts: where expressions begin and end."""

import time
from contextlib import suppress

import pytest

from crdkeeper.core.templates.texts import LONGEST_EXPRESSION, BadText, Embedded, parts_of


def shown(text: str) -> list[str]:
    """The parts; expressions in angle brackets."""
    return [f"<{each.text}>" if isinstance(each, Embedded) else each for each in parts_of(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain } text {", ["plain } text {"]),
        ("${a}", ["<a>"]),
        ("a-${b}-${c}.d", ["a-", "<b>", "-", "<c>", ".d"]),
        ("${a}${b}", ["<a>", "<b>"]),
        ("$${a}", ["${a}"]),
        ("$${a}${b}", ["${a}", "<b>"]),
        ("$$${a}", ["$${a}"]),
        ("$a $ {b} $", ["$a $ {b} $"]),
        ("${{'a': {'b': 1}}}", ["<{'a': {'b': 1}}>"]),
        ("${'}'}!", ["<'}'>", "!"]),
        ('${"a}\\"}"}!', ['<"a}\\"}">', "!"]),
        ("${r'\\}'}!", ["<r'\\}'>", "!"]),
        ("${'''}'''}!", ["<'''}'''>", "!"]),
        ("${a // }\n}!", ["<a // }\n>", "!"]),
        ("it's ${a}, isn't it", ["it's ", "<a>", ", isn't it"]),
        ("${a['${b}']}", ["<a['${b}']>"]),
        ("é${a}", ["é", "<a>"]),
    ],
)
def test_parts(text: str, parts: list[str]) -> None:
    assert shown(text) == parts


def test_an_expression_knows_where_it_is() -> None:
    text = "é-${ a }-${b}"
    starts = [each.start for each in parts_of(text) if isinstance(each, Embedded)]
    assert starts == [text.index(" a"), text.index("b")]


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("a ${b", 2, "the expression has no end"),
        ("${a${b}", 0, "the expression has no end"),
        ("${'}", 0, "the expression has no end"),
        ("${{'a': 1}", 0, "the expression has no end"),
        ("x${}", 3, "the expression is empty"),
        ("${ }", 2, "the expression is empty"),
        (f"${{{'a' * (LONGEST_EXPRESSION + 1)}}}", 2, "the expression has more than 8,192 characters"),
        (f"${{{'a' * (LONGEST_EXPRESSION + 2)}}}", 0, "the expression has no end within 8,192 characters"),
    ],
)
def test_what_is_no_expression(text: str, offset: int, message: str) -> None:
    with pytest.raises(BadText, match=message) as caught:
        parts_of(text)
    assert caught.value.offset == offset
    assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["${" * 500_000, "${'''" + "''' " * 400_000, "$${" * 500_000, "${'a" * 400_000]
)
def test_huge_texts_take_no_time(text: str) -> None:
    start = time.process_time()
    with suppress(BadText):
        parts_of(text)
    assert time.process_time() - start < 5
