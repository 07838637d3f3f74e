"""Migrations by `crdkeeper migrate`, mostly with the account of the sample Job."""

import re
from collections.abc import Callable
from pathlib import Path

from crdkeeper.api.meta import CLI
from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.cli.commandline import Command, CommandLine
from tests.cluster.harness import Admin, CustomKind
from tests.cluster.harness.admin import MIGRATIONS

QUICK = ("--settle-seconds=1", "--ignore-api-server-leases")
SLOW = 3
"""Objects per second: a run over hundreds lasts longer than anything that a test does meanwhile, such as to
start other commands on a busy machine. A test need not wait so long: it ends the run, or makes it fast."""
FAST = 1000


Shells = Callable[[Path], CommandLine]


async def migrations(admin: Admin, group: str) -> list[StorageMigration]:
    """The StorageMigrations of a group, sorted by name."""
    items = (await admin.get(MIGRATIONS))["items"]
    found = [StorageMigration.model_validate(each) for each in items]
    return [each for each in found if each.spec.resource.group == group]


def drawn(command: Command) -> str:
    """All that was ever drawn on a command's terminal, without what moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", command.stderr)


async def begun_slowly(admin: Admin, kind: CustomKind) -> str:
    """A migration for a command to resume, whose pace an admin can change; returns its name."""
    limits = {"maxObjectsPerSecond": SLOW}
    made = await admin.create_migration(f"{kind.name}-cli", kind, managedBy=CLI, limits=limits)
    return made.metadata.name


async def until_under_way(admin: Admin, command: Command, kind: CustomKind) -> StorageMigration:
    """The command's migration when some of the objects are rewritten, according to etcd and the status."""
    await command.until(lambda: admin.stored(kind).get("v2", 0) > 0)
    return await admin.wait_for_migration(
        f"{kind.name}-cli", lambda made: made.status.progress.rewritten > 0, "under way"
    )
