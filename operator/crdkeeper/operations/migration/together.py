"""Several migrations by one command: they wait side by side, and write one after the other.

A wait costs the API server next to nothing, so that all resources settle in the time of one. Writing is
different: one resource at a time may use all that the limits of the command allow, so they are the limits of
all together, and the API server has no more to do than for one resource.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.resources.kinds import list_migrations_of
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.migration.request import Request
from crdkeeper.operations.migration.rights import LIST_MIGRATIONS
from crdkeeper.operations.migration.spacing import APART_SECONDS
from crdkeeper.operations.migration.standalone import Standalone
from crdkeeper.operations.migration.waiting import end
from crdkeeper.operations.rights import explained


@dataclass(slots=True)
class Attempt:
    """One of the migrations; `trouble` is why it could not be tried to its end."""

    work: Standalone
    ended: bool = False
    trouble: Exception | None = None


@dataclass(slots=True)
class Together:
    """Migrations for some requests. `say` and `over` get the request that it is about.

    What happens to one of them does not stop the others.
    """

    client: Client
    requests: Sequence[Request]
    watch: Callable[[StorageMigration], None]
    say: Callable[[Request, str], None]
    over: Callable[[Attempt], None]
    identity: str = ""
    """Of this process, if it shares a migration with others."""
    attempts: list[Attempt] = field(default_factory=list, init=False)
    """The state of each, in the order of the requests, also after an interruption."""

    async def run(self) -> None:
        """Run all, at least one, to their ends.

        Raises NotPermitted, ApiError or Unreachable if none can begin.
        """
        writing = asyncio.Semaphore(1)
        self.attempts = [
            Attempt(
                Standalone(
                    self.client,
                    each,
                    self.watch,
                    partial(self.say, each),
                    slots=writing,
                    apart=APART_SECONDS * len(self.requests),
                    identity=self.identity,
                )
            )
            for each in self.requests
        ]
        if len(self.attempts) > 1 and not all(each.dry_run for each in self.requests):
            # Once, and not for each: there may be as many as there are requests.
            unread: set[str] = set()
            async with explained(self.client, [LIST_MIGRATIONS]):
                existing = await list_migrations_of(self.client, unread=unread)
            for attempt in self.attempts:
                attempt.work.existing, attempt.work.unread = existing, unread
        tasks = [asyncio.create_task(self._try(*each)) for each in enumerate(self.attempts)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await end(*tasks)

    async def _try(self, number: int, attempt: Attempt) -> None:
        await asyncio.sleep(number * APART_SECONDS)
        try:
            await attempt.work.run()
        except Exception as error:
            # Whatever it is, such as an object that a newer release has written.
            attempt.trouble = error
        attempt.ended = True
        self.over(attempt)
