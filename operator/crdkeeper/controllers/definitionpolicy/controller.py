"""DefinitionPolicies: creates the migrations that selected CRDs need, and reports each policy's status."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import READY, set_condition, summarize
from crdkeeper.cluster.resources.definitions import get_definition
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import apply_status, create_migration, list_migrations
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.policy.migrations import standing, wanted_migration
from crdkeeper.core.policy.selection import governing

_log = logging.getLogger(__name__)
_STATUS_DELAY = 0.5
"""Seconds during which changes of many CRDs are combined into one status update."""


class DefinitionPolicies:
    """Reconciles CRDs against the policies, and updates the policies' status."""

    def __init__(
        self, client: Client, state: ClusterState, metrics: OperatorMetrics, *, identity: str
    ) -> None:
        self._client = client
        self._state = state
        self._metrics = metrics
        self._identity = identity
        self.definitions = WorkQueue(self._reconcile_definition)
        self.policies = WorkQueue(self._reconcile_policy, workers=1)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for queue in (self.definitions, self.policies):
                group.create_task(queue.run())

    def _saw(self, kind: str, name: str) -> None:
        if kind == DefinitionPolicy.plural:
            self.policies.add_within(name, _STATUS_DELAY)
            for each in self._state.definitions:
                self.definitions.add(each)
        elif kind in ("definitions", "migrated"):
            if name in self._state.definitions:
                self.definitions.add(name)
            for policy in self._state.of(DefinitionPolicy):
                self.policies.add_within(policy, _STATUS_DELAY)
            if kind == "definitions":
                self._count()

    def _count(self) -> None:
        outdated = sum(bool(each.outdated_versions) for each in self._state.definitions.values())
        self._metrics.definitions.labels("outdated").set(outdated)
        self._metrics.definitions.labels("current").set(len(self._state.definitions) - outdated)

    async def _reconcile_definition(self, name: str) -> None:
        known = self._state.definitions.get(name)
        policy = governing(self._state.of(DefinitionPolicy).values(), known) if known is not None else None
        if known is None or policy is None:
            return
        existing = self._state.migrations_by_definition().get(name, [])
        if wanted_migration(policy, known, existing) is None:
            return
        # The watches may lag; decide on what is stored.
        definition = await get_definition(self._client, name)
        stored = await list_migrations(self._client)
        if definition is None or stored is None:
            return
        wanted = wanted_migration(policy, definition, stored)
        if wanted is None:
            return
        try:
            created = await create_migration(self._client, wanted)
        except ApiError as error:
            if error.code == 409:
                return
            raise
        note = f"CRD {name} stores {', '.join(definition.stored_versions)}: created {created.metadata.name}."
        _log.info("DefinitionPolicy %s: %s", policy.metadata.name, note)
        await send_event(self._client, policy, "Normal", "MigrationCreated", note, instance=self._identity)

    async def _reconcile_policy(self, name: str) -> None:
        policy = self._state.of(DefinitionPolicy).get(name)
        if policy is None:
            return
        policies = self._state.of(DefinitionPolicy).values()
        governed = [each for each in self._state.definitions.values() if governing(policies, each) is policy]
        now = standing(policy, governed, self._state.migrations_by_definition())
        status = policy.status.model_copy(deep=True)
        status.selected, status.outdated, status.failing = now.selected, now.outdated, now.failing
        status.observed_generation = policy.metadata.generation
        changed = set_condition(
            status.conditions,
            READY,
            now.ready,
            now.reason,
            now.message,
            generation=policy.metadata.generation,
            now=self._client.now(),
        )
        summarize(status.conditions, stalled=True, now=self._client.now())
        if status == policy.status:
            return
        updated: DefinitionPolicy = policy.model_copy(update={"status": status})
        await apply_status(self._client, updated)
        if changed and now.ready == "False":
            await send_event(
                self._client, policy, "Warning", now.reason, now.message, instance=self._identity
            )


def begin_policies(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the DefinitionPolicy controller."""
    policies = DefinitionPolicies(context.client, context.state, context.metrics, identity=context.identity)
    return policies.run()
