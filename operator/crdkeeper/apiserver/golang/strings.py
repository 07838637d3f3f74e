"""Texts changed like Go, where Python's methods of the same meaning do it otherwise."""

from typing import Final

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def to_lower(text: str) -> str:
    """A text in lower case (strings.ToLower): each character by itself, and by one character."""
    if text.isascii():
        return text.lower()
    return "".join("i" if each == "\u0130" else each.lower() for each in text)


def trim_space(text: str) -> str:
    """A text without white space around it (strings.TrimSpace), which U+001C to U+001F are not for Go."""
    return text.strip(_SPACE)
