"""The one migration of a CRD that tells how the rewriting of its objects goes, for reports and policies.

Old ones stay in the cluster, so that one that failed long ago must not count for ever.
"""

from collections.abc import Iterable

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts


def decisive_migration(
    definition: DefinitionFacts, migrations: Iterable[StorageMigration]
) -> StorageMigration | None:
    """The newest unfinished one, else the last one if it failed; `migrations` are those of one mode.

    One that is unfinished goes on with a CRD that was re-created; what ended before is not about that.
    """
    known = list(migrations)
    unfinished = [each for each in known if each.status.completion_time is None]
    if unfinished:
        return max(unfinished, key=_age_key)
    ended = [each for each in known if _is_about(definition, each)]
    last = max(ended, key=lambda each: (each.status.completion_time, _age_key(each)), default=None)
    return last if last is not None and is_failing(last) else None


def is_failing(migration: StorageMigration) -> bool:
    """Whether it has not succeeded, for good or so far."""
    succeeded = find_condition(migration.status.conditions, "Succeeded")
    return succeeded is not None and succeeded.status == "False"


def _is_about(definition: DefinitionFacts, migration: StorageMigration) -> bool:
    target = migration.status.target
    return target is not None and target.uid == definition.uid


def _age_key(migration: StorageMigration) -> tuple[str, str]:
    created = migration.metadata.creation_timestamp
    return (created.isoformat() if created else "", migration.metadata.name)
