"""Go's syntax of patterns. The messages were printed by Go."""

import pytest

from crdkeeper.apiserver.golang.regexsyntax import UndecidedPattern, error


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        r"(?i)a|b|",
        r"(?P<name>a)(?<other>b)",
        r"\Qa(*\E+",
        r"[[:alpha:][:^digit:]\d-]",
        r"[]a]",
        r"[^]a]",
        "a{,2}{",
        "a{2}b{1000}",
        r"\pL\p{Lu}\P{^N}",
        r"\p{Greek}\p{greek}\p{l_U}\p{ uppercase-letter }\p{digit}",
        r"\x{10FFFF}\07\123",
        "(a{10}){100}",
        "((a{1000}){0}){2}",
        "a" + "*(?i)" * 600 + "{2}",
        "(?:" + "a" * 300 + "){1000}",
        "a" * 400 + "|b",
        r"(?:\pL[\p{Lu}_])?" * 100,
    ],
)
def test_accepted(pattern: str) -> None:
    assert error(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a+??", "invalid nested repetition operator: `+??`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(|*)", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<!a)", "invalid named capture: `(?<!a)`"),
        ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\xZZ", r"invalid escape sequence: `\xZZ`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("((a{100}){10}){2}", "invalid repeat count: `{2}`"),
        ("((a{1000}){0,}){2}", "invalid repeat count: `{2}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"\p{L", r"invalid character class range: `\p{L`"),
        (r"\p{Klingon}", r"invalid character class range: `\p{Klingon}`"),
        (r"[\p{}]", r"invalid character class range: `\p{}`"),
        (r"\p", r"invalid character class range: `\p`"),
        # Go drops the underscore before it looks the name up.
        (r"\p{Old_Italic}", r"invalid character class range: `\p{Old_Italic}`"),
        (r"a\x4", r"invalid escape sequence: `\x4`"),
    ],
)
def test_refused(pattern: str, said: str) -> None:
    assert error(pattern) == f"error parsing regexp: {said}"


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 300 + ")" * 300,
        "a" * 30_000,
        "(" + "abcdefghij" * 200 + "){1000}",
        ("(?:" + "a" * 300 + "){1000}") * 12,
        "a" + "*(?i)" * 1200,
        ("(?:" * 100 + r"[\pC\p{Lu}\p{Mn}]" + ")" * 100) * 47,
        # Alternatives that begin alike are nested.
        "a." * 600 + "b|" + "a." * 600 + "c",
    ],
)
def test_undecided(pattern: str) -> None:
    with pytest.raises(UndecidedPattern):
        error(pattern)


def test_the_deepest_pattern_that_is_read() -> None:
    assert error("(b" * 100 + "a" + "c{1}){1}" * 99 + "c{1}){2}") is None


def test_patterns_are_never_run() -> None:
    # Python's re would take longer than the age of the universe to match with this one.
    assert error(r"^(([a-z])+.)+[A-Z]([a-z])+$" * 50) is None
