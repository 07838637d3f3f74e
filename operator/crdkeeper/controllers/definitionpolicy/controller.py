"""DefinitionPolicies: creates the migrations that CRDs need by a policy or by their label, and reports
each policy's status."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionPolicyStatus
from crdkeeper.api.meta import READY, find_condition, set_condition, summarize
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.definitions import get_definition
from crdkeeper.cluster.resources.events import send_definition_event, send_event
from crdkeeper.cluster.resources.kinds import create_migration, list_migrations_of, list_policies
from crdkeeper.cluster.resources.protection import why_unprotected
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.definitionpolicy.changes import ChangeGuard
from crdkeeper.controllers.definitionpolicy.finalizers import FinalizerReleases
from crdkeeper.controllers.definitionpolicy.statuses import PolicyStatuses
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.finalizers.standing import FAILING
from crdkeeper.core.finalizers.tally import HeldLook
from crdkeeper.core.policy.changes import CHANGES_JUDGED, changes_judged
from crdkeeper.core.policy.governance import Governance
from crdkeeper.core.policy.labels import MigrationRules, migration_rules
from crdkeeper.core.policy.migrations import standing, wanted_migration
from crdkeeper.core.policy.selection import guarding, protected, selects

_log = logging.getLogger(__name__)
_PROTECTION_SECONDS = 300.0
"""Until another look at whether the API server protects, if no policy changes; half of it if CRDs do."""
_UNSERVED_SECONDS = 5.0
"""Until another look while the API server, as one that has just started, does not serve our kinds."""
_TAKEN_SECONDS = 300.0
"""Between two looks whether the name of a migration is free again."""
_STATUS_DELAY = 0.5
"""Seconds during which changes of many CRDs are combined into one status update."""


class DefinitionPolicies:
    """Reconciles CRDs against the policies, and updates the policies' status."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        metrics: OperatorMetrics,
        *,
        identity: str,
        watch_labels: bool = False,
        namespace: str,
        webhook: WebhookAddress,
    ) -> None:
        self._client = client
        self._state = state
        self._metrics = metrics
        self._identity = identity
        self._watch_labels = watch_labels
        self._outdated: set[str] = set()
        """The CRDs with objects in versions other than the storage version."""
        self._governance = Governance()
        self._unprotected: tuple[float, str] = float("-inf"), ""
        """When the last look at whether the API server protects began, for all policies; why it does not."""
        self._changed = float("-inf")
        """When a policy was last seen to change: somebody may have set right what protects, too."""
        self._statuses = PolicyStatuses(client)
        self._changes = ChangeGuard(client, state, webhook, namespace, self._guard_changed)
        self.definitions = WorkQueue(self._reconcile_definition)
        self.policies = WorkQueue(self._reconcile_policy, workers=1)
        self.finalizers = FinalizerReleases(
            client,
            state,
            metrics,
            self._governance,
            identity=identity,
            publish=self._publish,
        )
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for queue in (self.definitions, self.policies, self.finalizers.queue):
                group.create_task(queue.run())
            group.create_task(self._changes.run())

    def _saw(self, kind: str, name: str) -> None:
        if kind == DefinitionPolicy.plural:
            self._changed = asyncio.get_running_loop().time()
            self.policies.add_within(name, _STATUS_DELAY)
            changed = self._governance.saw_policy(name, self._state.of(DefinitionPolicy).get(name))
            self._queue(changed.policies, changed.definitions)
            self.finalizers.consider(changed.definitions)
        elif kind == "definitions":
            known = self._state.definitions.get(name)
            self._queue(self._governance.saw_definition(name, known), () if known is None else (name,))
            self.finalizers.consider((name,))
            self._count(name)
        elif kind == "migrated" and name in self._state.definitions:
            policy = self._governance.of(name)
            self._queue(() if policy is None else (policy.metadata.name,), (name,))

    def _queue(self, policies: Iterable[str], definitions: Iterable[str]) -> None:
        for policy in policies:
            self.policies.add_within(policy, _STATUS_DELAY)
        for each in definitions:
            self.definitions.add(each)

    def _guard_changed(self) -> None:
        for policy in guarding(self._state.of(DefinitionPolicy).values()):
            self.policies.add(policy.metadata.name)

    def _count(self, name: str) -> None:
        """Count a CRD that has changed. Not all of them: each of thousands changes at the start."""
        known = self._state.definitions.get(name)
        if known is not None and known.outdated_versions:
            self._outdated.add(name)
        else:
            self._outdated.discard(name)
        self._metrics.definitions.labels("outdated").set(len(self._outdated))
        self._metrics.definitions.labels("current").set(len(self._state.definitions) - len(self._outdated))

    async def _reconcile_definition(self, name: str) -> None:
        known = self._state.definitions.get(name)
        policy = self._governance.of(name)
        rules = self._rules(() if policy is None else (policy,), known)
        if known is None or rules is None:
            return
        if wanted_migration(rules, known, self._state.migrations_of(name)) is None:
            return
        # The watches may lag; decide on what is stored.
        definition = await get_definition(self._client, name)
        unread: set[str] = set()
        stored = await list_migrations_of(self._client, name, unread)
        if definition is None:
            return
        if stored is None:
            self.definitions.add_within(name, _UNSERVED_SECONDS)
            return
        if wanted_migration(rules, definition, stored) is None:
            return
        # At the start not all policies may be known yet, and their watch may be late: an older one governs,
        # and a label counts only if none selects the CRD.
        policies = await list_policies(self._client)
        if policies is None:
            self.definitions.add_within(name, _UNSERVED_SECONDS)
            return
        rules = self._rules(policies, definition)
        wanted = wanted_migration(rules, definition, stored) if rules is not None else None
        if rules is None or wanted is None:
            return
        if (taken := wanted["metadata"]["name"]) in unread:
            _log.warning(
                "CRD %s is not migrated: StorageMigration %s is of another release, and this one cannot "
                "read it. Delete it.",
                name,
                taken,
            )
            # No watch tells which CRD it was of when it is deleted.
            self.definitions.add_within(name, _TAKEN_SECONDS)
            return
        try:
            created = await create_migration(self._client, wanted)
        except ApiError as error:
            if error.code == 409:
                return
            raise
        note = f"CRD {name} stores {', '.join(definition.stored_versions)}: created {created.metadata.name}."
        if rules.policy is None:
            _log.info("By its label: %s", note)
            crd = {"metadata": {"name": name, "uid": definition.uid}}
            await send_definition_event(
                self._client, crd, "Normal", "MigrationCreated", note, instance=self._identity
            )
            return
        _log.info("DefinitionPolicy %s: %s", rules.policy.metadata.name, note)
        await send_event(
            self._client, rules.policy, "Normal", "MigrationCreated", note, instance=self._identity
        )

    def _rules(
        self, policies: Iterable[DefinitionPolicy], definition: DefinitionFacts | None
    ) -> MigrationRules | None:
        if definition is None:
            return None
        return migration_rules(policies, definition, watch_labels=self._watch_labels)

    async def _why_unprotected(self) -> str:
        """Why the API server does not protect any CRD; empty if it does."""
        now = asyncio.get_running_loop().time()
        if self._unprotected[0] <= max(self._changed, now - _PROTECTION_SECONDS / 2):
            self._unprotected = now, await why_unprotected(self._client)
        return self._unprotected[1]

    def _why_unjudged(self, policy: DefinitionPolicy, status: DefinitionPolicyStatus) -> str:
        """Why the changes that the policy wants to have judged are not; empty if they are."""
        known = find_condition(status.conditions, CHANGES_JUDGED)
        generation = policy.metadata.generation
        judged = known is not None and (known.status, known.observed_generation) == ("True", generation)
        if not guarding([policy]) or (judged and not self._changes.looked):
            return ""
        return self._changes.trouble

    async def _reconcile_policy(self, name: str) -> None:
        if self._statuses.busy(name):
            # The only worker of all policies does not wait for one of them.
            self.policies.add_within(name, _STATUS_DELAY)
            return
        await self._publish(name)

    async def _publish(self, name: str) -> Mapping[str, HeldLook]:
        """Write the status of a policy, if it is not up to date. Returns the looks that it tells of."""
        async with self._statuses.turn(name):
            return await self._publish_in_turn(name)

    async def _publish_in_turn(self, name: str) -> Mapping[str, HeldLook]:
        policy = self._state.of(DefinitionPolicy).get(name)
        unprotected, number = "", 0
        if policy is not None and policy.spec.protection.deletion == "Deny":
            unprotected = await self._why_unprotected()
            self.policies.add_within(name, _PROTECTION_SECONDS)
            # It may have changed meanwhile, and with it the looks of which the status is to tell.
            policy = self._state.of(DefinitionPolicy).get(name)
        if policy is None:
            self._statuses.forget(name)
            return {}
        if policy.spec.protection.deletion == "Deny":
            selected = (each for each in self._state.definitions.values() if selects(policy, each))
            number = 0 if unprotected else len(protected(policy, selected))
        mine = self._governance.governed(name)
        status = self._statuses.latest(policy).model_copy(deep=True)
        unjudged = self._why_unjudged(policy, status)
        elsewhere = self._governance.elsewhere(name)
        now = standing(policy, mine, self._state.migrations_of, unprotected, unjudged, elsewhere)
        status.protected = number
        status.selected, status.outdated, status.failing = now.selected, now.outdated, now.failing
        status.observed_generation = policy.metadata.generation
        # The wait for the turn is over, and the write may take long: neither what was known before counts as
        # shown, nor what becomes known later.
        held, told = self.finalizers.write(policy, status), self.finalizers.told(name)
        if held is not None and held.reason in FAILING and now.ready == "True":
            now = replace(now, ready="False", reason=held.reason, message=held.message)
        changed = set_condition(
            status.conditions,
            READY,
            now.ready,
            now.reason,
            now.message,
            generation=policy.metadata.generation,
            now=self._client.now(),
        )
        judging = changes_judged(policy, unjudged)
        if judging is None:
            status.conditions = [each for each in status.conditions if each.type != CHANGES_JUDGED]
        else:
            set_condition(
                status.conditions,
                CHANGES_JUDGED,
                *judging,
                generation=policy.metadata.generation,
                now=self._client.now(),
            )
        summarize(status.conditions, stalled=True, now=self._client.now())
        if self._statuses.shows(policy, status):
            return told
        await self._statuses.write(policy, status)
        if changed and now.ready == "False":
            await send_event(
                self._client, policy, "Warning", now.reason, now.message, instance=self._identity
            )
        return told


def begin_policies(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the DefinitionPolicy controller."""
    policies = DefinitionPolicies(
        context.client,
        context.state,
        context.metrics,
        identity=context.identity,
        watch_labels=context.watch_labels,
        namespace=context.namespace,
        webhook=context.webhook,
    )
    return policies.run()
