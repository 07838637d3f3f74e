"""A retirement without the operator: the same decisions and changes, and nothing kept but the CRD.

The quiet period begins with the last change of spec.versions, and begins again with each later write. What an
API server counted before this process began cannot be compared, so earlier requests do not count, unless an
audit log has them; those during its life do.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from crdkeeper.api.meta import ObjectMeta
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import (
    MIGRATED,
    NOT_SERVED,
    VersionRetirement,
    VersionRetirementSpec,
    VersionRetirementStatus,
)
from crdkeeper.cluster.resources.definitions import get_definition_object, patch_definition
from crdkeeper.cluster.resources.kinds import installed
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.retirement.changes import Operation, is_another, pinned, undo
from crdkeeper.core.retirement.facts import RetirementFacts, State, TakenEvidence
from crdkeeper.core.retirement.since import versions_changed_at
from crdkeeper.core.retirement.standing import report
from crdkeeper.core.retirement.steps import Decision, decide, holds_up, unmade
from crdkeeper.operations.migration.standalone import UnknownResource
from crdkeeper.operations.retirement.rights import rights_to_retire
from crdkeeper.operations.retirement.run import (
    FIELD_MANAGER,
    ReadAudit,
    count,
    due_time,
    is_outage,
    look,
    take_step,
)
from crdkeeper.operations.rights import check_rights

_MIGRATABLE: Final = frozenset(("Stored", "NamedByManagers", "Migrating", "MigrationFailing"))
"""Reasons of Migrated under which a migration helps, or an interrupted one goes on."""
_MIGRATIONS: Final = 2
"""Migrations in a row, if somebody writes again what the first one took away."""
_OVERTAKEN: Final = 5
"""Counts in a row that a change of the CRD may make worthless."""
_WAITS: Final = frozenset(("QuietPeriod", "Counting", "Changing"))
"""Reasons of Ready for which time alone is enough."""
_AGAIN_SECONDS: Final = 1.0
_OUTAGE_SECONDS: Final = 60.0
"""Seconds between two attempts at most while the API server does not respond."""


@dataclass(slots=True)
class StandaloneRetirement:
    """One retirement. `migrate` migrates the objects; `say` gets a line for each change.

    `owner` has the latest status, also after an interruption.
    """

    client: Client
    owner: VersionRetirement
    say: Callable[[str], None]
    migrate: Callable[[], Awaitable[str]]
    """Returns why it did not succeed; nothing if it did. Raises UnknownResource if the CRD is gone."""
    audit: ReadAudit | None = None
    _taken: TakenEvidence | None = field(default=None, init=False)
    _failed: int = field(default=0, init=False)
    """Attempts in a row that the API server has not answered."""
    _reviewed: bool = field(default=False, init=False)
    """Whether our account may take all steps that are left."""

    async def plan(self) -> Decision:
        """Look once, with the evidence. Raises ApiError and Unreachable."""
        return (await self._look())[1]

    async def run(self, *, wait: bool) -> Decision:
        """Take all steps that are due, and return where that ends; `wait` waits for the quiet period, too.

        Raises NotPermitted before the first change, if not all steps are allowed, and when a right is
        withdrawn; ApiError and Unreachable: what was done shows in the CRD. With `wait`, an outage of the API
        server is waited for.
        """
        migrations, overtaken, told = 0, 0, ""
        while True:
            try:
                facts, decision = await self._look()
            except (ApiError, Unreachable) as error:
                await self._outlast(error, wait=wait)
                continue
            if not decision.act:
                self._failed = 0
            if decision.count and overtaken < _OVERTAKEN:
                # The CRD changed while its objects were counted.
                overtaken += 1
            elif self._is_to_migrate(decision) and migrations < _MIGRATIONS:
                try:
                    await self._review(decision)
                    failure = await self.migrate()
                except UnknownResource:
                    continue  # the CRD was deleted since the look, which the next one says
                except (ApiError, Unreachable) as error:
                    await self._outlast(error, wait=wait)
                    continue
                self._failed = 0
                if failure:
                    # Not as it stood before: a migration that could be resumed was at work then.
                    return self._ended(facts, unmade(decision, State("False", "MigrationFailed", failure)))
                migrations += 1
                self._taken = None
            elif decision.act and decision.due != MIGRATED:
                try:
                    await self._review(decision)
                    self.say(decision.ready.message)
                    made = await take_step(self.client, self.owner, facts, decision)
                except (ApiError, Unreachable) as error:
                    # It may have been made: the next look shows it.
                    await self._outlast(error, wait=wait)
                    continue
                self._failed = 0
                if isinstance(made, RetirementFacts):
                    # The next look may find that somebody has already taken it back.
                    self._report(made, decide(self.owner, made))
                elif made.status == "Unknown":
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    return self._ended(facts, unmade(decision, made))
            elif decision.settled_at is not None or (wait and _may_end(facts, decision)):
                if decision.ready.message != told:
                    told = decision.ready.message
                    self.say(told)
                await asyncio.sleep(due_time(decision, self.client.now()))
            else:
                return decision

    async def _outlast(self, error: ApiError | Unreachable, *, wait: bool) -> None:
        """Wait for the end of an outage. Raises `error` if there is nothing to wait for."""
        if not wait or not is_outage(error):
            raise error
        if not self._failed:
            self.say(f"The API server does not respond: {error}")
        await asyncio.sleep(backoff(self._failed, _AGAIN_SECONDS, _OUTAGE_SECONDS))
        self._failed += 1

    async def _review(self, decision: Decision) -> None:
        """Raises NotPermitted, before anything is changed, if a later step would not be allowed."""
        if not self._reviewed:
            migrates = not decision.steps[MIGRATED].done
            records = migrates and await installed(self.client, StorageMigration.plural)
            needed = rights_to_retire(self.owner.spec.resource, migrates=migrates, records=records)
            await check_rights(self.client, needed)
            self._reviewed = True

    def _ended(self, facts: RetirementFacts, decision: Decision) -> Decision:
        self._report(facts, decision)
        return decision

    async def _look(self) -> tuple[RetirementFacts, Decision]:
        facts = await self._gather()
        if facts.crd is not None and self.owner.status.quiet_since_time is None:
            since = versions_changed_at(facts.crd)
            # Whoever may write the CRD may write a time to come into its managedFields.
            self.owner.status.quiet_since_time = min(since, facts.now) if since is not None else None
        decision = decide(self.owner, facts)
        if decision.count:
            self._taken = await count(self.client, self.owner, facts, self.audit)
            facts = await self._gather()
            decision = decide(self.owner, facts)
        self._report(facts, decision)
        return facts, decision

    async def _gather(self) -> RetirementFacts:
        facts = await look(self.client, self.owner, self._taken, rights=False)
        # A command has no time to spare: it counts again at once, and gives up if that happens too often.
        return facts if facts.current is not None else replace(facts, taken=None)

    def _report(self, facts: RetirementFacts, decision: Decision) -> None:
        report(self.owner, facts, decision)
        # As an API server would return it: later looks compare with what is stored, to the second.
        self.owner.status = VersionRetirementStatus.model_validate(self.owner.status.to_object())

    def _is_to_migrate(self, decision: Decision) -> bool:
        state = decision.steps[MIGRATED]
        served = not decision.steps[NOT_SERVED].done
        held = any(holds_up(each, MIGRATED) for each in decision.holds)
        left = self.owner.status.reverted is None and not held
        return not served and state.reason in _MIGRATABLE and left


def _may_end(facts: RetirementFacts, decision: Decision) -> bool:
    """Whether a wait may end by itself."""
    reason, taken = decision.ready.reason, facts.current
    uncounted = reason == "NotKnown" and taken is not None and not taken.evidence.forbidden
    return reason in _WAITS or uncounted


def unstored(spec: VersionRetirementSpec) -> VersionRetirement:
    """A retirement that exists in this process only."""
    metadata = ObjectMeta(name=f"{spec.resource}-{spec.version}")
    return VersionRetirement.model_validate({"metadata": metadata, "spec": spec})


async def undo_retirement(client: Client, crd: dict[str, Any], version: str) -> None:
    """Take the steps back if the CRD's spec is still as it was read. Raises ApiError."""
    operations: list[Operation] = undo(crd, version)
    await patch_definition(client, crd["metadata"]["name"], pinned(crd, operations), FIELD_MANAGER)


async def has_changed(client: Client, crd: dict[str, Any], error: ApiError) -> bool:
    """Whether a change was refused because the CRD is not any more as it was read."""
    if error.code == 409:
        return True
    return is_another(crd, await get_definition_object(client, crd["metadata"]["name"]))
