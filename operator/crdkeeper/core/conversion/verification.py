"""Whether objects survive the rules: each goes to every other version and back, and through all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.objects.conversionanswer import RefusedAnswer, restored
from crdkeeper.apiserver.objects.effort import SharedAllowance
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.keptaside import Entry, differences
from crdkeeper.core.conversion.losses import without_drops
from crdkeeper.core.conversion.narrowing import narrowed
from crdkeeper.core.conversion.nesting import length
from crdkeeper.core.conversion.notes import note_of, without_notes
from crdkeeper.core.conversion.objects import Conversion, ConversionTally, compile_conversion
from crdkeeper.core.conversion.places import place_of
from crdkeeper.core.conversion.samples import samples
from crdkeeper.core.conversion.scope import RuleError
from crdkeeper.core.conversion.values import Unconvertible

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """A path on which an object does not come back unchanged, or which fails."""

    source: str
    """The version that the object had."""
    target: str
    """The version that it was converted to."""
    message: str
    """Names the field."""
    lossy: bool = False
    """It came back, but changed."""


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """The result for one object."""

    trips: int
    """How many paths were tried."""
    kept_aside: frozenset[str]
    """Versions at which an annotation must keep some of its values."""
    lossy: frozenset[str]
    """Versions at which a rule drops some of its values."""
    faults: Sequence[Fault]
    unmatched: Sequence[Fault]
    """Paths at whose end it shows a stand-in: nothing is lost."""


class Trial:
    """Tries a conversion on objects."""

    def __init__(
        self, conversion: Conversion, strict: Conversion | None, refusing: Callable[[], Conversion]
    ) -> None:
        """`strict` keeps aside what the other drops; None if that drops nothing. `refusing` fails, with the
        reason, for a value without counterpart.
        """
        self.conversion = conversion
        self._strict = strict
        self._refusing = refusing
        self._allowance = SharedAllowance()

    def judge(self, value: Mapping[str, Any]) -> ObjectOutcome:
        """Try all paths of an object. Never raises for problems of the object.

        The work on all objects that need more than their share has a limit; an object that exceeds it has a
        fault.
        """
        with self._allowance.for_one(length(value)) as allowance:
            outcome = self._judged(value)
        if allowance.is_exceeded:
            source = str(value.get("apiVersion")).rpartition("/")[2]
            target = next(each for each in self.conversion.versions if each != source)
            fault = Fault(source, target, "to convert all objects may take too long")
            return ObjectOutcome(outcome.trips, frozenset(), frozenset(), [fault], [])
        return outcome

    def _judged(self, value: Mapping[str, Any]) -> ObjectOutcome:
        source = str(value.get("apiVersion")).rpartition("/")[2]
        others = [each for each in self.conversion.versions if each != source]
        ways = [[each] for each in others] + ([others] if len(others) > 1 else [])
        faults: list[Fault] = []
        unmatched: list[Fault] = []
        aside, lossy = set(), set()
        for way in ways:
            target, tally = way[-1], ConversionTally()
            try:
                there = self.conversion.convert(value, way[0], tally)
                if "metadata" in value:
                    restored(value, there, f"{self.conversion.group}/{way[0]}")
                if len(way) == 1 and tally.stand_ins:
                    unmatched.append(Fault(source, target, self._why(value, target)))
                if note_of(there, source) is not None:
                    aside.add(way[0])
                # Called for every object of a cluster: do not convert again what is already converted.
                kept = there if self._strict is None else self._strict.convert(value, way[0], tally)
                back = self._go(self._strict or self.conversion, kept, [*way[1:], source], tally)
                changed = self._changed(value, back, source)
                if without_notes(value) is not value and len(way) == 1:
                    # What is kept aside must still be recorded: it shows at the other version again.
                    changed += _differences(
                        there, self._go(self.conversion, value, [target, source, target], tally)
                    )
                if self._strict is not None and len(way) == 1:
                    left = self._go(self.conversion, there, [source], tally)
                    if _differences(value, left):
                        lossy.add(target)
            except Unconvertible as error:
                faults.append(Fault(source, target, str(error)))
                continue
            except RefusedAnswer as refused:
                faults.append(Fault(source, target, f"the API server refuses it: {refused}"))
                continue
            except RecursionError:
                faults.append(Fault(source, target, "is nested too deep"))
                continue
            if changed:
                paths = ", ".join(".".join(map(str, each["at"])) for each in changed[:_SHOWN])
                by = "" if len(way) == 1 else f" by {' and '.join(way[:-1])}"
                faults.append(Fault(source, target, f"the way{by} and back changes {paths}", lossy=True))
        return ObjectOutcome(len(ways), frozenset(aside), frozenset(lossy), faults, unmatched)

    def _changed(self, value: Mapping[str, Any], back: Mapping[str, Any], version: str) -> list[Entry]:
        """What came back changed, except values of a wrong type.

        These occur if an object was written at another version without conversion: the rules may change them.
        """
        changed = _differences(value, back)
        if not changed:
            return changed
        wrong = self.conversion.mistyped(value, version)
        return [each for each in changed if not wrong.meets(place_of(each))]

    def _go(
        self, conversion: Conversion, value: Mapping[str, Any], way: Sequence[str], tally: ConversionTally
    ) -> dict[str, Any]:
        for version in way:
            value = conversion.convert(value, version, tally)
        return dict(value)

    def _why(self, value: Mapping[str, Any], version: str) -> str:
        try:
            self._refusing().convert(value, version)
        except Unconvertible as error:
            return str(error)
        return "a value has no counterpart"


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Entry]:
    return differences(without_notes(before), without_notes(after), None)


def compile_trial(spec: VersionConversionSpec, schemas: Mapping[str, Schema]) -> Trial | Sequence[RuleError]:
    """Compile the rules for a trial, or return all errors in them; see `compile_conversion`."""
    made = compile_conversion(spec, schemas)
    if not isinstance(made, Conversion):
        return made
    kept = without_drops(spec)
    strict = compile_conversion(kept, schemas) if kept is not None else None

    @cache
    def refusing() -> Conversion:
        found = compile_conversion(spec, schemas, refuse=True)
        return found if isinstance(found, Conversion) else made

    return Trial(made, strict if isinstance(strict, Conversion) else None, refusing)


def generated(
    spec: VersionConversionSpec, schemas: Mapping[str, Schema], number: int
) -> Iterator[dict[str, Any]]:
    """Objects generated from the schemas, with convertible values; `number` for each version."""
    for version in schemas:
        for content in samples(narrowed(spec, schemas, version), number):
            yield {
                "apiVersion": f"{spec.resource.group}/{version}",
                "kind": "Generated",
                "metadata": {"name": "generated"},
                **content,
            }
