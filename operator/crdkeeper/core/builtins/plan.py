"""From a policy, its status and a look at the API servers: what has changed, and what to migrate next.

`changedTime` of a resource is part of its migration's name. So a migration proves what it was created for and
nothing else: neither one from before a change that was undone, nor one from before a status was lost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from crdkeeper.api.builtinpolicy import BuiltinPolicy, BuiltinResource
from crdkeeper.api.meta import API_VERSION, find_condition, format_time
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.core.builtins.view import View

ROLE_LABEL = 'labels: {rbac.crdkeeper.dev/aggregate-to-rewriter: "true"}'
_NAME_LIMIT = 253


@dataclass(frozen=True, slots=True)
class Known:
    """What the next step depends on, besides the policy."""

    migrations: Sequence[StorageMigration]
    """All StorageMigrations that can be read."""
    missing: Mapping[str, Sequence[str]]
    """By resource: the verbs that the operator lacks to migrate it."""
    now: datetime
    unread: Collection[str] = ()
    """The names of the StorageMigrations that this release cannot read."""


def observed(
    policy: BuiltinPolicy, view: View, selected: Iterable[str], now: datetime
) -> list[BuiltinResource]:
    """The resources with what the view shows of them; due again if that differs from what is recorded."""
    recorded = {each.resource: each for each in policy.status.resources}
    return [_observed(policy, view, name, recorded.get(name), now) for name in sorted(selected)]


def _observed(
    policy: BuiltinPolicy, view: View, name: str, old: BuiltinResource | None, now: datetime
) -> BuiltinResource:
    ways = view.stored[name]
    hashes, configuration = view.hashes(name), view.configuration()
    if configuration is None and old is not None and "," not in (old.encryption_configuration or ""):
        # What cannot be seen now is as it was; but not that servers differ, which would then never end.
        configuration = old.encryption_configuration
    same = old is not None and (
        (old.storage_version_hash, old.encryption_configuration, old.encryption_key)
        == (hashes, configuration, policy.spec.encryption_key)
    )
    if old is not None and same:
        return old.model_copy()
    return BuiltinResource(
        resource=name,
        storage_version=ways[0].version if len(ways) == 1 else "",
        storage_version_hash=hashes,
        encryption_configuration=configuration,
        encryption_key=policy.spec.encryption_key,
        changed_time=now.replace(microsecond=0),
        migrated_time=old.migrated_time if old is not None else None,
        reason="Changed" if old is not None else "NotKnown",
        message="",
    )


def agreed(each: BuiltinResource) -> bool:
    """Whether all API servers that were asked store the resource in the same way."""
    return "," not in each.storage_version_hash and "," not in (each.encryption_configuration or "")


def unsettled_seconds(policy: BuiltinPolicy, each: BuiltinResource, now: datetime) -> float:
    """How long the API servers must still agree before it counts."""
    since = (now - each.changed_time).total_seconds()
    return max(0.0, policy.spec.template.settle_seconds - since)


def migration_name(policy: BuiltinPolicy, each: BuiltinResource) -> str:
    """Unique for the policy object, the mode, and this change; at most 253 characters."""
    about = (
        policy.metadata.uid or "",
        each.resource,
        format_time(each.changed_time),
        each.storage_version_hash,
        each.encryption_configuration or "",
        each.encryption_key,
    )
    digest = sha256("\0".join(about).encode()).hexdigest()[:10]
    suffix = f"-{digest}{'-plan' if policy.spec.mode == 'Plan' else ''}"
    return each.resource[: _NAME_LIMIT - len("builtin-") - len(suffix)].join(("builtin-", suffix))


def judged(
    policy: BuiltinPolicy, resources: Iterable[BuiltinResource], known: Known
) -> list[BuiltinResource]:
    """The resources with their reasons, and with the proof of those that were migrated since their change."""
    by_name = {each.metadata.name: each for each in known.migrations}
    return [_judged(policy, each, by_name, known) for each in resources]


def _judged(
    policy: BuiltinPolicy, each: BuiltinResource, migrations: Mapping[str, StorageMigration], known: Known
) -> BuiltinResource:
    if each.migrated:
        return each
    name = migration_name(policy, each)
    if name in known.unread:
        # Most likely the policy's own, but nobody can tell what it has done. Waiting would be for ever.
        return _with(
            each,
            "NameTaken",
            f"StorageMigration {name} is of another release, and this one cannot read it: delete it.",
        )
    migration = migrations.get(name)
    if migration is not None and not _is_of(migration, policy):
        return _with(
            each, "NameTaken", f"StorageMigration {migration.metadata.name} is not this policy's: delete it."
        )
    if migration is not None and _proves(migration, each):
        return _with(
            each,
            "Migrated",
            f"{migration.metadata.name} has proved that all objects are stored as all API servers do now.",
            migrated=True,
            migrated_time=migration.status.completion_time,
            migration=migration.metadata.name,
        )
    if not agreed(each):
        return _with(
            each,
            "ServersDisagree",
            "The API servers store it differently, as they do during an upgrade or a change of encryption "
            "keys. It is migrated once they agree.",
        )
    if migration is not None:
        succeeded = find_condition(migration.status.conditions, "Succeeded")
        return _with(
            each,
            succeeded.reason if succeeded is not None else "Pending",
            succeeded.message if succeeded is not None else "",
            migration=migration.metadata.name,
        )
    if missing := known.missing.get(each.resource):
        return _with(
            each,
            "Forbidden",
            f"The operator may not {', '.join(missing)} {each.resource}. Add to a ClusterRole with the "
            f"{ROLE_LABEL}: {rule(each.resource)}",
        )
    if unsettled_seconds(policy, each, known.now):
        return _with(
            each,
            "Settling",
            f"Its migration begins once the API servers agree for {policy.spec.template.settle_seconds} s.",
        )
    if other := _others(each, policy, known.migrations):
        return _with(each, "AnotherMigration", f"StorageMigration {other} of the resource has not ended.")
    return _with(each, "Waiting", "Waiting for its turn.")


def _with(each: BuiltinResource, reason: str, message: str, **changes: Any) -> BuiltinResource:
    return BuiltinResource.model_validate(
        {**dict(each), "reason": reason, "message": message, "migration": "", **changes}
    )


def rule(resource: str) -> str:
    """The rule of a ClusterRole that lets the operator migrate a resource, as YAML."""
    plural, _, group = resource.partition(".")
    return f'{{apiGroups: ["{group}"], resources: [{plural}], verbs: [get, list, patch]}}'


def _is_of(migration: StorageMigration, policy: BuiltinPolicy) -> bool:
    return any(each.uid == policy.metadata.uid for each in migration.metadata.owner_references)


def _succeeded(migration: StorageMigration) -> bool:
    succeeded = find_condition(migration.status.conditions, "Succeeded")
    executed = migration.spec.mode == "Execute"
    return executed and succeeded is not None and succeeded.status == "True"


def _proves(migration: StorageMigration, each: BuiltinResource) -> bool:
    target = migration.status.target
    return (
        _succeeded(migration)
        and str(migration.spec.resource) == each.resource
        and target is not None
        and target.storage_version_hash == each.storage_version_hash
    )


def _others(each: BuiltinResource, policy: BuiltinPolicy, migrations: Iterable[StorageMigration]) -> str:
    """An unfinished migration of the resource that was not created for this change."""
    mode = "Plan" if policy.spec.mode == "Plan" else "Execute"
    return next(
        (
            other.metadata.name
            for other in migrations
            if str(other.spec.resource) == each.resource
            and other.spec.mode == mode
            and other.status.completion_time is None
            and not _is_of(other, policy)
        ),
        "",
    )


def in_progress(
    policies: Collection[BuiltinPolicy], migrations: Iterable[StorageMigration]
) -> list[StorageMigration]:
    """The policies' migrations that make progress; not those that wait for a person."""
    owners = {each.metadata.uid for each in policies}
    return [
        each
        for each in migrations
        if each.status.completion_time is None
        and any(owner.uid in owners for owner in each.metadata.owner_references)
        and not is_failing(each)
    ]


def is_failing(migration: StorageMigration) -> bool:
    """Whether it cannot succeed until a person does something, as far as it knows."""
    succeeded = find_condition(migration.status.conditions, "Succeeded")
    return (succeeded is not None and succeeded.status == "False") or migration.spec.suspend


def superseded(
    policy: BuiltinPolicy, resources: Iterable[BuiltinResource], migrations: Iterable[StorageMigration]
) -> list[StorageMigration]:
    """The policy's migrations to delete: those for a change that another one followed, and false proofs.

    A false proof is of another storage version: an API server that differs has escaped every look.
    """
    current = {migration_name(policy, each): each for each in resources}
    found = []
    for each in migrations:
        about = current.get(each.metadata.name)
        if not _is_of(each, policy):
            continue
        if about is None:
            obsolete = each.status.completion_time is None
        else:
            obsolete = not about.migrated and _succeeded(each) and not _proves(each, about)
        if obsolete:
            found.append(each)
    return found


def next_migration(policy: BuiltinPolicy, resources: Iterable[BuiltinResource]) -> dict[str, Any] | None:
    """The migration to create now, if no other is in progress; None if no resource is ready for one."""
    each = next((each for each in resources if each.reason == "Waiting"), None)
    if each is None:
        return None
    plural, _, group = each.resource.partition(".")
    return {
        "apiVersion": API_VERSION,
        "kind": StorageMigration.model_fields["kind"].default,
        "metadata": {
            "name": migration_name(policy, each),
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": policy.kind,
                    "name": policy.metadata.name,
                    "uid": policy.metadata.uid,
                }
            ],
        },
        "spec": {
            **policy.spec.template.to_object(),
            "resource": {"group": group, "resource": plural},
            "mode": "Plan" if policy.spec.mode == "Plan" else "Execute",
        },
    }
