"""What one of several processes says of the migration that they share: its part, the others, who verifies."""

from dataclasses import dataclass

from crdkeeper.api.storagemigration import MigrationShards, StorageMigration
from crdkeeper.cli.migrate.narration import Phase
from crdkeeper.core.migration.sharding import dealt_with, division


@dataclass(frozen=True, slots=True)
class Shared:
    """A shared migration during a pass. `own` is the part of this process, if it works on one."""

    own: Phase | None
    others: str


def shared(migration: StorageMigration, identity: str) -> Shared | None:
    """How the process with that identity takes part in the current pass; None if it shares none now."""
    status = migration.status
    parts = division(status)
    if not identity or status.shards is None or parts is None or status.sweep is None or status.sweep.done:
        return None
    who = _coordinator(status.shards, identity)
    if status.sweep.type != "Rewrite":
        return Shared(None, f"verified {who}")
    others = f"{parts.done} of {parts.count} parts done, {parts.at_work} at work; coordinated {who}"
    return Shared(_own(migration, status.shards, identity), others)


def shared_line(migration: StorageMigration, identity: str) -> str:
    """The same in words, to follow the progress of the whole; empty if there is nothing to say."""
    now = shared(migration, identity)
    if now is None:
        return ""
    if now.own is None:
        return now.others
    return f"here {now.own.name.lower()}: {now.own.done:,} of about {now.own.total:,}; {now.others}"


def _own(migration: StorageMigration, shards: MigrationShards, identity: str) -> Phase | None:
    count = len(shards.parts)
    for index, part in enumerate(shards.parts):
        if part.holder == identity:
            done = dealt_with(part)
            # All parts have about as many objects.
            total = max(1, done, migration.status.progress.total // count)
            return Phase(f"Part {index} of {count}", "", done, total)
    return None


def _coordinator(shards: MigrationShards, identity: str) -> str:
    holder = shards.coordinator.holder
    if not holder:
        return "by nobody now"
    return "by this process" if holder == identity else f"by {holder}"
