"""VersionRetirements: gathers, decides, reports, and makes the one change that is due.

The status is written before the change: a change that nobody was told of cannot happen, and whoever is killed
in between finds the same change due again. Each status names the resourceVersion that was read, so that a
former leader cannot overwrite what its successor has found. Where the status stays, the retirement is read
again before the change: it may have been suspended during the look.
"""

import logging
from collections.abc import Collection, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import put_status
from crdkeeper.cluster.resources.retirements import get_retirement
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.retirement.facts import RetirementFacts, State, TakenEvidence
from crdkeeper.core.retirement.holds import as_told
from crdkeeper.core.retirement.standing import report
from crdkeeper.core.retirement.steps import Decision, decide, unmade
from crdkeeper.operations.retirement.run import count, due_time, look, take_step

_log = logging.getLogger(__name__)
_SOON = 1.0
"""Seconds until another look after a change, or after another client was faster."""
_REFUSED = 30.0
"""Seconds until a refused change is tried again, and one that others have prevented many times."""
_PROGRESS = 10.0
"""Seconds until another look if a migration made progress, which it stores several times a second."""
_TOLD = timedelta(minutes=1)
"""How long the hold of a webhook keeps its text: each change of a status leads to another look at once."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a change could not be made. It is not tried again before `until`, whatever is seen meanwhile."""

    why: State
    """Unknown if another client has changed the CRD."""
    generation: int
    doing: str
    """The reason of Ready with which it was tried."""
    seconds: float
    until: datetime

    def concerns(self, owner: VersionRetirement, decision: Decision) -> bool:
        """Whether it is about the change that the decision makes, at once or after another count."""
        now = owner.metadata.generation, decision.ready.reason
        return now == (self.generation, self.doing)


class VersionRetirements:
    """Reconciles all VersionRetirements."""

    def __init__(
        self, client: Client, state: ClusterState, metrics: OperatorMetrics, *, identity: str
    ) -> None:
        self._client = client
        self._state = state
        self._metrics = metrics
        self._identity = identity
        self._taken: dict[str, TakenEvidence] = {}
        """The latest evidence by the retirement's uid. Gathered again after a restart."""
        self._refusals: dict[str, _Refusal] = {}
        """By the retirement's uid."""
        self._told: dict[str, datetime] = {}
        """When the text of such a hold last changed, by the retirement's uid."""
        self._stages: dict[str, Collection[tuple[object, ...]]] = {}
        """How far the migrations of a resource were when one of them was last seen."""
        self._counted: dict[str, tuple[str, str]] = {}
        """The status and reason of Ready, by name."""
        self.queue = WorkQueue(self._reconcile, workers=2)
        state.listen(self._saw)

    def _saw(self, kind: str, name: str) -> None:
        if kind == VersionRetirement.plural:
            self.queue.add(name)
        elif kind in ("definitions", "migrated"):
            concerned = [
                each.metadata.name
                for each in self._state.of(VersionRetirement).values()
                if str(each.spec.resource) == name
            ]
            goes_on = bool(concerned) and kind == "migrated" and not self._staged(name)
            for each in concerned:
                if goes_on:
                    self.queue.add_within(each, _PROGRESS)
                else:
                    self.queue.add(each)

    def _staged(self, resource: str) -> bool:
        """Whether a migration has come, gone, or changed in more than its progress since this was asked."""
        stages = {_stage(each) for each in self._state.migrations_of(resource)}
        before, self._stages[resource] = self._stages.get(resource), stages
        return stages != before

    async def _reconcile(self, name: str) -> None:
        try:
            # The watch may lag behind our own status: go on from what is stored.
            owner = await get_retirement(self._client, name)
        except ValidationError:
            _log.error("VersionRetirement %s cannot be read and is ignored.", name)
            return
        if owner is None or owner.metadata.deletion_timestamp is not None:
            self._forget(name)
            return
        try:
            wait = await self._pass(owner)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
            wait = _SOON  # the retirement was changed or deleted in the meantime
        self.queue.add_within(name, wait)

    async def _pass(self, owner: VersionRetirement) -> float:
        uid = owner.metadata.uid or ""
        refusal = self._refusals.get(uid)
        if refusal is not None and refusal.why.status == "Unknown":
            # Each change of the CRD by others leads to a pass: without a pause, to a look after the other.
            left = (refusal.until - self._client.now()).total_seconds()
            if left > 0 and refusal.generation == owner.metadata.generation:
                return left
        facts = await self._look(owner)
        decision = decide(owner, facts)
        if decision.count:
            if await self._save(owner, facts, self._shown(owner, decision)):
                return 0.0
            taken = await count(self._client, owner, facts)
            if taken is not None:
                self._taken[uid] = taken
            facts = await self._look(owner)
            decision = decide(owner, facts)
        if await self._save(owner, facts, self._shown(owner, decision)):
            # Change nothing on a status that is not stored: the next pass has it.
            return 0.0
        if not decision.act:
            return due_time(decision, self._client.now())
        refusal = self._refusals.get(uid)
        if refusal is not None and refusal.until > self._client.now():
            return (refusal.until - self._client.now()).total_seconds()
        if not await self._is_current(owner):
            return 0.0
        made = await take_step(self._client, owner, facts, decision)
        if isinstance(made, RetirementFacts):
            _log.info("VersionRetirement %s: %s", owner.metadata.name, decision.ready.message)
            # By the API server's answer: the next look may find that somebody has already taken it back.
            await self._save(owner, made, decide(owner, made))
            return _SOON
        seconds = _REFUSED
        if made.status == "Unknown":
            again = refusal is not None and refusal.why.status == "Unknown"
            seconds = min(2 * refusal.seconds, _REFUSED) if refusal is not None and again else _SOON
        until = self._client.now() + timedelta(seconds=seconds)
        doing = decision.ready.reason
        self._refusals[uid] = _Refusal(made, owner.metadata.generation, doing, seconds, until)
        await self._save(owner, facts, unmade(decision, made))
        return seconds

    async def _look(self, owner: VersionRetirement) -> RetirementFacts:
        uid = owner.metadata.uid or ""
        facts = await look(self._client, owner, self._taken.get(uid))
        told = as_told(facts.holds, owner.status.holds)
        if told == facts.holds:
            return facts
        since = self._told.get(uid)
        if since is not None and facts.now - since < _TOLD:
            return replace(facts, holds=told)
        self._told[uid] = facts.now
        return facts

    async def _is_current(self, owner: VersionRetirement) -> bool:
        """Whether the retirement still asks for what was decided: its change is pinned to the CRD only."""
        now = await get_retirement(self._client, owner.metadata.name)
        then = owner.metadata
        return now is not None and (now.metadata.uid, now.metadata.generation) == (then.uid, then.generation)

    def _shown(self, owner: VersionRetirement, decision: Decision) -> Decision:
        """What to report: a change that was refused stays so until it is made.

        Otherwise each status would lead to the next pass, and nobody could wait for one of them.
        """
        uid = owner.metadata.uid or ""
        refusal = self._refusals.get(uid)
        if refusal is None:
            return decision
        if refusal.concerns(owner, decision):
            return unmade(decision, refusal.why)
        if not decision.count:
            del self._refusals[uid]
        return decision

    async def _save(self, owner: VersionRetirement, facts: RetirementFacts, decision: Decision) -> bool:
        """Report the decision. Returns whether that changed the status. Raises ApiError."""
        before = owner.status.to_object()
        news = report(owner, facts, decision)
        self._count(owner.metadata.name, (decision.ready.status, decision.ready.reason))
        if owner.status.to_object() == before:
            return False
        stored = await put_status(self._client, owner, resource_version=owner.metadata.resource_version)
        owner.metadata.resource_version = stored["metadata"]["resourceVersion"]
        for each in news:
            _log.info(
                "VersionRetirement %s: %s: %s", owner.metadata.name, each.state.reason, each.state.message
            )
            await send_event(
                self._client,
                owner,
                "Warning" if each.warning else "Normal",
                each.state.reason,
                each.state.message,
                instance=self._identity,
            )
        return True

    def _forget(self, name: str) -> None:
        self._count(name, None)
        left = self._state.of(VersionRetirement).values()
        resources = {str(each.spec.resource) for each in left}
        self._stages = {name: stages for name, stages in self._stages.items() if name in resources}
        known = {each.metadata.uid for each in left}
        self._taken = {uid: taken for uid, taken in self._taken.items() if uid in known}
        self._refusals = {uid: refusal for uid, refusal in self._refusals.items() if uid in known}
        self._told = {uid: since for uid, since in self._told.items() if uid in known}

    def _count(self, name: str, reported: tuple[str, str] | None) -> None:
        before = self._counted.pop(name, None)
        if before is not None:
            self._metrics.retirements.labels(*before).dec()
        if reported is not None:
            self._counted[name] = reported
            self._metrics.retirements.labels(*reported).inc()


def _stage(migration: StorageMigration) -> tuple[object, ...]:
    metadata, status = migration.metadata, migration.status
    succeeded = find_condition(status.conditions, "Succeeded")
    return (
        metadata.uid,
        metadata.deletion_timestamp,
        migration.spec.suspend,
        status.completion_time,
        None if succeeded is None else (succeeded.status, succeeded.reason),
    )


def begin_retirements(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the VersionRetirement controller."""
    retirements = VersionRetirements(
        context.client, context.state, context.metrics, identity=context.identity
    )
    return retirements.queue.run()
