"""Requests that were decided on what has changed since: look again, and say so only if that never ends."""

from collections import Counter
from typing import Final

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.controllers.compositeresourcedefinition.due import Repeated
from crdkeeper.controllers.compositeresourcedefinition.refusing import Trouble

_CODES: Final = frozenset((404, 409))
_MOST: Final = 5


class Races:
    """How often in a row that has happened to each definition."""

    def __init__(self) -> None:
        self._number: Counter[str] = Counter()

    def is_race(self, name: str, error: Trouble) -> bool:
        """Whether the next look may show why a request has failed."""
        code = error.code if isinstance(error, ApiError) else 0
        if not isinstance(error, Repeated):
            self._number[name] = self._number[name] + 1 if code in _CODES else 0
        return code in _CODES and 0 < self._number[name] < _MOST

    def end(self, name: str) -> None:
        """A request has succeeded, or the definition is gone."""
        del self._number[name]
