"""When a request that failed may be sent again, however often the composer looks at a definition.

It looks whenever a composite comes or goes, which a tenant may cause several times a second: the backoff of a
queue is no limit then. So there is one pause for each definition and request, and it grows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.refusing import Trouble
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_REST: Final = 3.0
"""A pause is at least this multiple of the time that the request took."""
_LONGEST_REST: Final = 4.0
"""But at most this multiple of the longest pause: who has mended what was slow does not wait for minutes."""
_NEVER: Final = frozenset[int]()


class Sent(Enum):
    """What is sent for a definition: first and longest pause in seconds, and codes without a pause."""

    COUNT = "count the composites", 1.0, 60.0, frozenset((403,))
    """Rights are granted without an event."""
    APPLY = "apply the CRD", 0.5, 15.0, frozenset((404, 409))
    """The CRD has changed, so that the next apply is another one."""
    CLAIM = "claim the CRD", 0.5, 15.0, _NEVER
    FENCE = "let the API refuse new composites", 0.5, 15.0, _NEVER
    UNFENCE = "let the API take composites again", 0.5, 15.0, _NEVER
    TRY_DELETION = "delete the CRD in a dry run", 0.5, 15.0, _NEVER
    DELETE = "delete the CRD", 0.5, 15.0, _NEVER
    RELEASE = "release the CRD", 0.5, 15.0, _NEVER
    DELETE_COMPOSITES = "list the composites to delete them", 1.0, 60.0, _NEVER
    """Those that cannot be deleted are no failure of the request."""
    FINALIZER = "write the finalizers", 0.5, 15.0, _NEVER
    STATUS = "write the status", 0.5, 15.0, _NEVER
    CREATE_MIGRATION = "create a StorageMigration", 0.5, 60.0, _NEVER

    def __init__(self, words: str, first: float, longest: float, unless: frozenset[int]) -> None:
        self.words = words
        self.first = first
        self.longest = longest
        self.unless = unless


@dataclass(frozen=True, slots=True)
class _Failure:
    key: object
    error: Trouble
    number: int
    """In a row."""
    due: float


class Repeated(ApiError):
    """The error of an earlier request: none was sent now."""


class Dues:
    """What has failed last, for each definition and request."""

    def __init__(self) -> None:
        self._failures: dict[str, dict[Sent, _Failure]] = {}

    async def send(self, name: str, request: Sent, key: object, call: Callable[[], Awaitable[_T]]) -> _T:
        """Send a request of a definition, or raise the error of the last one with the same key."""
        loop = asyncio.get_running_loop()
        if self.rests(name, request, key):
            self.repeat(name, request)
        before = self._failure(name, request, key)
        began = loop.time()
        try:
            answer = await call()
        except (ApiError, Unreachable) as error:
            if not isinstance(error, ApiError) or error.code not in request.unless:
                number, now = before.number if before is not None else 0, loop.time()
                rest = min(_REST * (now - began), _LONGEST_REST * request.longest)
                pause = max(backoff(number, request.first, request.longest), rest)
                failure = _Failure(key, alone(error), number + 1, now + pause)
                self._failures.setdefault(name, {})[request] = failure
                _log.warning("%s: cannot %s: %s; trying again in %.1f s", name, request.words, error, pause)
            raise
        self._failures.get(name, {}).pop(request, None)
        return answer

    def repeat(self, name: str, request: Sent) -> None:
        """Raise the error of the last such request again, as Repeated, if it has failed."""
        failure = self._failures.get(name, {}).get(request)
        if failure is not None:
            error = failure.error
            raise Repeated(error.code, error.body) if isinstance(error, ApiError) else alone(error)

    def rests(self, name: str, request: Sent, key: object) -> bool:
        """Whether the last such request with that key failed, and it is too early for another one."""
        failure = self._failure(name, request, key)
        return failure is not None and asyncio.get_running_loop().time() < failure.due

    def left(self, name: str) -> float | None:
        """Seconds until the first of the requests that failed may be repeated; None if none has to wait."""
        now = asyncio.get_running_loop().time()
        waits = [each.due - now for each in self._failures.get(name, {}).values()]
        return min((each for each in waits if each > 0.0), default=None)

    def end(self, name: str, request: Sent) -> None:
        """Such a request may be sent at once: another one shows that it may succeed now."""
        self._failures.get(name, {}).pop(request, None)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._failures.pop(name, None)

    def _failure(self, name: str, request: Sent, key: object) -> _Failure | None:
        found = self._failures.get(name, {}).get(request)
        return found if found is not None and found.key == key else None


def key_of(definition: CompositeResourceDefinition, crd: Mapping[str, Any]) -> object:
    """Of a request for a CRD as it is: differs if a person has changed the definition, or the CRD is another.

    Without the CRD's resourceVersion, which a claim changes.
    """
    return crd["metadata"]["uid"], definition.metadata.uid, definition.metadata.generation


def alone(error: Trouble) -> Trouble:
    """The same error without its traceback, which would keep all that the frames of a pass know."""
    return ApiError(error.code, error.body) if isinstance(error, ApiError) else Unreachable(str(error))
