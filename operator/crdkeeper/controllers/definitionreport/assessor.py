"""Assesses CRDs in a thread, one at a time, and each revision only once.

A check takes between a millisecond and a second, and a decoded CRD takes twenty times the memory of its JSON.
So the watch keeps neither: the CRD is read again when its turn comes, and only the result is kept.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from crdkeeper.cluster.resources.definitions import read_definition
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.diagnosis.assessment import Assessment, assess, unassessed
from crdkeeper.core.diagnosis.facts import SeenDefinition, seen_definition

_log = logging.getLogger(__name__)
_READ_AHEAD = 2
"""CRDs to read ahead, so that the thread need not wait."""


class Assessor:
    """The assessments of all CRDs. Calls `on_assessed` with the name of each CRD that has a new one."""

    def __init__(self, client: Client, on_assessed: Callable[[str], None]) -> None:
        self._client = client
        self._on_assessed = on_assessed
        self._known: dict[str, tuple[str, Assessment]] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="assessor")
        self.queue = WorkQueue(self._assess, workers=_READ_AHEAD)

    def known(self, seen: SeenDefinition) -> Assessment | None:
        """The assessment of exactly this revision, or None."""
        revision, assessment = self._known.get(seen.name, ("", None))
        return assessment if revision == seen.revision else None

    def order(self, name: str) -> None:
        """Queue a CRD for assessment."""
        self.queue.add(name)

    def forget(self, name: str) -> None:
        """Drop everything about a deleted CRD."""
        self._known.pop(name, None)

    def close(self) -> None:
        """End the thread after the current CRD."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _assess(self, name: str) -> None:
        content = await read_definition(self._client, name)
        if content is None:
            return
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
