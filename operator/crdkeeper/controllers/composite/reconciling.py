"""One pass over one composite: reads what exists, applies wave by wave, removes, and writes the status."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from crdkeeper.cluster.resources.composed import apply_composite_status, get_same, set_finalizers_of
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.deadlines import TooSlow
from crdkeeper.controllers.composite.accounts import Actor, told_instead
from crdkeeper.controllers.composite.acting import Acting
from crdkeeper.controllers.composite.compiling import Compiled
from crdkeeper.controllers.composite.external import ExternalObject
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.passclock import PASS_SECONDS, PassClock
from crdkeeper.controllers.composite.placing import Whereabouts
from crdkeeper.controllers.composite.refusing import NoToken
from crdkeeper.controllers.composite.report import PassPhase, PassReport
from crdkeeper.controllers.composite.room import Share
from crdkeeper.controllers.composite.watching import seen_composite
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.composites.flapping import changer_of
from crdkeeper.core.composites.inventory import Entry, KindKey, listed_entries, with_found
from crdkeeper.core.composites.ownership import FINALIZER, Composite, resource_of
from crdkeeper.core.composites.plan import CompositePlan, plan, plan_deletion
from crdkeeper.core.composites.standing import PassOutcome, changes, conditions_of, status_of, with_inventory
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.mappedstatus import mapped_status
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendered import Rendering, ResourceState
from crdkeeper.core.templates.rendering import render

_CHANGED_SECONDS: Final = 0.5
_UNREADABLE_SECONDS: Final = 5.0
_LASTING: Final = frozenset((reasons.RIGHT_MISSING, reasons.KIND_MISSING))
"""What many composites have in common, for long: looks at it get rarer. A CRD that comes is seen."""
_DELETION_SECONDS: Final = 10.0
"""Between looks at what waits for finalizers: its kind may be one that is not watched any more."""
_ORPHANING_SECONDS: Final = 1.0
_ORPHAN: Final = "orphan"
"""The finalizer by which the garbage collector is asked to leave the objects."""


class CompositePass:
    """The work on one composite, as it was read. `again` is in how many seconds to look again, if at all.

    It is read, and gets its status, at the version of its revision. Its finalizer is written at `home`, the
    version in which composites are stored: managedFields keep the version of such a write, and with it, the
    version of a Composition could not be removed any more.
    """

    def __init__(
        self,
        client: Client,
        served: KindPaths,
        failures: Failures,
        share: Share,
        actor: Actor,
        kind: ServedKind,
        home: ServedKind,
        value: dict[str, Any],
        report: PassReport,
        where: Whereabouts | None = None,
    ) -> None:
        """`client` is for the composite, and `actor` for its objects; `where` shows where these are."""
        self._client = client
        self._report = report
        self._failures = failures
        self._kind = kind
        self._home = home
        self._value = value
        self._composite = Composite.of(value)
        settled = failures.settled(self._composite.uid)
        work = self._composite, settled, share, actor.rights, where
        self._gathering = Gathering(actor.client, served, *work)
        # No method of ours: in a cycle of references, the objects would stay in memory after the pass.
        self._over = PassClock()
        self._acting = Acting(actor.client, self._composite, self._gathering, failures, self._over, report)
        self.again: float | None = None
        self.held = False
        """Whether the composite got its finalizer in this pass."""
        self.overtaken = False
        """Whether others have changed the composite since, so that the pass did not go by what it is now."""
        self.outcome: PassOutcome | None = None
        """What the status says at the end; None while it is not known."""

    async def inspect(self, revision: str, compiled: Compiled | None) -> None:
        """Find out what there is, and what would come next; writes nothing. Raises ApiError and Unreachable.

        `compiled` is the composite's revision; None if it is not known, and so is not to be rendered.
        """
        listed = listed_entries(self._value)
        kinds: frozenset[KindKey] = frozenset()
        keeps, waves = dict[str, bool](), dict[str, int]()
        if compiled is not None:
            kinds, keeps, waves = compiled.kinds, compiled.composition.keeps, compiled.composition.order
        self._gathering.listed = None if self._composite.deleting else listed.keys()
        await self._gathering.read([*sorted(kinds), *_kinds_of(listed)], any_version=True)
        found = self._gathering.found
        listed = with_found(listed, found.objects.values(), keeps, waves)
        rendering: Rendering | None = None
        if compiled is None or self._composite.deleting:
            planned = await self._deletion_round(listed, keeps)
        else:
            rendering, planned = await self._round(compiled, listed)
        # Those of later waves, which are planned only once the ones before are applied.
        await self._gathering.look(
            each.identity for each in planned.inventory if not found.knows(each.identity)
        )
        self.outcome = PassOutcome(revision, planned, found, rendering)

    async def say(self, obstacle: Verdict, *, revision: str = "") -> None:
        """Change nothing but the status. Raises ApiError and Unreachable."""
        await self._write(PassOutcome(revision, obstacle=obstacle))

    async def reconcile(self, compiled: Compiled, unwatched: Verdict | None = None) -> None:
        """Let the objects be as the revision says; `unwatched` is why changes of them may not be seen.

        Raises ApiError and Unreachable.
        """
        listed = listed_entries(self._value)
        self._gathering.listed = self._acting.listed = listed.keys()
        self._acting.changer = changer_of(self._value, FIELD_MANAGER)
        with self._report.phase(PassPhase.GATHER):
            await self._gathering.read(sorted(compiled.kinds))
            await self._gathering.read(_kinds_of(listed), any_version=True, named=True)
        # An API that hangs takes no time from the objects of others.
        self._over.begin()
        # What a lost status does not list would be forgotten as soon as it is in deletion.
        found, known = self._gathering.found, compiled.composition
        found.unlisted = found.objects.keys() - listed.keys()
        listed = with_found(listed, found.objects.values(), known.keeps, known.order)
        rendering, planned = await self._round(compiled, listed)
        while (planned.applies or planned.removals) and not self._over():
            with self._report.phase(PassPhase.APPLY):
                if planned.applies:
                    await self._prepare(compiled, rendering, planned)
                    await self._acting.apply(planned.applies)
                else:
                    await self._acting.remove(planned.removals)
            rendering, planned = await self._round(compiled, listed)
        planned = self._with_failed(planned)
        if unwatched is not None and not planned.problems:
            planned = replace(planned, problems={"": unwatched})
        mapped = mapped_status(rendering, self._value, compiled.schema)
        mapping = bool(rendering.status or rendering.gaps)
        fields = mapped.status if mapping else {}
        unseen = self._gathering.left_out or self._gathering.unseen(compiled.kinds) is not None
        if planned.inventory or found.objects:
            # It may have objects already: under a definition before this one, or a client replaced it since.
            await self._hold()
        elif self._composite.holds and not unseen and not self._over():
            # What cannot be read may have objects that a lost status does not list.
            await self._set_finalizers([each for each in self._finalizers() if each != FINALIZER])
        outcome = PassOutcome(compiled.name, planned, self._gathering.found, rendering, fields, mapped.gaps)
        await self._write(outcome)
        self._schedule(planned)

    async def delete(
        self,
        kinds: Iterable[KindKey],
        keeps: Mapping[str, bool],
        waves: Callable[[Iterable[str]], Awaitable[Mapping[str, int]]],
        own: Mapping[str, bool],
        revision: str,
        without: NoToken | None = None,
    ) -> None:
        """Delete the objects in order, then let the composite go. Raises ApiError and Unreachable.

        `kinds` are those that the objects may be of, and `keeps` and `waves` say of each resource whether its
        objects stay, and their wave, for what is not in the status: that may be lost. `own` says which stay
        by the revision by which the composite runs, empty if there is none. `without` is why the composer's
        own rights count: the account is gone by whose rights the objects were made.
        """
        space = self._composite.namespace
        # The namespace of the account is that of the composite, if that is in one.
        self._gathering.found.ending = without is not None and without.ending and bool(space)
        if _ORPHAN in self._finalizers():
            # The garbage collector takes the controller references off first.
            self.again = _ORPHANING_SECONDS
            return
        listed = listed_entries(self._value)
        kinds = list(kinds)
        with self._report.phase(PassPhase.GATHER):
            await self._gathering.read_to_delete([*_kinds_of(listed), *kinds], listed.keys())
        self._over.begin()
        unseen = self._gathering.unseen(kinds)
        if not listed and unseen is not None:
            # The status is lost: a composite is held only if there was something to list.
            await self.say(unseen, revision=revision)
            self.again = self._until_another_look()
            return
        objects = self._gathering.found.objects
        order = await waves(resource_of(live) for key, live in objects.items() if key not in listed)
        listed = with_found(listed, objects.values(), keeps, order)
        planned = await self._deletion_round(listed, own)
        while (removes := planned.removals and not self._over()) or self._gathering.glimpsed:
            if removes:
                with self._report.phase(PassPhase.APPLY):
                    await self._acting.remove(planned.removals)
            else:
                await self._gathering.read_glimpsed()
            planned = await self._deletion_round(listed, own)
        planned = self._with_failed(planned)
        if without is not None:
            planned = told_instead(planned, without)
        if not planned.inventory:
            await self._set_finalizers([each for each in self._finalizers() if each != FINALIZER])
            self._failures.forget(self._composite.uid)
            return
        await self._write(PassOutcome(revision, planned, self._gathering.found))
        self._schedule(planned)

    async def _round(
        self, compiled: Compiled, listed: Mapping[Identity, Entry]
    ) -> tuple[Rendering, CompositePlan]:
        """Render by what exists, and plan; reads what that needs."""
        while True:
            observed = self._gathering.found.observed()
            with self._report.phase(PassPhase.PLAN):
                rendering = await asyncio.to_thread(render, compiled.composition, self._value, observed)
            with self._report.phase(PassPhase.GATHER):
                if await self._gathering.look_external(_external(compiled, rendering)):
                    continue
            with self._report.phase(PassPhase.PLAN):
                planned = plan(
                    self._composite,
                    compiled.composition,
                    rendering,
                    self._gathering.found,
                    listed,
                    self._acting.failed,
                    FIELD_MANAGER,
                )
            if not planned.looks:
                return rendering, self._without_failed(planned)
            self._end_late()
            with self._report.phase(PassPhase.GATHER):
                await self._gathering.look(planned.looks)

    async def _deletion_round(
        self, listed: Mapping[Identity, Entry], own: Mapping[str, bool]
    ) -> CompositePlan:
        while True:
            with self._report.phase(PassPhase.PLAN):
                planned = plan_deletion(self._gathering.found, listed, own)
            if not planned.looks:
                return self._without_failed(planned)
            self._end_late()
            with self._report.phase(PassPhase.GATHER):
                await self._gathering.look(planned.looks)

    async def _prepare(self, compiled: Compiled, rendering: Rendering, planned: CompositePlan) -> None:
        """Hold the composite, and list in its status what is about to be applied: a kill leaves no orphan."""
        await self._hold()
        found, flapping = self._gathering.found, self._flapping()
        outcome = PassOutcome(compiled.name, planned, found, rendering, flapping=flapping)
        now = self._client.now()
        status = with_inventory(self._value, self._composite, outcome, FIELD_MANAGER, now)
        if status is not None:
            self._report.saw(conditions_of(self._value))
            await self._apply_status(status)

    async def _hold(self) -> None:
        if not Composite.of(self._value).holds:
            await self._set_finalizers([*self._finalizers(), FINALIZER])
            self.held = True

    async def _set_finalizers(self, finalizers: list[str]) -> None:
        written = await set_finalizers_of(self._client, self._home, self._value, finalizers)
        self._report.wrote(CompositeWrite.FINALIZER)
        # The rest is of another version. It is as it was, or the write would have been refused.
        self._value = {**self._value, "metadata": written["metadata"]}

    def _finalizers(self) -> list[str]:
        return list(self._value["metadata"].get("finalizers") or ())

    async def _write(self, outcome: PassOutcome) -> None:
        self.outcome = outcome
        try:
            await self._tell(outcome)
        except ApiError as error:
            same = await get_same(self._client, self._kind, self._value) if error.code == 409 else None
            if same is None:
                raise
            # What was found out, in perhaps many seconds, holds all the same.
            self.overtaken |= seen_composite(same) != seen_composite(self._value)
            self._value = same
            await self._tell(outcome)

    async def _tell(self, outcome: PassOutcome) -> None:
        now = self._client.now()
        outcome = replace(outcome, flapping=self._flapping())
        status = status_of(self._value, self._composite, outcome, FIELD_MANAGER, now)
        self._report.saw(conditions_of(self._value))
        if changes(status, self._value, FIELD_MANAGER):
            await self._apply_status(status)
        self._report.status = status

    def _flapping(self) -> Verdict | None:
        return self._failures.flaps.verdict(self._composite.uid, asyncio.get_running_loop().time())

    async def _apply_status(self, status: Mapping[str, Any]) -> None:
        with self._report.phase(PassPhase.APPLY):
            self._value = await apply_composite_status(self._client, self._kind, self._value, status)
        self._report.wrote(CompositeWrite.STATUS)

    def _without_failed(self, planned: CompositePlan) -> CompositePlan:
        failed = self._acting.failed
        return replace(
            planned, removals=tuple(each for each in planned.removals if each.identity not in failed)
        )

    def _with_failed(self, planned: CompositePlan) -> CompositePlan:
        """Removals that did not succeed are problems, too."""
        failed = self._acting.failed
        self._failures.keep(self._composite, failed)
        problems = {
            each.resource: failed[each.identity] for each in planned.leaving if each.identity in failed
        }
        return replace(planned, problems={**problems, **planned.problems})

    def _end_late(self) -> None:
        """Raises Unreachable if the time is over before all is known: then nothing may be said, either."""
        if self._over():
            raise TooSlow(
                f"the objects of {self._composite.name} could not be read in {PASS_SECONDS:g} seconds"
            )

    def _schedule(self, planned: CompositePlan) -> None:
        flaps = self._failures.flaps.left(self._composite.uid, asyncio.get_running_loop().time())
        waits = [self._failures.left(self._composite), flaps]
        if self._over():
            waits.append(_CHANGED_SECONDS)
        if planned.leaving or planned.held or self._gathering.left_out:
            waits.append(_DELETION_SECONDS)
        waits.append(self._until_another_look(planned))
        self.again = min((each for each in waits if each is not None), default=None)

    def _until_another_look(self, planned: CompositePlan | None = None) -> float | None:
        """Seconds until another look at what no watch shows; None if nothing is to be looked at.

        These are kinds that could not be read, and objects that are in the way and bear no label of ours.
        """
        unreadable = self._gathering.found.all_unreadable()
        lasting = {key for key, each in unreadable.items() if each.reason in _LASTING}
        failed = unreadable.keys() - lasting
        problems = planned.problems.values() if planned is not None else ()
        if any(each.reason is reasons.NOT_OURS for each in problems):
            lasting |= {each[:2] for each in self._gathering.found.strangers}
        wait = self._failures.waits_for(self._composite, lasting)
        if failed:
            wait = min(wait or _UNREADABLE_SECONDS, _UNREADABLE_SECONDS)
        return wait

    def listed_kinds(self) -> frozenset[KindKey]:
        """The kinds of the objects in the status."""
        return frozenset(_kinds_of(listed_entries(self._value)))

    def found_kinds(self) -> frozenset[KindKey]:
        """The kinds of the objects that were found to be the composite's."""
        objects = self._gathering.found.objects.values()
        return frozenset((str(each["apiVersion"]), str(each["kind"])) for each in objects)

    @property
    def external(self) -> Mapping[ExternalObject, str]:
        """What externalRefs have read, with its resourceVersion."""
        return self._gathering.external

    @property
    def value(self) -> Mapping[str, Any]:
        """The composite as it was written last."""
        return self._value

    @property
    def objects(self) -> Iterable[Mapping[str, Any]]:
        """The objects as they were read or written last."""
        found = self._gathering.found
        return (*found.objects.values(), *found.strangers.values())


def _kinds_of(listed: Mapping[Identity, Entry]) -> list[KindKey]:
    return sorted({each.kind for each in listed.values()})


def _external(compiled: Compiled, rendering: Rendering) -> dict[Identity, str]:
    versions = {each.name: each.api_version for each in compiled.composition.resources if each.external}
    return {
        each.identity: versions[resource.name]
        for resource in rendering.resources
        if resource.name in versions and resource.state in (ResourceState.WAITING, ResourceState.READ)
        for each in resource.objects
    }
