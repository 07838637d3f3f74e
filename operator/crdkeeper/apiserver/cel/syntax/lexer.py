"""The tokens of CEL.

Separate from the grammar because the limit on the size of a rule and the escapes of strings are implemented
here. Follows cel-go's grammar (CEL.g4) and parser/unescape.go.
"""

import re
from typing import NamedTuple

MAX_CODE_POINTS = 100_000

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TEXT = "|".join(
    (
        r'[rR]"""(?s:.)*?"""',
        r"[rR]'''(?s:.)*?'''",
        r'[rR]"[^"\n\r]*+"',
        r"[rR]'[^'\n\r]*+'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*+"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*+'",
    )
)
_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<skip>[\t \r\n\f]++|//[^\n]*+)",
            rf"(?P<bytes>[bB](?:{_TEXT}))",
            rf"(?P<string>{_TEXT})",
            r"(?P<id>[A-Za-z_][A-Za-z0-9_]*+)",
            r"(?P<float>[0-9]++\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++|\.[0-9]++(?:[eE][+-]?[0-9]++)?)",
            r"(?P<uint>0x[0-9a-fA-F]++[uU]|[0-9]++[uU])",
            r"(?P<int>0x[0-9a-fA-F]++|[0-9]++)",
            r"(?P<op>==|!=|<=|>=|&&|\|\||[-\[\]{}().,!?:+*/%<>])",
            r"(?P<escaped>`[A-Za-z0-9_./ -]++`)",
            r"(?P<bad>(?s:.))",
        )
    )
)
_KEYWORDS = frozenset(("true", "false", "null", "in"))


class Tokens(NamedTuple):
    """The tokens of a source, as one list for each property. The last one is of kind `end`.

    The kind of an operator or keyword is its text; the others are id, escaped, int, uint, float, string,
    bytes, and bad for a character that starts no token.
    """

    kinds: list[str]
    texts: list[str]
    offsets: list[int]


def closing_brace(source: str, start: int, most: int) -> int | None:
    """Where the brace that an expression from `start` leaves open is closed; None if it is not.

    Reads little further than that or than `most`, and stops at what starts no token of CEL.
    """
    depth = 0
    for match in _TOKEN.finditer(source, start):
        text = match.group()
        if match.lastgroup == "bad" or match.start() > most + 1:
            return None
        if text == "{" and match.lastgroup == "op":
            depth += 1
        elif text == "}" and match.lastgroup == "op":
            if depth == 0:
                return match.start()
            depth -= 1
    return None


def tokenize(source: str) -> Tokens:
    """Split an expression into tokens; never fails."""
    kinds: list[str] = []
    texts: list[str] = []
    offsets: list[int] = []
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup
        if kind == "skip" or kind is None:
            continue
        text = match.group()
        if kind == "op" or (kind == "id" and text in _KEYWORDS):
            kind = text
        kinds.append(kind)
        texts.append(text)
        offsets.append(match.start())
    kinds.append("end")
    texts.append("<EOF>")
    offsets.append(len(source))
    return Tokens(kinds, texts, offsets)
