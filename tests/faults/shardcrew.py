"""The processes of one run of `crdkeeper migrate --shards`."""

from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.cli.commandline import Command, CommandLine
from tests.cluster.harness import Admin, CustomKind

SHARDS = 3


class Crew:
    """The processes of one run."""

    def __init__(self, shell: CommandLine, kind: CustomKind, *options: str) -> None:
        self._shell = shell
        self.name = f"shared-{kind.group.partition('.')[0]}"
        """Of the StorageMigration."""
        self._command = ("migrate", kind.name, f"--name={self.name}", f"--shards={SHARDS}", *options)
        self.all: list[Command] = []
        """Every process that was started, also those that were killed."""
        self.alive: list[Command] = []

    def start(self, index: int) -> Command:
        """Starts the process of one index."""
        command = self._shell.start(*self._command, f"--shard={index}")
        self.all.append(command)
        self.alive.append(command)
        return command

    async def end(self, seconds: float) -> None:
        """Fails unless all processes that live end with success."""
        for each in self.alive:
            done = await each.done(seconds=seconds)
            assert done.exit_code == 0, done.stderr
            assert "proved to be stored at the storage version" in done.stdout

    async def under_way(self, admin: Admin) -> StorageMigration:
        """The migration when all parts are being worked on, and something of each is written."""

        def begun(made: StorageMigration) -> bool:
            shards = made.status.shards
            return (
                shards is not None
                and bool(shards.coordinator.holder)
                and all(each.holder and each.rewritten for each in shards.parts)
            )

        return await admin.wait_for_migration(self.name, begun, "under way in all parts")
