"""Parses a JSONPath template like client-go (util/jsonpath/parser.go), in time linear in its length.

Go's dialect differs from others: a quoted key in brackets is split at its dots, double quotes do not make a
key, and an unknown word is an error only when the path is evaluated. A path that this module rejects makes
the API server drop its column and all columns after it.
"""

import re
from typing import Final

from crdkeeper.apiserver.golang.numbers import MAX_INT, MIN_INT
from crdkeeper.apiserver.golang.strings import category
from crdkeeper.apiserver.jsonpath.nodes import (
    Block,
    Constant,
    Descent,
    Field,
    Filter,
    Keyword,
    Node,
    PathUnion,
    PlainText,
    Slice,
    Template,
    Wildcard,
)

_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)")
_ENDS: Final = frozenset(" \t\r\n.,[]$@{}")
_INT: Final = re.compile(r"[+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)")
_SIMPLE_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
}  # fmt: skip
_HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}


class PathError(ValueError):
    """The text is not a JSONPath; the message is for people, and differs from Go's."""


class UndecidedPath(PathError):
    """The text is a JSONPath only if the API server's version of Unicode has a letter or digit in it."""


def parse_column(path: str) -> Template:
    """Parse the path of a printer column, which gets its own braces. Raises PathError."""
    return parse_template(f"{{{path}}}")


def parse_template(text: str) -> Template:
    """Parse a whole template: texts and blocks in braces. Raises PathError."""
    found: list[Block | PlainText] = []
    at = 0
    while at < len(text):
        opening = text.find("{", at)
        if opening < 0:
            found.append(PlainText(text[at:]))
            break
        if opening > at:
            found.append(PlainText(text[at:opening]))
        block = _BlockParser(text, opening + 1)
        found.append(block.parse())
        at = block.at
    return tuple(found)


def _parse_block(text: str) -> Block:
    """The first block of a text put in braces; what follows a closing brace inside must parse, too."""
    first = parse_template(f"{{{text}}}")[0]
    assert isinstance(first, tuple)
    return first


class _BlockParser:
    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self._nodes: list[Node] = []

    def parse(self) -> Block:
        """The nodes up to the closing brace, which is consumed. Raises PathError."""
        while True:
            char = self.text[self.at : self.at + 1]
            if char == "}":
                self.at += 1
                return tuple(self._nodes)
            if self.text.startswith("[?(", self.at):
                self._filter()
            elif self.text.startswith("..", self.at):
                self._descent()
            elif char in ("", "\r", "\n"):
                raise PathError("a brace is not closed")
            elif char in " @$":
                self.at += 1
            elif char == "[":
                self._brackets()
            elif char in "\"'":
                self._quoted(char)
            elif char == ".":
                self.at += 1
                self._field()
            elif char in "+-" or _is_digit(char):
                self._number()
            elif char == "_" or _is_letter(char):
                self._word()
            else:
                error = UndecidedPath if category(char) is None else PathError
                raise error(f"unexpected character {char!r}")

    def _descent(self) -> None:
        if self._nodes and isinstance(self._nodes[-1], Descent):
            raise PathError("two recursive descents in a row")
        self.at += 2
        self._nodes.append(Descent())
        following = self.text[self.at : self.at + 1]
        if following == "_" or (following and (_is_letter(following) or _is_digit(following))):
            self._field()

    def _field(self) -> None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _ENDS:
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.at = min(self.at, len(self.text))
        name = self.text[start : self.at]
        self._nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def _word(self) -> None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _ENDS:
            self.at += 1
        word = self.text[start : self.at]
        self._nodes.append(Constant(word == "true") if word in ("true", "false") else Keyword(word))

    def _number(self) -> None:
        start = self.at
        if self.text[self.at] in "+-":
            self.at += 1
        while self.at < len(self.text) and (self.text[self.at] == "." or _is_digit(self.text[self.at])):
            self.at += 1
        self._nodes.append(Constant(_number(self.text[start : self.at])))

    def _quoted(self, quote: str) -> None:
        start = self.at
        self.at += 1
        while True:
            char = self.text[self.at : self.at + 1]
            if char in ("", "\n"):
                raise PathError("a quote is not closed")
            self.at += 1
            if char == quote and self.text[self.at - 2] != "\\":
                break
        self._nodes.append(PlainText(_unquoted(self.text[start : self.at])))

    def _brackets(self) -> None:
        end = self.text.find("]", self.at)
        inside = self.text[self.at + 1 : end]
        if end < 0 or "\n" in inside:
            raise PathError("a bracket is not closed")
        self.at = end + 1
        if inside == "*":
            inside = ":"
        parts = inside.split(",")
        if len(parts) > 1:
            self._nodes.append(PathUnion(tuple(_parse_block(f"[{each.strip(' ')}]") for each in parts)))
        elif key := _KEY.fullmatch(inside):
            self._nodes += _parse_block(f".{key[1]}")
        else:
            self._nodes.append(_slice(inside))

    def _filter(self) -> None:
        self.at += 3
        start, pair, closed = self.at, "", False
        while True:
            char = self.text[self.at : self.at + 1]
            if char in ("", "\n"):
                raise PathError("a filter is not closed")
            self.at += 1
            if char in "\"'":
                if not pair:
                    pair = char
                elif char == pair and self.text[self.at - 2] != "\\":
                    closed = True
            elif char == ")" and bool(pair) == closed:
                break
        if self.text[self.at : self.at + 1] != "]":
            raise PathError("a filter does not end in )]")
        inside = self.text[start : self.at - 1]
        self.at += 1
        sides = _COMPARISON.fullmatch(inside)
        if sides is None:
            self._nodes.append(Filter(_parse_block(inside), "exists", ()))
        else:
            self._nodes.append(Filter(_parse_block(sides[1]), sides[2], _parse_block(sides[3])))


def _slice(inside: str) -> Slice:
    parts = _SLICE.fullmatch(inside)
    if parts is None:
        raise PathError(f"[{inside}] is no index")
    start = _index(parts[1])
    end = None if parts[2] is None else _index(parts[2][1:])
    step = None if parts[3] is None else _index(parts[3][1:])
    if parts[2] is None:
        return Slice(start, (start or 0) + 1, step, single=True)
    return Slice(start, end, step)


def _index(text: str) -> int | None:
    if not text:
        return None
    value = _int(text)
    if value is None:
        raise PathError(f"{text[:40]} is no index")
    return value


def _int(text: str) -> int | None:
    """strconv.Atoi."""
    digits = text.lstrip("+-").lstrip("0") or "0"
    if not _INT.fullmatch(text) or len(digits) > 19:
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if MIN_INT <= value <= MAX_INT else None


def _number(text: str) -> int | float:
    """strconv.Atoi, then ParseFloat."""
    whole = _int(text)
    if whole is not None:
        return whole
    value = float(text) if _FLOAT.fullmatch(text) else float("inf")
    if value in (float("inf"), float("-inf")):
        raise PathError(f"{text[:40]} is no number")
    return value


def _unquoted(quoted: str) -> str:
    """Escapes as in Go's strings, but not of the other quote (UnquoteExtend). Raises PathError."""
    quote, inside = quoted[0], quoted[1:-1]
    if len(quoted) < 2 or quoted[-1] != quote:
        raise PathError("a quote is not closed")
    if "\\" not in inside and quote not in inside:
        return inside
    data = bytearray()
    at = 0
    while at < len(inside):
        char = inside[at]
        at += 1
        if char == quote:
            raise PathError("a quote inside of quotes")
        if char != "\\":
            data += char.encode(errors="surrogatepass")
            continue
        escape = inside[at : at + 1]
        at += 1
        if escape in _HEX_ESCAPES:
            digits = inside[at : at + _HEX_ESCAPES[escape]]
            at += _HEX_ESCAPES[escape]
            data += _escaped(escape, digits)
        elif escape and escape in "01234567":
            digits = inside[at - 1 : at + 2]
            at += 2
            if not re.fullmatch("[0-7]{3}", digits) or int(digits, 8) > 255:
                raise PathError("an escape that Go does not know")
            data.append(int(digits, 8))
        elif escape == quote:
            data += quote.encode()
        elif escape in _SIMPLE_ESCAPES:
            data += _SIMPLE_ESCAPES[escape].encode()
        else:
            raise PathError("an escape that Go does not know")
    return data.decode(errors="replace")


def _escaped(escape: str, digits: str) -> bytes:
    if len(digits) < _HEX_ESCAPES[escape] or not re.fullmatch("[0-9a-fA-F]+", digits):
        raise PathError("an escape that Go does not know")
    code = int(digits, 16)
    if escape == "x":
        return bytes((code,))
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise PathError("an escape that Go does not know")
    # A character below 128 is one byte either way.
    return chr(code).encode()


def _is_letter(char: str) -> bool:
    return (category(char) or "").startswith("L")


def _is_digit(char: str) -> bool:
    return category(char) == "Nd"
