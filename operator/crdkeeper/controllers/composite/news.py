"""Which composites have to be looked at: most events only tell of what the composer itself has just done."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Token = int
"""One state of a composite or of an object, by which it is recognized in an event."""
UNKNOWN: Final[Token] = -1
"""A state that is always news. No hash is -1."""
_EARLY: Final = 0.01
"""Seconds by which a timer may be early."""


class News:
    """By the key of a composite: when it is due, and what was heard and is not known yet.

    A pass ends with the states that it went by. An event of one of these says nothing new, whenever it
    comes. Times are in the loop's time.
    """

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heard: dict[str, set[Token]] = {}
        self._known: dict[str, tuple[Token, ...]] = {}

    def ask(self, key: str, when: float) -> None:
        """Look at that time at the latest, whatever is heard."""
        self._due[key] = min(when, self._due.get(key, when))

    def hear(self, key: str, token: Token) -> bool:
        """An event tells of a state; whether it is news now. It may become known until the next look."""
        if token in self._known.get(key, ()):
            return False
        self._heard.setdefault(key, set()).add(token)
        return True

    def wait(self, key: str, now: float) -> float | None:
        """In how many seconds a look is due: 0 for now, None if it never is."""
        heard = self._heard.get(key)
        if heard is not None:
            heard.difference_update(self._known.get(key, ()))
            if heard:
                return 0.0
            del self._heard[key]
        due = self._due.get(key)
        if due is None:
            return None
        return due - now if due - now > _EARLY else 0.0

    def begin(self, key: str) -> None:
        """A look begins: what was heard so far is seen by it."""
        self._due.pop(key, None)
        self._heard.pop(key, None)
        self._known.pop(key, None)

    def end(self, key: str, known: Iterable[Token]) -> None:
        """The look has ended, and went by these states."""
        self._known[key] = tuple(known)

    def forget(self, key: str) -> None:
        """The composite is gone."""
        self.begin(key)


def token_of(live: Mapping[str, Any]) -> Token:
    """The state of an object."""
    metadata = live["metadata"]
    return hash((metadata.get("uid"), metadata.get("resourceVersion")))
