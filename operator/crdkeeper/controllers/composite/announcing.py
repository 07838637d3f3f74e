"""Sends Events about composites, beside the passes: what is slow or refused there holds up no composite."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.cluster.resources.composites import COMPOSER
from crdkeeper.cluster.resources.events import send_object_event
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.composite.metrics import ComposingMetrics
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.core.composites.announcing import CompositeEvent, EventBudget, announcements

_WAITING: Final = 100
"""Events that wait to be sent; more are dropped."""


class Announcer:
    """Tells what passes have changed."""

    def __init__(self, client: Client, metrics: ComposingMetrics, identity: str) -> None:
        self._client = client
        self._metrics = metrics
        self._identity = identity
        self._budget = EventBudget()
        self._waiting: asyncio.Queue[tuple[Mapping[str, Any], CompositeEvent]] = asyncio.Queue(_WAITING)

    def tell(self, tenant: str, report: PassReport) -> None:
        """Tell what a pass over a composite of a tenant has changed, as far as Events may be sent."""
        if report.composite is None:
            return
        metadata, now = report.composite["metadata"], asyncio.get_running_loop().time()
        after = (report.status or {}).get("conditions") or ()
        for each in announcements(report.before or (), after, report.objects):
            if self._waiting.full() or not self._budget.take(tenant, metadata["uid"], each.type, now):
                self._metrics.events.labels("dropped").inc()
                continue
            regarding = {
                "apiVersion": report.composite["apiVersion"],
                "kind": report.composite["kind"],
                **{key: metadata[key] for key in ("namespace", "name", "uid") if key in metadata},
            }
            self._waiting.put_nowait((regarding, each))

    async def run(self) -> None:
        """Send them, until cancelled."""
        while True:
            regarding, each = await self._waiting.get()
            self._metrics.events.labels("sent").inc()
            await send_object_event(
                self._client,
                regarding,
                each.type,
                each.reason,
                each.note,
                instance=self._identity,
                controller=COMPOSER,
            )
