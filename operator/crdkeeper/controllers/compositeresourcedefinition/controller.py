"""CompositeResourceDefinitions: gathers what is known of one, takes the next step, and writes its status."""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import ObjectMeta
from crdkeeper.cluster.resources.composites import get_composite_definition, set_finalizers
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.composing import ComposingRights
from crdkeeper.controllers.compositeresourcedefinition.compositions import SeenCompositions
from crdkeeper.controllers.compositeresourcedefinition.counting import CompositeCounts
from crdkeeper.controllers.compositeresourcedefinition.crds import CRDs
from crdkeeper.controllers.compositeresourcedefinition.deleting import CompositeDeletions
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Repeated, Sent
from crdkeeper.controllers.compositeresourcedefinition.fencing import Fences
from crdkeeper.controllers.compositeresourcedefinition.judging import Judging
from crdkeeper.controllers.compositeresourcedefinition.leftapis import LeftAPIs
from crdkeeper.controllers.compositeresourcedefinition.metrics import CompositeMetrics
from crdkeeper.controllers.compositeresourcedefinition.migrations import Migrations, known_migrations
from crdkeeper.controllers.compositeresourcedefinition.pauses import (
    AGAIN_SECONDS,
    REFUSED_SECONDS,
    RIGHTS_SECONDS,
    may_go_soon,
    pause_after,
)
from crdkeeper.controllers.compositeresourcedefinition.races import Races
from crdkeeper.controllers.compositeresourcedefinition.refusing import (
    Trouble,
    refusal_of,
    refusal_of_reading,
)
from crdkeeper.controllers.compositeresourcedefinition.revisionuses import RevisionUses
from crdkeeper.controllers.compositeresourcedefinition.statuses import Statuses
from crdkeeper.controllers.compositeresourcedefinition.watching import CompositeWatches
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.composer.offering import SeenComposition, is_composed
from crdkeeper.core.composer.plan import (
    FINALIZER,
    ComposerStep,
    Gathered,
    Plan,
    keeps_crd,
    plan,
    unclaimed,
)
from crdkeeper.core.composer.remedies import advised, endangered, is_final, unreleased
from crdkeeper.core.composer.standing import standing, standing_unread
from crdkeeper.core.diagnosis.nameconflicts import NameConflict, find_conflicts, name_claims
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.migration.pace import backoff

_PERMANENT = frozenset((400, 403, 422))
"""Refused again, unless the definition, rights or somebody's admission webhook change."""
_WORKERS = 16
"""Those of definitions whose composites take long to count must leave others free."""
_GATHERING_SECONDS = 0.25
"""Many composites that come or go lead to one count."""


class CompositeDefinitions:
    """Reconciles each definition whenever it, its CRD, its composites or a Composition change."""

    def __init__(
        self, client: Client, state: ClusterState, metrics: CompositeMetrics, *, identity: str, settle: float
    ) -> None:
        """`settle` is how many seconds an API refuses new composites before it is deleted."""
        self._client = client
        self._state = state
        self._metrics = metrics
        self._seen: dict[str, ObjectMeta] = {}
        self._races, self._claim_races = Races(), Races()
        """Of steps, and of the claims before them: one that works says nothing about the other."""
        self._looks: Counter[str] = Counter()
        """By definition: how often in a row its CRD was found in deletion, and the composites were not."""
        self.queue = WorkQueue(self._reconcile, _WORKERS)
        self._dues = Dues()
        self._rights = KnownRights(client)
        self._composing = ComposingRights(self._rights)
        self._statuses = Statuses(client, self._dues, metrics, identity)
        self._crds = CRDs(client, self._dues)
        self._fences = Fences(client, self._dues, settle)
        self._left = LeftAPIs(client, identity)
        self._migrations = Migrations(client, self._dues)
        self._judging = Judging(client, self._changed)
        self._uses = RevisionUses(client)
        self._deletions = CompositeDeletions(client, self._dues, self.queue.add)
        self._watches = CompositeWatches(client, self._changed, self._dues)
        self._counts = CompositeCounts(client, self._rights, self._watches, self._dues)
        self._compositions = SeenCompositions(client, self._composition_changed)
        state.listen(self._saw)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._watches.begin(group)
            group.create_task(self._compositions.follow())
            group.create_task(self._work())

    async def _work(self) -> None:
        # Before that, each definition would seem to have none.
        await self._compositions.loaded.wait()
        await self.queue.run()

    # What changed, and which definitions it affects

    def _saw(self, kind: str, name: str) -> None:
        known = self._state.of(CompositeResourceDefinition)
        if kind == CompositeResourceDefinition.plural:
            self._definition_changed(name, known.get(name))
        elif kind in ("conversions", "migrated"):
            # Both name the CRD.
            if name in known:
                self._changed(name)
        elif kind == "composing":
            for each in (name,) if name else known:
                self._composing.doubt(each)
                self._changed(each)
        elif kind == "definitions":
            seen = self._state.seen.get(name)
            if seen is None:
                self._left.forget(name)
            # One without its definition may have been left in the middle of a deletion.
            if name in known or (seen is not None and seen.definition_uid):
                self.queue.add(name)
            # Another CRD may have freed a name, or be the one that has it.
            group = name.partition(".")[2]
            for each in known:
                if each != name and each.partition(".")[2] == group and self._wants_names(each):
                    self.queue.add_within(each, _GATHERING_SECONDS)

    def _definition_changed(self, name: str, definition: CompositeResourceDefinition | None) -> None:
        before = self._seen.pop(name, None)
        if definition is not None:
            self._seen[name] = definition.metadata.model_copy(update={"resource_version": None})
        if before is None or self._seen.get(name) != before:
            self.queue.add(name)
        elif definition is not None and not self._statuses.has_written(definition):
            # Only the status, by somebody else: this must not end the backoff.
            self.queue.add_within(name, REFUSED_SECONDS)

    def _changed(self, name: str) -> None:
        self.queue.add_within(name, _GATHERING_SECONDS)

    def _composition_changed(self, seen: SeenComposition | None) -> None:
        """A Composition; None if it may be any of them."""
        for name, each in self._state.of(CompositeResourceDefinition).items():
            spec = each.spec
            named = {
                each.name for each in (spec.enforced_composition_ref, spec.default_composition_ref) if each
            }
            of = (spec.group, spec.names.kind)
            if seen is None or seen.name in named or (seen.group, seen.kind) == of:
                self._changed(name)

    def _wants_names(self, name: str) -> bool:
        seen = self._state.seen.get(name)
        condition = seen.condition("NamesAccepted") if seen is not None else None
        return condition is not None and condition.status == "False"

    # Gather, plan, apply

    async def _reconcile(self, name: str) -> None:
        if wait := self._deletions.wait(name, self._seen.get(name)):
            self.queue.add_within(name, wait)
            return
        await self._look(name)
        self._deletions.looked(name)

    async def _look(self, name: str) -> None:
        began = time.monotonic()
        try:
            found = await get_composite_definition(self._client, name)
        except ApiError as error:
            seen = self._state.of(CompositeResourceDefinition).get(name)
            if error.code != 403 or seen is None:
                raise
            await self._cannot_read(seen, error)
            return
        if found is None:
            self._forget(name)
            if (pause := await self._left.open(name)) is not None:
                self.queue.add_within(name, pause)
            return
        self._left.forget(name)
        definition = CompositeResourceDefinition.model_validate(found)
        try:
            gathered = await self._gather(found, definition)
        except (ApiError, Unreachable) as error:
            await self._cannot_read(definition, error)
            return
        planned = self._fences.paced(gathered, self._crds.paced(gathered, plan(gathered)))
        if definition.metadata.deletion_timestamp is None or definition.spec.deletion != "Cascade":
            self._deletions.forget(name)
        try:
            decided, failure = await self._take(gathered, planned)
        except Repeated:
            self.queue.add_within(name, self._dues.left(name) or 0.0)
            return
        if decided.step is ComposerStep.REMOVE_FINALIZER:
            self._forget(name)
            return
        if decided.step is ComposerStep.APPLY:
            gathered, failure = await self._migrations.create(gathered)
        await self._statuses.write(gathered.definition, standing(gathered, decided, self._client.now()))
        self._metrics.seconds.observe(time.monotonic() - began)
        again = self._dues.left(name)
        if failure is not None and again is None:
            raise failure
        # A change that was heard meanwhile is due earlier, and must not be put off.
        pause = self._pause(gathered, planned, decided)
        self.queue.add_within(name, pause if again is None else min(again, pause))

    def _pause(self, gathered: Gathered, planned: Plan, decided: Plan) -> float:
        """Seconds until the next look, if no event comes before and no request has to be repeated."""
        name = gathered.definition.metadata.name
        if planned.step is ComposerStep.DELETE_COMPOSITES:
            return self._deletions.pause(name) or AGAIN_SECONDS
        if decided.step in (ComposerStep.FENCE, ComposerStep.SETTLE):
            return self._fences.left(name)
        if not may_go_soon(gathered):
            del self._looks[name]
            return pause_after(gathered, decided)
        self._looks[name] += 1
        return backoff(self._looks[name] - 1, AGAIN_SECONDS, REFUSED_SECONDS)

    def _forget(self, name: str) -> None:
        self._dues.forget(name)
        self._crds.forget(name)
        self._fences.forget(name)
        self._deletions.forget(name)
        self._judging.forget(name)
        self._uses.forget(name)
        self._watches.stop(name)
        self._counts.forget(name)
        self._composing.forget(name)
        self._metrics.forget(name)
        self._races.end(name)
        self._claim_races.end(name)
        del self._looks[name]
        self._statuses.forget(name)

    async def _cannot_read(self, definition: CompositeResourceDefinition, error: Trouble) -> None:
        """Say so. Raises the error if the request may succeed soon."""
        refusal = await refusal_of_reading(self._rights, error)
        composed = is_composed(definition, self._compositions.all())
        known = self._composing.known(definition) if composed else None
        now, denied = self._client.now(), known or self._uncomposed(definition)
        status = standing_unread(definition, refusal, self._compositions.all(), denied, now)
        await self._statuses.write(definition, status)
        if isinstance(error, Unreachable) or error.code not in _PERMANENT:
            raise error
        self.queue.add_within(definition.metadata.name, RIGHTS_SECONDS)

    async def _take(self, gathered: Gathered, decided: Plan) -> tuple[Plan, Trouble | None]:
        """Carry out the step. If it is refused: what to say instead, and the error if it may succeed soon.

        Raises ApiError if the step was decided on what has changed since; Repeated if that is known already.
        """
        error = await self._claim(gathered, decided)
        taken, failure = await self._take_claimed(gathered, decided)
        if error is not None:
            taken = unclaimed(taken, await refusal_of(self._rights, gathered, ComposerStep.CLAIM_CRD, error))
        return taken, failure

    async def _claim(self, gathered: Gathered, decided: Plan) -> Trouble | None:
        """Claim a CRD that a deletion keeps for now; what prevents that holds up nothing else."""
        if gathered.live is None or not keeps_crd(gathered, decided):
            return None
        name = gathered.definition.metadata.name
        try:
            await self._crds.claim(gathered.definition, gathered.live)
        except (ApiError, Unreachable) as error:
            return None if self._claim_races.is_race(name, error) else error
        self._claim_races.end(name)
        return None

    async def _take_claimed(self, gathered: Gathered, decided: Plan) -> tuple[Plan, Trouble | None]:
        name, step, live = gathered.definition.metadata.name, decided.step, gathered.live
        try:
            if live is not None and step in (ComposerStep.DELETE_COMPOSITES, ComposerStep.FENCE):
                step = ComposerStep.TRY_DELETION
                await self._crds.try_deletion(gathered.definition, live)
                step = decided.step
            await self._carry_out(gathered, decided)
        except (ApiError, Unreachable) as error:
            if self._races.is_race(name, error):
                raise
            refusal = await refusal_of(self._rights, gathered, step, error)
            if step is ComposerStep.RELEASE_CRD and is_final(refusal):
                if not self._crds.may_be_deleted(gathered.definition, gathered.live):
                    return await self._leave(gathered, refusal)
                refusal = endangered(refusal)
            if live is not None:
                refusal = advised(step, refusal, live)
            code = error.code if isinstance(error, ApiError) else 0
            paced = code in _PERMANENT or decided.step is ComposerStep.DELETE_COMPOSITES
            return Plan(ComposerStep.NOTHING, refusal), None if paced else error
        self._races.end(name)
        return self._crds.paced(gathered, decided), None

    async def _leave(self, gathered: Gathered, refusal: Verdict) -> tuple[Plan, Trouble | None]:
        """Orphan, although somebody refuses that the CRD is released."""
        taken, failure = await self._take_claimed(gathered, Plan(ComposerStep.REMOVE_FINALIZER))
        if taken.step is ComposerStep.REMOVE_FINALIZER:
            await self._statuses.warn(gathered.definition, "CRDNotReleased", unreleased(refusal))
        return taken, failure

    async def _gather(self, found: dict[str, Any], definition: CompositeResourceDefinition) -> Gathered:
        live = await get_definition_object(self._client, definition.metadata.name)
        # Before they are counted: one that was created before the fence may come until then.
        settled = self._fences.has_settled(live)
        compositions = self._compositions.all()
        composed = is_composed(definition, compositions)
        counted = await self._counts.of(definition, live, composed=composed)
        denied = await self._composing.denied(definition) if composed else None
        denied = denied or self._uncomposed(definition)
        rest = partial(self._crds.rest, definition)
        accepted, facts = await self._judging.of(found, definition, live, counted.number, rest)
        uses = await self._uses.of(definition, live, counted.number)
        return Gathered(
            definition,
            accepted,
            live,
            counted.number,
            settled,
            first=counted.first,
            hidden=counted.hidden,
            waiting=counted.waiting,
            conflicts=self._conflicts(live),
            compositions=compositions,
            denied=denied,
            facts=replace(facts, migrations=known_migrations(self._state, definition, live), revisions=uses),
        )

    def _uncomposed(self, definition: CompositeResourceDefinition) -> Verdict | None:
        """Why composites are not composed, as far as that was found out when they were to be."""
        known = self._state.uncomposed
        return known.get(definition.metadata.name) or known.get("")

    def _conflicts(self, live: Mapping[str, Any] | None) -> tuple[NameConflict, ...]:
        if live is None or not self._wants_names(live["metadata"]["name"]):
            return ()
        return find_conflicts(name_claims(live), [each.claims for each in self._state.seen.values()])

    async def _carry_out(self, gathered: Gathered, decided: Plan) -> None:
        definition, live = gathered.definition, gathered.live
        wrote = ""
        match decided.step:
            case ComposerStep.ADD_FINALIZER:
                await self._set_finalizers(definition, [*definition.metadata.finalizers, FINALIZER])
                wrote = "finalizer"
            case ComposerStep.APPLY if gathered.judged.crd is not None:
                changed = await self._crds.apply(
                    definition, gathered.judged.crd, live, decided.held, gathered.facts.rest
                )
                wrote = "crd" if changed else ""
            case ComposerStep.DELETE_COMPOSITES if live is not None:
                wrote = "composites" if await self._deletions.delete(definition, live) else ""
            case ComposerStep.FENCE | ComposerStep.UNFENCE as step if live is not None:
                await self._fences.change(step, definition, live)
                wrote = "crd"
            case ComposerStep.DELETE_CRD if live is not None:
                await self._crds.delete(definition, live)
                wrote = "crd"
            case ComposerStep.RELEASE_CRD if live is not None:
                await self._crds.release(definition, live)
                wrote = "crd"
            case ComposerStep.REMOVE_FINALIZER:
                left = [each for each in definition.metadata.finalizers if each != FINALIZER]
                await self._set_finalizers(definition, left)
                wrote = "finalizer"
        if wrote:
            self._metrics.writes.labels(wrote).inc()

    async def _set_finalizers(self, definition: CompositeResourceDefinition, wanted: Sequence[str]) -> None:
        metadata = definition.metadata
        key = metadata.uid, metadata.generation, *wanted
        send = partial(set_finalizers, self._client, definition, wanted)
        await self._dues.send(metadata.name, Sent.FINALIZER, key, send)


def begin_composite_definitions(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the controller."""
    metrics = CompositeMetrics(context.metrics.registry, context.metrics.composer_writes)
    known = context.client, context.state, metrics
    return CompositeDefinitions(*known, identity=context.identity, settle=context.settle_seconds).run()
