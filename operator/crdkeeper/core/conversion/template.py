"""A text on one side that is several fields on the other: `{host}:{port}`."""

import re
from collections.abc import Mapping

from crdkeeper.core.conversion.values import Unconvertible

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")


class BadTemplate(ValueError):
    """A template that could not be read back."""


class Template:
    """Splits a text into its parts and joins them again. The first parts are as long as they can be."""

    def __init__(self, text: str) -> None:
        """Raises BadTemplate."""
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
        """The parts by name. Raises Unconvertible where the text does not fit."""
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
        """The text."""
        return self._text.format_map(parts)  # it has no braces but those of the names
