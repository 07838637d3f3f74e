"""A string on one side that is several fields on the other: `{host}:{port}`."""

import re
from collections.abc import Mapping

from crdkeeper.core.conversion.values import Unconvertible

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")


class BadTemplate(ValueError):
    """A template whose result could not be split again."""


class Template:
    """Splits a string into its parts and joins them again. The first parts are as long as possible."""

    def __init__(self, text: str) -> None:
        """Raise BadTemplate."""
        self.names: tuple[str, ...] = tuple(_NAME.findall(text))
        self._between: list[str] = _NAME.split(text)[::2]
        if len(set(self.names)) != len(self.names) or not self.names:
            raise BadTemplate("names each part once, in braces")
        if not all(self._between[1:-1]):
            raise BadTemplate("needs a text between two parts, or nobody can tell where one ends")
        if any("{" in each or "}" in each for each in self._between):
            raise BadTemplate("has a brace that is no part of a name")
        self._text = text

    def split(self, text: str) -> dict[str, str]:
        """The parts by name. Raises Unconvertible if the string does not match."""
        between = self._between
        if not text.startswith(between[0]) or not text.endswith(between[-1]):
            raise Unconvertible(f"a string that does not fit {self._text!r}")
        left = text[len(between[0]) : len(text) - len(between[-1]) or None]
        found: dict[str, str] = {}
        for name, separator in zip(reversed(self.names[1:]), reversed(between[1:-1]), strict=True):
            left, cut, found[name] = left.rpartition(separator)
            if not cut:
                raise Unconvertible(f"a string that does not fit {self._text!r}")
        found[self.names[0]] = left
        return found

    def join(self, parts: Mapping[str, str]) -> str:
        return self._text.format_map(parts)  # it has no braces except those of the names
