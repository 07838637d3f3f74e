"""Texts changed and characters judged like Go, where Python's methods of the same meaning do it otherwise."""

import unicodedata
from typing import Final

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
UNICODE_VARIES: Final = "whether each character is printable depends on the API server's version of Unicode"
_GO_UNICODE: Final = (15, 0)
# With a later version than Go's, what it has added since cannot be told from the rest, except by an old one.
_IS_LATER: Final = tuple(map(int, unicodedata.unidata_version.split(".")[:2])) > _GO_UNICODE
_KNOWN: Final = unicodedata.ucd_3_2_0.category if _IS_LATER else unicodedata.category


def to_lower(text: str) -> str:
    """A text in lower case (strings.ToLower): each character by itself, and by one character."""
    if text.isascii():
        return text.lower()
    return "".join("i" if each == "\u0130" else each.lower() for each in text)


def trim_space(text: str) -> str:
    """A text without white space around it (strings.TrimSpace), which U+001C to U+001F are not for Go."""
    return text.strip(_SPACE)


def category(char: str) -> str | None:
    """The category of a character in Unicode, such as Lu; None if it depends on the version of Unicode.

    Python and Go 1.26 have one each: what both certainly have is certain.
    """
    return None if _KNOWN(char) == "Cn" else unicodedata.category(char)


def is_printable(char: str) -> bool | None:
    """Whether a character is printable (unicode.IsPrint); None if it depends on the version of Unicode."""
    return None if category(char) is None else char.isprintable()
