"""Which entries of a note are believed when an object arrives at the note's version.

Anyone who can write the object can write a note. An entry counts only if the conversion itself would write
it: the object with the old value in place, converted to the version that it comes from and back, must show at
that place exactly what the entry says. So a field that the rules convert exactly cannot get another value,
because it would come back with that value. Only values that the rules lose remain, and these must match the
schema.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.objects.effort import StepAllowance
from crdkeeper.core.conversion.fieldpaths import Steps
from crdkeeper.core.conversion.fitting import STEPS, Fitting, may_be_kept
from crdkeeper.core.conversion.keptaside import Note, differences
from crdkeeper.core.conversion.metadata import with_maps, without_empty
from crdkeeper.core.conversion.notes import compared
from crdkeeper.core.conversion.places import Places, place_of
from crdkeeper.core.conversion.restoring import Restored, restore
from crdkeeper.core.conversion.values import Unconvertible

_ROUNDS: Final = 4
"""If an entry is not believed, others may become invalid, too. Honest notes need one round, or two if they
hold something that the schema no longer allows.
"""

Way = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """The conversion by which an object arrives, by rules alone."""

    there: Way
    """Converts back to the version that the object comes from. Raises Unconvertible."""
    back: Way
    """Converts from that version again. Raises Unconvertible."""
    forgiven: Callable[[Any, Any], Any]
    """For an object and its result after a round trip, the object it may have been (`Scope.forgiven`)."""
    movable: frozenset[Steps]
    """The annotations and labels of the target version that rules read or write."""
    origin: Fitting
    """The version that the object comes from."""
    target: Fitting
    """The version that it arrives at."""
    passing: bool = False
    """Whether it goes on from there: of values only the types count, as its last version may allow more."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An object at its new version."""

    value: dict[str, Any]
    origin: dict[str, Any] | None = None
    """The object at the version that it comes from, by rules alone, if that is known."""
    ignored: int = 0
    """How many entries of the note were not believed. Entries outdated by an edit do not count."""


def arrived(value: Mapping[str, Any], made: dict[str, Any], note: Note, route: Route) -> Arrival:
    """Return `made`, which the rules made from `value`, with the believed entries of the note applied."""
    entries = [each for each in note.entries if may_be_kept(each, route.movable)]
    ignored = note.unreadable + len(note.entries) - len(entries)
    # All rounds together, as a note of a malicious author makes the most of each.
    allowance = StepAllowance(STEPS)
    blank = with_maps(made) if route.movable else made
    for _ in range(_ROUNDS):
        found = restore(blank, entries, route.target.node, route.target.knows)
        if not found.applied:
            return Arrival(made, None, ignored + len(found.refused))
        origin, wrong = None, {i for _, i in found.applied}
        with suppress(Unconvertible, RecursionError):
            origin = route.there(found.value)
            wrong = _contradicted(found, value, made, origin, route, allowance)
        if not wrong:
            restored = without_empty(found.value) if route.movable else found.value
            return Arrival(restored, origin, ignored + len(found.refused))
        wrong |= found.refused
        ignored += len(wrong)
        entries = [each for i, each in enumerate(entries) if i not in wrong]
    return Arrival(made, None, ignored + len(entries))


def _contradicted(
    found: Restored,
    value: Mapping[str, Any],
    made: dict[str, Any],
    origin: dict[str, Any],
    route: Route,
    allowance: StepAllowance,
) -> set[int]:
    """The applied entries that are not believed."""
    unlike = _differing(made, route.back(origin), route.target)
    if any(map(unlike.meets, found.places)):
        # What an edit of the other version leaves without effect here is kept aside for that version, and has
        # shaped what the honest entry says.
        kept = differences(compared(value), compared(route.there(made)), route.origin.schema)
        edited = restore(with_maps(origin), kept, route.origin.node, lambda *_: True)
        unlike = _differing(made, route.back(edited.value), route.target)
    # What may be lost is never kept aside.
    lost = _differing(found.value, route.forgiven(found.value, made), route.target)
    violated = route.target.violations(found.value, allowance)
    if violated is None:
        return {i for _, i in found.applied}
    if route.passing:
        violated = frozenset(each for each in violated if each.mistyped)
    before = (route.target.violations(made, allowance) or frozenset()) if violated else frozenset()
    at, above = Places(each.place for each in violated), Places(each.place for each in violated - before)
    return {
        i
        for place, i in found.applied
        if unlike.meets(place) or lost.meets(place) or at.within(place) or above.around(place)
    }


def _differing(one: Mapping[str, Any], other: Mapping[str, Any], fitting: Fitting) -> Places:
    return Places(map(place_of, differences(compared(one), compared(other), fitting.schema)))
