"""Assesses CRDs in a thread, one at a time, and each revision only once.

A check takes between a millisecond and a second, and a decoded CRD takes twenty times the memory of its JSON.
So what the watch shows of a CRD waits compressed (`keptcontents.py`), or the CRD is read again when its turn
comes, and then only the result is kept.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from crdkeeper.cluster.resources.definitions import read_definition
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionreport.keptcontents import KeptContents
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.diagnosis.assessment import Assessment, assess, unassessed
from crdkeeper.core.diagnosis.facts import SeenDefinition, seen_definition

_log = logging.getLogger(__name__)
_READ_AHEAD = 2
"""CRDs to read ahead, so that the thread need not wait."""
_BEHIND_SECONDS = 1.0
"""How long to wait for the watch when a read shows another revision than it has shown."""
_MANY = 20
_CALM_SECONDS = 1.0


class Assessor:
    """The assessments of all CRDs. Calls `on_assessed` with the name of each CRD that has a new one."""

    def __init__(self, client: Client, on_assessed: Callable[[str], None]) -> None:
        self._client = client
        self._on_assessed = on_assessed
        self._known: dict[str, tuple[str, Assessment]] = {}
        self._contents = KeptContents()
        self._ahead: set[str] = set()
        """CRDs that were read since the watch showed them: to read them again at once would show the same."""
        self._ordered_at = float("-inf")
        self._ordered = 0
        """The orders since it was calm for the last time."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="assessor")
        self.queue = WorkQueue(self._assess, workers=_READ_AHEAD)

    def known(self, seen: SeenDefinition) -> Assessment | None:
        """The assessment of exactly this revision, or None."""
        revision, assessment = self._known.get(seen.name, ("", None))
        return assessment if revision == seen.revision else None

    def saw(self, seen: SeenDefinition, crd: Mapping[str, Any]) -> None:
        """A watch has shown a CRD that may have to be assessed."""
        self._contents.keep(seen.name, seen.revision, crd)
        self._ahead.discard(seen.name)

    def needless(self, name: str) -> None:
        """What was shown of a CRD needs no assessment."""
        self._contents.drop(name)

    def order(self, name: str) -> None:
        """Queue a CRD for assessment."""
        now = asyncio.get_running_loop().time()
        self._ordered = 1 if self._is_calm(now) else self._ordered + 1
        self._ordered_at = now
        self.verify(name)

    def verify(self, name: str) -> None:
        """Queue a CRD of which an assessment is on record."""
        self.queue.add_within(name, _BEHIND_SECONDS if name in self._ahead else 0.0)

    def is_crowded(self) -> bool:
        """Whether many CRDs have come or changed at once, and no second has passed since then."""
        return self._ordered > _MANY and not self._is_calm(asyncio.get_running_loop().time())

    def _is_calm(self, now: float) -> bool:
        return now - self._ordered_at > _CALM_SECONDS and not self.queue.waiting

    def forget(self, name: str) -> None:
        """Drop everything about a deleted CRD."""
        self._known.pop(name, None)
        self._contents.drop(name)
        self._ahead.discard(name)

    def close(self) -> None:
        """End the thread after the current CRD."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _assess(self, name: str) -> None:
        content = self._contents.take(name)
        if content is None:
            content = await read_definition(self._client, name)
            if content is None:
                return
            self._ahead.add(name)
        loop = asyncio.get_running_loop()
        self._known[name] = await loop.run_in_executor(self._thread, _assess_content, content)
        self._on_assessed(name)


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        crd: dict[str, Any] = orjson.loads(content)
    except orjson.JSONDecodeError:
        # Nested too deep: an example or a default may be.
        crd = loads(content)
    return crd


def _assess_content(content: bytes) -> tuple[str, Assessment]:
    """Return the CRD's revision and its assessment."""
    crd = _decoded(content)
    revision = seen_definition(crd).revision
    try:
        return revision, assess(crd)
    except Exception:
        # A bug in one check must not cost the CRD its whole report.
        _log.exception("The CRD %s could not be assessed.", crd["metadata"]["name"])
        return revision, unassessed("an error in crdkeeper prevented the check; see the operator's log")
