"""BuiltinPolicies: looks at how API servers store resources, migrates what changed, and reports both."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from crdkeeper.api.builtinpolicy import BuiltinPolicy, BuiltinPolicyStatus, BuiltinResource
from crdkeeper.api.meta import READY, set_condition, summarize
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import (
    create_migration,
    delete_migration,
    get_builtin_policy,
    list_migrations_of,
    put_status,
)
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.builtinpolicy.looks import Look, SharedLooks, looking
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.builtins.plan import (
    Known,
    agreed,
    in_progress,
    is_failing,
    judged,
    migration_name,
    next_migration,
    observed,
    superseded,
    unsettled_seconds,
)
from crdkeeper.core.builtins.selection import governing, naming_nothing
from crdkeeper.core.builtins.standing import PolicyCondition, encryption, ready
from crdkeeper.core.builtins.view import View

_log = logging.getLogger(__name__)
ENCRYPTION_OBSERVED = "EncryptionObserved"
_LOOK_SECONDS = 30.0
"""Between two looks at the API servers while nothing is due."""
_DUE_SECONDS = 10.0
_DELAY = 0.5
_VERBS = ("get", "list", "patch")


class BuiltinPolicies:
    """Reconciles each policy with what the API servers answer."""

    def __init__(self, client: Client, state: ClusterState, look: Look, *, identity: str) -> None:
        self._client = client
        self._state = state
        self._looks = SharedLooks(look)
        self._identity = identity
        self._rights: dict[str, tuple[float, list[str]]] = {}
        """By resource: when rights were asked for, and the verbs that were missing."""
        self.queue = WorkQueue(self._reconcile, workers=1)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        await self.queue.run()

    def _saw(self, kind: str, name: str) -> None:
        if kind == BuiltinPolicy.plural:
            for each in {name, *self._state.of(BuiltinPolicy)}:
                self.queue.add_within(each, _DELAY)
        elif kind == "migrated":
            for each, policy in self._state.of(BuiltinPolicy).items():
                if any(found.resource == name for found in policy.status.resources):
                    self.queue.add_within(each, _DELAY)

    async def _reconcile(self, name: str) -> None:
        # Decided on what is stored: what is recorded there says which migration proves what.
        policy = await get_builtin_policy(self._client, name)
        if policy is None or policy.metadata.deletion_timestamp is not None:
            self._looks.forget(name)
            return
        try:
            view = await self._view(policy)
        except ApiError as error:
            if error.code != 403:
                raise
            why = (
                f"The operator may not find out what is built in: {error.message} Apply the manifests of "
                "this release."
            )
            await self._write(
                policy, policy.status.model_copy(deep=True), PolicyCondition("False", "Forbidden", why), None
            )
            self.queue.add_within(name, _LOOK_SECONDS)
            return
        unread: set[str] = set()
        migrations = await list_migrations_of(self._client, unread=unread)
        if migrations is None:
            # An API server that has just started may not know the kind yet, and nobody tells when it does.
            self.queue.add_within(name, _LOOK_SECONDS)
            return
        policies = {**self._state.of(BuiltinPolicy), name: policy}.values()
        selected = [
            each
            for each, ways in view.stored.items()
            if (by := governing(policies, ways[0].group, ways[0].resource)) is not None
            and by.metadata.name == name
        ]
        now = self._client.now()
        resources = observed(policy, view, selected, now)
        begun = unread | {each.metadata.name for each in migrations}
        missing = await self._missing(policy, resources, begun)
        resources = judged(policy, resources, Known(migrations, missing, now, unread))
        status = policy.status.model_copy(deep=True)
        status.resources = resources
        status.selected = len(resources)
        status.due = sum(not each.migrated for each in resources)
        failing = _failing(policy, resources, migrations)
        status.failing = len(failing)
        unknown = naming_nothing(
            policy, {(way.group, way.resource) for ways in view.stored.values() for way in ways}
        )
        # First the record, then what follows from it: no migration for a change that is not recorded.
        seen = encryption(view)
        await self._write(policy, status, ready(policy, resources, failing, unknown, seen), seen)
        await self._act(policy, resources, migrations)
        self.queue.add_within(name, self._pause(policy, resources))

    def _pause(self, policy: BuiltinPolicy, resources: Sequence[BuiltinResource]) -> float:
        now = self._client.now()
        left = [
            unsettled_seconds(policy, each, now)
            for each in resources
            if not each.migrated and (each.reason in ("Settling", "Waiting", "Forbidden") or not agreed(each))
        ]
        # One that has settled waits for others, who need longer than a moment.
        waits = [min(_DUE_SECONDS, max(1.0, each)) if each else _DUE_SECONDS for each in left]
        return min(waits, default=_LOOK_SECONDS)

    async def _view(self, policy: BuiltinPolicy) -> View:
        # Fresh enough that not each checkpoint of a migration leads to a look. But that the API servers have
        # agreed for long enough takes one at its end.
        now = self._client.now()
        over = [
            (now - each.changed_time).total_seconds() - policy.spec.template.settle_seconds
            for each in policy.status.resources
            if each.reason == "Settling"
        ]
        max_age = min([_DUE_SECONDS, *(each for each in over if each >= 0)])
        return await self._looks.view(policy, self._state.of(BuiltinPolicy).values(), max_age)

    async def _missing(
        self, policy: BuiltinPolicy, resources: Sequence[BuiltinResource], begun: Collection[str]
    ) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in resources:
            if each.migrated or not agreed(each) or migration_name(policy, each) in begun:
                continue
            if missing := await self._missing_verbs(each.resource):
                found[each.resource] = missing
        return found

    async def _missing_verbs(self, resource: str) -> list[str]:
        now = asyncio.get_running_loop().time()
        known = self._rights.get(resource)
        if known is not None and now - known[0] < _DUE_SECONDS:
            return known[1]
        plural, _, group = resource.partition(".")
        rights = [Right(verb, group, plural) for verb in _VERBS]
        missing = [each.verb for each in await missing_rights(self._client, rights)]
        self._rights[resource] = now, missing
        return missing

    async def _write(
        self,
        policy: BuiltinPolicy,
        status: BuiltinPolicyStatus,
        now: PolicyCondition,
        seen: PolicyCondition | None,
    ) -> None:
        """Record a status, only if nobody else has changed the policy since. Raises ApiError: 409 if so."""
        time, generation = self._client.now(), policy.metadata.generation
        status.observed_generation = generation
        if seen is not None:
            set_condition(
                status.conditions,
                ENCRYPTION_OBSERVED,
                seen.status,
                seen.reason,
                seen.message,
                generation=generation,
                now=time,
            )
        changed = set_condition(
            status.conditions, READY, now.status, now.reason, now.message, generation=generation, now=time
        )
        summarize(status.conditions, stalled=now.status == "False", now=time)
        if status == policy.status:
            return
        updated: BuiltinPolicy = policy.model_copy(update={"status": status})
        await put_status(self._client, updated, resource_version=policy.metadata.resource_version)
        if changed and now.status == "False":
            await send_event(
                self._client, policy, "Warning", now.reason, now.message, instance=self._identity
            )

    async def _act(
        self,
        policy: BuiltinPolicy,
        resources: Sequence[BuiltinResource],
        migrations: Sequence[StorageMigration],
    ) -> None:
        for each in superseded(policy, resources, migrations):
            _log.info("BuiltinPolicy %s: deleting %s.", policy.metadata.name, each.metadata.name)
            await delete_migration(self._client, each)
        policies = {**self._state.of(BuiltinPolicy), policy.metadata.name: policy}.values()
        if in_progress(policies, migrations):
            return
        wanted = next_migration(policy, resources)
        if wanted is None:
            return
        try:
            created = await create_migration(self._client, wanted)
        except ApiError as error:
            if error.code == 409:
                return
            raise
        resource = next(each for each in resources if migration_name(policy, each) == created.metadata.name)
        note = f"Created {created.metadata.name}: {_why(resource)}"
        _log.info("BuiltinPolicy %s: %s", policy.metadata.name, note)
        await send_event(self._client, policy, "Normal", "MigrationCreated", note, instance=self._identity)


def _why(each: BuiltinResource) -> str:
    stored = each.storage_version or each.storage_version_hash
    since = each.migrated_time
    if since is None:
        return f"nothing is known of how objects of {each.resource} were stored before ({stored} now)."
    return f"objects of {each.resource} may be stored as before {each.changed_time:%Y-%m-%d %H:%M:%S} UTC."


def _failing(
    policy: BuiltinPolicy, resources: Sequence[BuiltinResource], migrations: Sequence[StorageMigration]
) -> list[str]:
    by_name = {each.metadata.name: each for each in migrations}
    return [
        each.resource
        for each in resources
        if not each.migrated
        and (
            each.reason in ("Forbidden", "NameTaken")
            or ((found := by_name.get(migration_name(policy, each))) is not None and is_failing(found))
        )
    ]


def begin_builtins(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the BuiltinPolicy controller."""
    client = context.client
    return BuiltinPolicies(client, context.state, looking(client), identity=context.identity).run()
