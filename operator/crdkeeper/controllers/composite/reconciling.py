"""One pass over one composite: reads what exists, applies wave by wave, removes, and writes the status."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from crdkeeper.cluster.resources.composed import apply_composite_status, set_finalizers_of
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.deadlines import TooSlow
from crdkeeper.controllers.composite.acting import Acting
from crdkeeper.controllers.composite.compiling import Compiled
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.room import Share
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import Entry, KindKey, listed_entries, with_found
from crdkeeper.core.composites.ownership import FINALIZER, Composite
from crdkeeper.core.composites.plan import CompositePlan, plan, plan_deletion
from crdkeeper.core.composites.standing import PassOutcome, status_of, with_inventory
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.compiled import CompiledResource
from crdkeeper.core.templates.mappedstatus import mapped_status
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendered import Rendering, ResourceState
from crdkeeper.core.templates.rendering import render

_PASS_SECONDS: Final = 20.0
"""Then the status is written, and others have their turn."""
_CHANGED_SECONDS: Final = 0.5
_UNREADABLE_SECONDS: Final = 5.0
_DELETION_SECONDS: Final = 10.0
"""Between looks at what waits for finalizers: its kind may be one that is not watched any more."""
_EXTERNAL_SECONDS: Final = 15.0
"""How often externalRefs are read again."""
_ORPHANING_SECONDS: Final = 1.0
_ORPHAN: Final = "orphan"
"""The finalizer by which the garbage collector is asked to leave the objects."""

_Resources = Mapping[str, tuple[CompiledResource, int]]
"""By name, with their waves."""


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
        settled: dict[str, str],
        share: Share,
        rights: KnownRights,
        kind: ServedKind,
        home: ServedKind,
        value: dict[str, Any],
    ) -> None:
        self._client = client
        self._failures = failures
        self._kind = kind
        self._home = home
        self._value = value
        self._composite = Composite.of(value)
        self._gathering = Gathering(client, served, self._composite, settled, share, rights)
        # No method of ours: in a cycle of references, the objects would stay in memory after the pass.
        self._over = partial(_is_over, asyncio.get_running_loop().time())
        self._acting = Acting(client, self._composite, self._gathering, failures, settled, self._over)
        self.again: float | None = None
        self.held = False
        """Whether the composite got its finalizer in this pass."""

    async def say(self, obstacle: Verdict, *, revision: str = "") -> None:
        """Change nothing but the status. Raises ApiError and Unreachable."""
        await self._write(PassOutcome(revision, obstacle=obstacle))

    async def reconcile(self, compiled: Compiled, unwatched: Verdict | None = None) -> None:
        """Let the objects be as the revision says; `unwatched` is why changes of them may not be seen.

        Raises ApiError and Unreachable.
        """
        listed = listed_entries(self._value)
        await self._gathering.read(sorted(compiled.kinds))
        await self._gathering.read(_kinds_of(listed), any_version=True)
        # What a lost status does not list would be forgotten as soon as it is in deletion.
        listed = with_found(listed, self._gathering.found.objects.values(), compiled.resources())
        rendering, planned = await self._round(compiled, listed)
        while (planned.applies or planned.removals) and not self._over():
            if planned.applies:
                await self._prepare(compiled, planned)
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
        if self._composite.holds and not planned.inventory and not self._over():
            await self._set_finalizers([each for each in self._finalizers() if each != FINALIZER])
        found = self._gathering.found
        await self._write(PassOutcome(compiled.name, planned, found, rendering, fields, mapped.gaps))
        self._schedule(planned, external=any(each.external for each in compiled.composition.resources))

    async def delete(
        self,
        kinds: Iterable[KindKey],
        resources: _Resources,
        own: _Resources,
        revision: str,
        unknown: Verdict | None = None,
    ) -> None:
        """Delete the objects in order, then let the composite go. Raises ApiError and Unreachable.

        `kinds` and `resources` are those that the objects may be of, for what is not in the status: that may
        be lost. `own` are the resources of the revision by which the composite runs, empty if there is none.
        `unknown` is why there may be other resources, which say whether such an object stays.
        """
        if _ORPHAN in self._finalizers():
            # The garbage collector takes the controller references off first.
            self.again = _ORPHANING_SECONDS
            return
        listed = listed_entries(self._value)
        await self._gathering.read([*_kinds_of(listed), *kinds], any_version=True)
        before = listed.keys()
        listed = with_found(listed, self._gathering.found.objects.values(), resources)
        if unknown is not None and listed.keys() != before:
            await self.say(unknown, revision=revision)
            self.again = _DELETION_SECONDS
            return
        planned = await self._deletion_round(listed, own)
        while planned.removals and not self._over():
            await self._acting.remove(planned.removals)
            planned = await self._deletion_round(listed, own)
        planned = self._with_failed(planned)
        if not planned.inventory:
            await self._set_finalizers([each for each in self._finalizers() if each != FINALIZER])
            self._failures.forget(self._composite.uid)
            return
        await self._write(PassOutcome(revision, planned, self._gathering.found))
        self._schedule(planned, external=False)

    async def _round(
        self, compiled: Compiled, listed: Mapping[Identity, Entry]
    ) -> tuple[Rendering, CompositePlan]:
        """Render by what exists, and plan; reads what that needs."""
        while True:
            observed = self._gathering.found.observed()
            rendering = await asyncio.to_thread(render, compiled.composition, self._value, observed)
            if await self._gathering.look_external(_external(compiled, rendering)):
                continue
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
            await self._gathering.look(planned.looks)

    async def _deletion_round(self, listed: Mapping[Identity, Entry], own: _Resources) -> CompositePlan:
        while True:
            planned = plan_deletion(self._gathering.found, listed, own)
            if not planned.looks:
                return self._without_failed(planned)
            self._end_late()
            await self._gathering.look(planned.looks)

    async def _prepare(self, compiled: Compiled, planned: CompositePlan) -> None:
        """Hold the composite, and list in its status what is about to be applied: a kill leaves no orphan."""
        if not Composite.of(self._value).holds:
            await self._set_finalizers([*self._finalizers(), FINALIZER])
            self.held = True
        status = with_inventory(self._value, compiled.name, planned, self._gathering.found, FIELD_MANAGER)
        if status is not None:
            self._value = await apply_composite_status(self._client, self._kind, self._value, status)

    async def _set_finalizers(self, finalizers: list[str]) -> None:
        written = await set_finalizers_of(self._client, self._home, self._value, finalizers)
        # The rest is of another version. It is as it was, or the write would have been refused.
        self._value = {**self._value, "metadata": written["metadata"]}

    def _finalizers(self) -> list[str]:
        return list(self._value["metadata"].get("finalizers") or ())

    async def _write(self, outcome: PassOutcome) -> None:
        now = self._client.now()
        status = status_of(self._value, self._composite, outcome, FIELD_MANAGER, now)
        live = self._value.get("status") or {}
        if any(live.get(name) != each for name, each in status.items()) or self._drops(status):
            self._value = await apply_composite_status(self._client, self._kind, self._value, status)

    def _drops(self, status: Mapping[str, Any]) -> bool:
        """Whether a field that was applied is not to be any more."""
        for each in self._value["metadata"].get("managedFields") or ():
            if each.get("manager") == FIELD_MANAGER and each.get("subresource") == "status":
                owned = (each.get("fieldsV1") or {}).get("f:status") or {}
                return any(key.startswith("f:") and key[2:] not in status for key in owned)
        return False

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
                f"the objects of {self._composite.name} could not be read in {_PASS_SECONDS:g} seconds"
            )

    def _schedule(self, planned: CompositePlan, *, external: bool) -> None:
        waits = [self._failures.left(self._composite)]
        if self._over():
            waits.append(_CHANGED_SECONDS)
        if planned.leaving or planned.held:
            waits.append(_DELETION_SECONDS)
        if self._gathering.found.unreadable:
            waits.append(_UNREADABLE_SECONDS)
        if external:
            waits.append(_EXTERNAL_SECONDS)
        self.again = min((each for each in waits if each is not None), default=None)

    def listed_kinds(self) -> frozenset[KindKey]:
        """The kinds of the objects in the status."""
        return frozenset(_kinds_of(listed_entries(self._value)))

    @property
    def value(self) -> Mapping[str, Any]:
        """The composite as it was written last."""
        return self._value


def _is_over(began: float) -> bool:
    return asyncio.get_running_loop().time() - began > _PASS_SECONDS


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


def paused() -> Verdict:
    """What is said of a composite that is paused."""
    return Verdict(reasons.PAUSED, f"{reasons.PAUSED.meaning} {reasons.PAUSED.remedy}")
