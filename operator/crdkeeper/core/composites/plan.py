"""What happens next to the objects of a composite. Pure: the controller looks, acts, and asks again.

One wave is applied for each rendering, because later resources read what the API server answers. What has to
go is removed only when nothing is left to apply and nothing has failed, the last wave first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.api.composite import MOST_RESOURCES
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.appliednote import is_current, same_configuration, settled_digest
from crdkeeper.core.composites.inventory import Entry, decided, with_found
from crdkeeper.core.composites.ownership import (
    Composite,
    configuration,
    is_free,
    outlives,
    resource_of,
)
from crdkeeper.core.composites.wording import not_ours, not_rendered, why_unproved
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.compiled import CompiledComposition, CompiledResource, with_secrets
from crdkeeper.core.templates.kinds import group_of
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.observed import Observed
from crdkeeper.core.templates.rendered import RenderedResource, Rendering, ResourceState

_KEEPS: Final = (ResourceState.WAITING, ResourceState.PENDING, ResourceState.FAILED)
"""States in which nothing of a resource is removed."""


@dataclass(slots=True)
class FoundObjects:
    """What was read of a composite's objects."""

    objects: dict[Identity, Mapping[str, Any]] = field(default_factory=dict)
    """Those that the composite controls."""
    unlisted: set[Identity] = field(default_factory=set)
    """Of these, those not in the status when found, as others may have made them; none in a deletion."""
    strangers: dict[Identity, Mapping[str, Any]] = field(default_factory=dict)
    """Those that exist under a name of interest, and that it does not control."""
    absent: set[Identity] = field(default_factory=set)
    """Those that do not exist."""
    external: dict[Identity, Mapping[str, Any]] = field(default_factory=dict)
    """Those that externalRefs name."""
    unreadable: dict[tuple[str, str], Verdict] = field(default_factory=dict)
    """By group and kind: why objects cannot be read."""
    unread: dict[Identity, Verdict] = field(default_factory=dict)
    """Why those cannot be read that externalRefs name."""
    ending: bool = False
    """Whether all of the objects are in a namespace that is being deleted, and go with it."""
    settled: Mapping[str, str] = field(default_factory=dict)
    """By uid: settled_digest after an apply that the object does not show as a whole."""

    def knows(self, identity: Identity) -> bool:
        """Whether it was looked up, or cannot be."""
        return (
            identity in self.objects
            or identity in self.strangers
            or identity in self.absent
            or identity[:2] in self.unreadable
        )

    def hides(self, group: str, kind: str) -> Verdict | None:
        """Why there may be objects of a kind that cannot be read, and have to be waited for.

        Those of a kind that is gone have gone with it. Those that go with a namespace need no right of ours.
        """
        verdict = self.unreadable.get((group, kind))
        gone = (reasons.KIND_MISSING, reasons.RIGHT_MISSING) if self.ending else (reasons.KIND_MISSING,)
        return None if verdict is None or verdict.reason in gone else verdict

    def all_unreadable(self) -> dict[tuple[str, str], Verdict]:
        """By group and kind: why some objects cannot be read, of the composite or of others."""
        return {**{each[:2]: verdict for each, verdict in self.unread.items()}, **self.unreadable}

    def observed(self) -> Observed:
        """What expressions see."""
        own: dict[str, dict[Identity, Mapping[str, Any]]] = {}
        for identity, live in self.objects.items():
            if "deletionTimestamp" not in live["metadata"]:
                own.setdefault(resource_of(live), {})[identity] = live
        return Observed(own, self.external, frozenset(self.unreadable), self.unread.keys(), self.unlisted)


@dataclass(frozen=True, slots=True)
class Apply:
    """An object to create or change."""

    entry: Entry
    configuration: dict[str, Any]
    live: Mapping[str, Any] | None
    """None to create it."""
    force: bool
    """Whether fields of other clients are taken over."""
    recreate: bool
    """Whether it may be deleted if a field cannot change."""
    secret: bool = False
    """Whether values of Secrets may be in it."""


@dataclass(frozen=True, slots=True)
class CompositePlan:
    """What to do next."""

    looks: frozenset[Identity] = frozenset()
    """Objects to read before anything else can be said."""
    inventory: tuple[Entry, ...] = ()
    """What the status has to list before anything is applied, in order."""
    applies: tuple[Apply, ...] = ()
    """Those of one wave."""
    removals: tuple[Entry, ...] = ()
    """Those of one wave, once nothing is left to apply."""
    leaving: tuple[Entry, ...] = ()
    """All that exist and have to go, those in deletion included."""
    problems: Mapping[str, Verdict] = field(default_factory=dict)
    """By the name of the resource: why it is not as it should be."""
    held: Mapping[Identity, str] = field(default_factory=dict)
    """Why an object is not applied yet, although nothing is wrong."""
    unserved: frozenset[Identity] = frozenset()
    """Those that were given up, and have gone with their kind unless that is served again."""


def plan(
    composite: Composite,
    composition: CompiledComposition,
    rendering: Rendering,
    found: FoundObjects,
    listed: Mapping[Identity, Entry],
    failed: Mapping[Identity, Verdict],
    manager: str,
) -> CompositePlan:
    """The next step for a composite that is not being deleted. `failed`: what did not succeed so far."""
    return _Planning(composite, composition, rendering, found, listed, failed, manager).result()


def plan_deletion(
    found: FoundObjects,
    known: Mapping[Identity, Entry],
    keeps: Mapping[str, bool],
) -> CompositePlan:
    """The next step for a composite that is being deleted. Needs no Composition.

    `known` are all of its objects, those in the status first. `keeps` says for each resource of the revision
    that the composite runs by whether its objects stay; empty if there is none.
    """
    entries = decided(known, keeps)
    looks = frozenset(each for each in entries if not found.knows(each))
    left = tuple(each for key, each in entries.items() if key in found.objects or found.hides(*key[:2]))
    hidden = ((each.resource, found.hides(*each.identity[:2])) for each in left)
    problems = {resource: verdict for resource, verdict in hidden if verdict is not None}
    leaving = tuple(each for each in left if each.identity in found.objects)
    # What cannot be read may be of a later wave, and still be there.
    readable = () if looks or problems else leaving
    unproved = {
        each.resource: Verdict(reasons.NO_REVISION, why_unproved(each.identity))
        for each in leaving
        if each.unproved and "deletionTimestamp" not in found.objects[each.identity]["metadata"]
    }
    removals = tuple(each for each in _removals(readable, found, ()) if not each.unproved)
    inventory = _fitting(left, entries)
    return CompositePlan(looks, inventory, (), removals, leaving, {**unproved, **problems})


class _Planning:
    def __init__(
        self,
        composite: Composite,
        composition: CompiledComposition,
        rendering: Rendering,
        found: FoundObjects,
        listed: Mapping[Identity, Entry],
        failed: Mapping[Identity, Verdict],
        manager: str,
    ) -> None:
        self._composite = composite
        self._rendering = rendering
        self._found = found
        self._failed = failed
        self._manager = manager
        self._states = {each.name: each for each in rendering.resources}
        self._compiled = {each.name: each for each in composition.resources if not each.external}
        self._secrets = with_secrets(composition.resources)
        # Kept, if the Composition says so now, also while the resource cannot be rendered.
        known = with_found(listed, found.objects.values(), composition.keeps, composition.order)
        self._entries = decided(known, composition.keeps)
        self._looks: set[Identity] = set()
        self._applies: list[Apply] = []
        self._problems: dict[str, Verdict] = {}
        self._held: dict[Identity, str] = {}
        self._blocked: set[str] = set()
        """Resources that those which refer to them have to wait for."""
        self._wanted: dict[Identity, Entry] = {}
        self._unnamed = {
            (group_of(self._compiled[each.name].api_version), self._compiled[each.name].kind): each.name
            for each in rendering.resources
            if each.state in _KEEPS and each.name in self._compiled
        }
        """By group and kind: a resource whose objects are not known now."""

    def result(self) -> CompositePlan:
        """The plan."""
        wave = -1
        for each in self._rendering.resources:
            compiled = self._compiled.get(each.name)
            if compiled is None:
                self._external(each)
            if each.state is ResourceState.FAILED:
                self._problems[each.name] = not_rendered(each)
            if compiled is None or each.state is not ResourceState.RENDERED:
                continue
            if self._applies and each.wave != wave:
                # They are rendered again once these are applied.
                self._want(compiled, each)
                continue
            wave = each.wave
            self._resource(compiled, each)
        entries = {key: each for key, each in self._entries.items() if key not in self._wanted}
        going = [each for each in entries.values() if self._goes(each)]
        kept = [each for each in entries.values() if not self._goes(each)]
        self._looks |= {each.identity for each in (*going, *kept) if not self._found.knows(each.identity)}
        leaving = [each for each in going if each.identity in self._found.objects]
        unread = [each for each in (*going, *kept) if each.identity[:2] in self._found.unreadable]
        for entry in unread:
            # What is given up may be of a later wave than others, and still be there.
            verdict = self._found.hides(*entry.identity[:2])
            if verdict is not None:
                self._problems.setdefault(entry.resource, verdict)
        stay = [each for each in kept if each.identity in self._found.objects]
        staying = [each for each in stay if self._is_given_up(each)]
        # What others may have made takes no place in the status, whatever becomes of it: it is found again.
        others = (each for each in (*leaving, *unread, *stay) if each.identity not in self._found.unlisted)
        inventory = {*self._wanted.values(), *others}
        applies = tuple(self._applies)
        if len(inventory) > MOST_RESOURCES:
            applies = ()
            said = f"{len(inventory):,} objects with those that have to go: at most {MOST_RESOURCES:,} fit. "
            self._problems[""] = Verdict(reasons.TOO_MANY, said + reasons.TOO_MANY.remedy)
        failures = [each for each in self._problems.values() if each.reason is not reasons.KIND_MISSING]
        may_remove = not (applies or self._looks or failures)
        return CompositePlan(
            frozenset(self._looks),
            _fitting(inventory, self._entries),
            applies if not self._looks else (),
            _removals(leaving, self._found, staying) if may_remove else (),
            tuple(leaving),
            self._problems,
            self._held,
            frozenset(each.identity for each in unread if self._is_given_up(each)),
        )

    def _external(self, rendered: RenderedResource) -> None:
        for each in rendered.objects:
            known = self._found
            unread = known.unread.get(each.identity) or known.unreadable.get(each.identity[:2])
            if unread is not None:
                self._problems.setdefault(rendered.name, unread)

    def _want(self, compiled: CompiledResource, rendered: RenderedResource) -> None:
        for each in rendered.objects:
            known = self._entry(compiled, rendered, each.identity)
            if each.identity not in self._found.strangers:
                self._wanted[each.identity] = known

    def _entry(self, compiled: CompiledResource, rendered: RenderedResource, identity: Identity) -> Entry:
        orphan = compiled.deletion == "Orphan"
        return Entry(identity, compiled.api_version, compiled.name, rendered.wave, orphan)

    def _resource(self, compiled: CompiledResource, rendered: RenderedResource) -> None:
        name = compiled.name
        waits = sorted(compiled.needs & self._blocked)
        applies: list[Apply] = []
        for each in rendered.objects:
            assert each.value is not None
            entry = self._entry(compiled, rendered, each.identity)
            if waits:
                if each.identity in self._found.objects:
                    self._wanted[each.identity] = entry
                self._hold(name, each.identity, f"it waits for {waits[0]}")
                continue
            unreadable = self._found.unreadable.get(each.identity[:2])
            if unreadable is not None:
                self._fail(name, unreadable)
                continue
            if each.identity in self._rendering.disputed:
                # Not even if it is there: it may be the other one's.
                self._hold(name, each.identity, "another resource is also this object")
                continue
            apply = self._object(compiled, entry, each.value)
            if apply is not None:
                applies.append(apply)
        self._applies += applies

    def _object(self, compiled: CompiledResource, entry: Entry, value: Mapping[str, Any]) -> Apply | None:
        """What to do with one object; None if nothing is to be done now."""
        identity, name, found = entry.identity, entry.resource, self._found
        live = found.objects.get(identity)
        stranger = found.strangers.get(identity)
        if live is None and stranger is not None:
            if not (name in self._composite.adopts and is_free(stranger)):
                self._fail(name, not_ours(identity, stranger))
                return None
            live = stranger
        self._wanted[identity] = entry
        if identity in self._failed:
            self._fail(name, self._failed[identity])
            return None
        if live is None and identity not in found.absent:
            self._looks.add(identity)
            return None
        if live is not None and "deletionTimestamp" in live["metadata"]:
            self._hold(name, identity, "it is being deleted, and is created again then")
            return None
        made = configuration(value, self._composite, name, orphan=entry.orphan)
        drifted = live is not None and stranger is None and same_configuration(made, live)
        if live is not None and (is_current(made, live, self._manager) or self._settled(made, live)):
            return None
        force, secret = drifted or compiled.conflicts == "Force", name in self._secrets
        # What says itself that it stays is not deleted, not even to come again.
        recreate = compiled.recreate and not (live is not None and outlives(live))
        return Apply(entry, made, live, force, recreate, secret)

    def _settled(self, made: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
        """Whether just this was applied, and nobody has changed it since, although it looks different."""
        known = self._found.settled.get(live["metadata"]["uid"])
        return known is not None and known == settled_digest(made, live, self._manager)

    def _hold(self, name: str, identity: Identity, why: str) -> None:
        self._held[identity] = why
        self._blocked.add(name)

    def _fail(self, name: str, verdict: Verdict) -> None:
        self._problems.setdefault(name, verdict)
        self._blocked.add(name)

    def _is_given_up(self, entry: Entry) -> bool:
        """Whether the Composition does not have the object any more, as far as that is known."""
        state = self._states.get(entry.resource) if entry.resource in self._compiled else None
        if state is None:
            return True
        if state.state in _KEEPS:
            return False
        # What is rendered is wanted also if its kind does not allow to apply it now.
        return all(entry.identity != each.identity for each in state.objects)

    def _goes(self, entry: Entry) -> bool:
        if entry.identity in self._held or entry.identity[:2] in self._found.unreadable:
            return False
        if entry.unproved:
            self._held[entry.identity] = why_unproved(entry.identity)
            return False
        if not self._is_given_up(entry):
            return False
        if entry.resource in self._compiled and entry.resource in self._problems:
            # Nothing can take its place, perhaps only because of a typo in the kind.
            self._held[entry.identity] = f"it is deleted once {entry.resource} is applied"
            return False
        unnamed = self._unnamed.get(entry.identity[:2])
        if unnamed is not None:
            # The object of a resource that was renamed, for example.
            self._held[entry.identity] = (
                f"it is deleted once {unnamed} is rendered, which may be the same object"
            )
        return unnamed is None


def _removals(leaving: Sequence[Entry], found: FoundObjects, staying: Sequence[Entry]) -> tuple[Entry, ...]:
    """Those of the last wave that are not in deletion yet; none while others of a later one are there.

    `staying` have to go, too, but not now. What is listed does not wait for what others may have made.
    """
    waves = {each.identity: each.wave for each in (*leaving, *staying)}
    last = max(waves.values(), default=0)
    last_listed = max((wave for key, wave in waves.items() if key not in found.unlisted), default=0)
    return tuple(
        each
        for each in leaving
        if each.wave == (last if each.identity in found.unlisted else last_listed)
        and "deletionTimestamp" not in found.objects[each.identity]["metadata"]
    )


def _fitting(entries: Iterable[Entry], known: Iterable[Identity]) -> tuple[Entry, ...]:
    """In order, as many as the status can list: of too many, first those that it lists, as `known` begins.

    Nothing else may know of these. What exists is found again, and what does not is not created.
    """
    ordered = _ordered(entries)
    if len(ordered) <= MOST_RESOURCES:
        return ordered
    places = {identity: at for at, identity in enumerate(known)}
    first = sorted(ordered, key=lambda each: places.get(each.identity, len(places)))
    return _ordered(first[:MOST_RESOURCES])


def _ordered(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda each: (each.wave, each.resource, each.identity)))
