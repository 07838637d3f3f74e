"""Pauses after failed requests that hold however often the composer looks at a definition.

It looks whenever a composite comes or goes, which a tenant may cause several times a second: the backoff of a
queue is no limit then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.refusing import Trouble
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_REST: Final = 3.0
"""A pause is at least this multiple of the time that the request took."""


@dataclass(frozen=True, slots=True)
class _Failure:
    key: object
    error: Trouble
    number: int
    """In a row."""
    due: float


class Pauses:
    """One request for each definition, repeated after growing pauses."""

    def __init__(self, first: float, longest: float, *, unless: frozenset[int] = frozenset()) -> None:
        """In seconds; no pauses after errors of the API server with the codes `unless`."""
        self._first = first
        self._longest = longest
        self._unless = unless
        self._failures: dict[str, _Failure] = {}

    async def send(self, name: str, key: object, request: Callable[[], Awaitable[_T]]) -> _T:
        """Send the request, or raise the error of the last one of this definition with the same key."""
        loop = asyncio.get_running_loop()
        before = self._failures.get(name)
        if before is not None and before.key != key:
            before = None
        if before is not None and loop.time() < before.due:
            raise before.error.with_traceback(None)
        began = loop.time()
        try:
            answer = await request()
        except (ApiError, Unreachable) as error:
            if not isinstance(error, ApiError) or error.code not in self._unless:
                number, now = before.number if before is not None else 0, loop.time()
                pause = max(backoff(number, self._first, self._longest), _REST * (now - began))
                self._failures[name] = _Failure(key, error, number + 1, now + pause)
                _log.warning("%s: %s; trying again in %.1f s", name, error, pause)
            raise
        self.forget(name)
        return answer

    def left(self, name: str) -> float:
        """Seconds until the request of a definition may be repeated; 0 if it need not wait."""
        before = self._failures.get(name)
        return max(0.0, before.due - asyncio.get_running_loop().time()) if before is not None else 0.0

    def forget(self, name: str) -> None:
        """The definition is gone, or its next request need not wait."""
        self._failures.pop(name, None)
