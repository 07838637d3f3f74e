"""Watches the composites of each definition, whatever kinds come and go.

Not by Kopf: it ends when the API server refuses one of its watches, so that a missing right on one kind would
stop the composer for all of them, and it would keep a record of each composite.
"""

import asyncio
import logging
from collections.abc import Callable

from crdkeeper.cluster.resources.composites import first_composites, page_of_first
from crdkeeper.cluster.transport.client import METADATA_ONLY, ApiError, Client, Unreachable
from crdkeeper.cluster.transport.watches import watch
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_LASTING = 5
"""So often in a row the API server fails to begin a watch before that is said: after 15 seconds."""
_RIGHTS_SECONDS = 5.0
"""How often a request is repeated that the account may not send: rights are aggregated without an event."""


class CompositeWatches:
    """One watch for each definition whose API is served. It keeps nothing of the composites."""

    def __init__(self, client: Client, changed: Callable[[str], None], dues: Dues) -> None:
        """`changed` is called with the name of a definition when composites came or went, or rights did."""
        self._client = client
        self._changed = changed
        self._dues = dues
        self._group: asyncio.TaskGroup | None = None
        self._running: dict[str, tuple[tuple[str, str], asyncio.Task[None]]] = {}
        """By definition: the uid of the CRD with the collection, and what watches it."""
        self._refused: dict[str, str] = {}
        self._failing: dict[str, str] = {}
        """The first error of those that last: others may differ each time."""

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Let the watches be tasks of this group."""
        self._group = group

    def keep(self, name: str, uid: str, collection: str, version: str) -> None:
        """Watch a definition's composites from a resourceVersion on; from a list of its own if it is empty.

        Does nothing if that collection of the CRD with this uid is watched already. A watch of a CRD that
        was deleted hears nothing of another one of its name, and does not end soon.
        """
        known, _ = self._running.get(name, (None, None))
        if known == (uid, collection) or self._group is None:
            return
        self.stop(name)
        task = self._group.create_task(self._follow(name, collection, version))
        self._running[name] = (uid, collection), task

    def stop(self, name: str) -> None:
        """End the watch of a definition, if there is one."""
        _, task = self._running.pop(name, (None, None))
        self._refused.pop(name, None)
        self._failing.pop(name, None)
        if task is not None:
            task.cancel()

    def refused(self, name: str) -> str:
        """Why the account may not watch the composites, in the API server's words; empty if it may."""
        return self._refused.get(name, "")

    def failing(self, name: str) -> str:
        """Why the API server has not served the watch for some time, in its words; empty if it does.

        It reads all composites for that: one that a conversion webhook does not convert is enough.
        """
        return self._failing.get(name, "")

    async def _follow(self, name: str, collection: str, version: str) -> None:
        failures = unserved = 0

        def begun() -> None:
            nonlocal unserved
            unserved = 0
            was_refused = self._refused.pop(name, None) is not None
            if self._failing.pop(name, None) is not None or was_refused:
                self._changed(name)

        def failed(error: ApiError) -> None:
            nonlocal unserved
            unserved += 1
            if unserved >= _LASTING:
                self._failing.setdefault(name, error.message)
                # Nobody hears what comes and goes.
                self._changed(name)

        def heard(trouble: str) -> None:
            nonlocal failures
            if not trouble:
                failures = 0

        while True:
            try:
                if not version:
                    first = await first_composites(self._client, collection, page_of_first(1))
                    version = first.resource_version
                    # Whoever counts them need not wait until a pause is over.
                    self._dues.end(name, Sent.COUNT)
                    if name not in self._refused:
                        self._changed(name)
                async for type_, _ in watch(
                    self._client,
                    collection,
                    version,
                    accept=METADATA_ONLY,
                    heard=heard,
                    begun=begun,
                    failed=failed,
                ):
                    if type_ in ("ADDED", "DELETED"):
                        self._changed(name)
            except (ApiError, Unreachable) as error:
                version = ""
                wait = self._pause(name, error, failures)
                failures += 1
                await asyncio.sleep(wait)

    def _pause(self, name: str, error: Exception, failures: int) -> float:
        """Seconds to wait after an error."""
        code = error.code if isinstance(error, ApiError) else 0
        if code == 403:
            if name not in self._refused:
                _log.warning("The composites of %s cannot be watched: %s", name, error)
                self._refused[name] = str(error)
                self._changed(name)
            return _RIGHTS_SECONDS
        if code == 404:
            # The CRD may be gone: a list that follows an expired watch of CRDs does not report deletions.
            self._changed(name)
        wait = 0.0 if code == 410 and not failures else backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)
        _log.info("The composites of %s cannot be watched: %s; again in %.1f s", name, error, wait)
        return wait
