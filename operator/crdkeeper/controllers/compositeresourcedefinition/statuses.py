"""The statuses of definitions: written only when they change, with an Event about what a person must do."""

import logging

from crdkeeper.api.compositeresourcedefinition import (
    CompositeResourceDefinition,
    CompositeResourceDefinitionStatus,
)
from crdkeeper.api.meta import STALLED, find_condition
from crdkeeper.cluster.resources.composites import COMPOSER, FIELD_MANAGER
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import apply_status
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.controllers.compositeresourcedefinition.metrics import CompositeMetrics
from crdkeeper.core.composer.losses import described

_log = logging.getLogger(__name__)


class Statuses:
    """Those of all definitions."""

    def __init__(self, client: Client, dues: Dues, metrics: CompositeMetrics, identity: str) -> None:
        self._client = client
        self._dues = dues
        self._metrics = metrics
        self._identity = identity
        self._written: dict[str, CompositeResourceDefinitionStatus] = {}
        """What this process has written last, or is writing."""
        self._lost: dict[str, int] = {}
        """How many lost composites were reported by an Event."""

    async def write(
        self, definition: CompositeResourceDefinition, status: CompositeResourceDefinitionStatus
    ) -> None:
        """Write the status if it differs from that of the definition; after a failure, when it is due."""
        name, metadata = definition.metadata.name, definition.metadata
        self._metrics.count(name, status)
        if status == definition.status:
            return
        # A state that passes by itself, as when a definition is new, is worth no Event.
        before, now = (find_condition(each.conditions, STALLED) for each in (definition.status, status))
        updated: CompositeResourceDefinition = definition.model_copy(update={"status": status})
        await self._report_losses(definition, status.lost_composites)
        self._written[name] = status

        async def send() -> bool:
            return await within(WRITE_SECONDS, apply_status(self._client, updated, manager=FIELD_MANAGER))

        try:
            # Whatever it says: a tenant decides how often the number of composites changes.
            exists = await self._dues.send(name, Sent.STATUS, (metadata.uid, metadata.generation), send)
        except (ApiError, Unreachable):
            return
        if not exists:
            return
        self._metrics.writes.labels("status").inc()
        if now is not None and (before is None or before.reason != now.reason):
            _log.info("CompositeResourceDefinition %s: %s", name, now.message)
            await self.warn(definition, now.reason, now.message)

    def has_written(self, definition: CompositeResourceDefinition) -> bool:
        """Whether the status of the definition is what this process has written last, or is writing."""
        return definition.status == self._written.get(definition.metadata.name)

    async def warn(self, definition: CompositeResourceDefinition, reason: str, note: str) -> None:
        """Send an Event about something that a person must know."""
        await send_event(
            self._client,
            definition,
            "Warning",
            reason,
            note,
            instance=self._identity,
            controller=COMPOSER,
        )

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._written.pop(name, None)
        self._lost.pop(name, None)

    async def _report_losses(self, definition: CompositeResourceDefinition, total: int) -> None:
        """Before the status has them: whoever goes on after a kill in between reports them once more."""
        name, lost = definition.metadata.name, total - definition.status.lost_composites
        if lost and self._lost.get(name) != total:
            self._lost[name] = total
            said = described(lost)
            _log.warning("CompositeResourceDefinition %s: %s", name, said)
            await self.warn(definition, "CompositesLost", said)
