"""Reports that may not be written: one of them is tried at a time, and all others once that one is written.

A right that is missing for one report is mostly missing for all, of which there may be thousands. But an
admission policy may refuse a single one for good: so each is tried in its turn.
"""

import asyncio
import logging
from collections.abc import Callable

from crdkeeper.cluster.transport.client import ApiError

_log = logging.getLogger(__name__)

_SECONDS = 5.0
"""Between two attempts."""
_COMPLAINT_SECONDS = 60.0


class Refusals:
    """The names of the refused ones that wait for their turn."""

    def __init__(self, again: Callable[[str], None]) -> None:
        """`again` has a report written again."""
        self._again = again
        self._waiting: dict[str, None] = {}
        self._tried: set[str] = set()
        """Those whose turn it was, without an outcome so far: it may take longer than the next one's turn."""
        self._timer: asyncio.TimerHandle | None = None
        self._complain_after = 0.0

    def __contains__(self, name: object) -> bool:
        """Whether it waits, and must not be tried now."""
        return name in self._waiting

    def refused(self, name: str, error: ApiError) -> None:
        """It has been refused."""
        loop = asyncio.get_running_loop()
        if loop.time() >= self._complain_after:
            _log.warning("A DefinitionReport cannot be written: %s. Apply manifests/rbac.", error.message)
            self._complain_after = loop.time() + _COMPLAINT_SECONDS
        self._tried.discard(name)
        self._waiting[name] = None
        if self._timer is None:
            self._timer = loop.call_later(_SECONDS, self._try_one)

    def written(self, name: str) -> None:
        """It has not been refused."""
        if name in self._tried:
            waiting, self._waiting, self._tried = self._waiting, {}, set()
            for each in waiting:
                self._again(each)

    def forget(self, name: str) -> None:
        """Its CRD is gone."""
        self._waiting.pop(name, None)
        self._tried.discard(name)

    def _try_one(self) -> None:
        self._timer = None
        if self._waiting:
            name = next(iter(self._waiting))
            del self._waiting[name]
            self._tried.add(name)
            # Whatever becomes of it, the next one has its turn.
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._try_one)
            self._again(name)
