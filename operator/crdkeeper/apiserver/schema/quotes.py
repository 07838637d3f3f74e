"""Bounds what violations quote. One of a huge value shows it, as the server does; of thousands not each can.

Without this, 60,000 defaults that are none of 60,000 enum values make 36 GB of messages.
"""

from typing import Any, Final

from crdkeeper.apiserver.golang.text import displayed

_MOST: Final = 4 << 20
_SHORT: Final = 200


class Quotes:
    """The quotes of one report: as they are up to 4 Mi characters together, beyond that only short ones."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST

    def text(self, text: str) -> str:
        """A text, cut if there is no room for it."""
        if len(text) > _SHORT:
            self._left -= len(text)
            if self._left < 0:
                return text[:_SHORT] + "…"
        return text

    def value(self, value: Any) -> str:
        """A value as a field error shows it, cut if there is no room for it."""
        if self._left < 0:
            if isinstance(value, str):
                return self.text(displayed(value[:_SHORT])) + ("…" if len(value) > _SHORT else "")
            if isinstance(value, dict | list) and value:
                return "…"
        return self.text(displayed(value))
