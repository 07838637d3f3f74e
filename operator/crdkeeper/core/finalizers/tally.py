"""What the named finalizers hold up in one CRD: counted object by object, in bounded memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from crdkeeper.api.finalizerrelease import FinalizerRule
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.finalizers.holding import Held, held
from crdkeeper.core.finalizers.rule import Release, decide, parse_after, why_never

MOST_DUE: Final = 1000
"""Objects that are kept to be released; the others wait until these are done."""
EXAMPLES: Final = 5
_MOST_WRITERS: Final = 100
_PASSING: Final = frozenset((ProbeTrouble.BUSY, ProbeTrouble.EXPIRED, ProbeTrouble.NOT_FOUND))


@dataclass(frozen=True, slots=True)
class NamedFinalizer:
    """A rule of a policy, read."""

    name: str
    after: timedelta
    when: str
    """In CEL; empty if there is no condition."""
    automatic: bool


class DueFinding(Enum):
    """What is known of an object whose time is over."""

    MET = "met"
    """It meets the condition of the rule."""
    UNMET = "unmet"
    REFUSED = "refused"
    """The API server refused to release the finalizer."""


Recall = Callable[[Held, NamedFinalizer], DueFinding | None]
"""What is known of an object, as it is now."""
Compare = Callable[[Held], Held]
"""An object as it was found, with a write that only a comparison with former looks shows."""


@dataclass(frozen=True, slots=True)
class DueObject:
    """An object whose time is over, for one finalizer."""

    object: Held
    rule: NamedFinalizer


@dataclass(slots=True)
class RuleCount:
    """The objects that one finalizer holds."""

    rule: NamedFinalizer
    held: int = 0
    waiting: int = 0
    written: int = 0
    unmet: int = 0
    due: int = 0
    refused: int = 0
    next: datetime | None = None
    """When the next of the waiting and the written ones is due."""
    of_due: list[str] = field(default_factory=list)
    of_others: list[str] = field(default_factory=list)
    of_refused: list[str] = field(default_factory=list)
    """These are also among the others."""
    writers: dict[str, int] = field(default_factory=dict)
    """Who wrote those that are kept by a write."""


@dataclass(frozen=True, slots=True)
class HeldLook:
    """What was found in one CRD."""

    definition: str
    group: str
    plural: str
    counts: Sequence[RuleCount]
    due: Sequence[DueObject]
    """Those that meet a rule in mode Automatic; at most MOST_DUE."""
    failure: Failure | None = None
    """Why not all objects could be seen."""
    missing: tuple[str, ...] = ()
    """The verbs on its objects that our account lacks."""
    unasked: int = 0
    """Those whose time is over, but that were not read for their condition yet."""

    @property
    def passing(self) -> bool:
        """Whether that passes by itself: a CRD that was just established is not served at once."""
        return self.failure is not None and self.failure.trouble in _PASSING


class ReleaseTally:
    """Counts the objects of a CRD."""

    def __init__(
        self, rules: Sequence[NamedFinalizer], now: datetime, recall: Recall, compare: Compare
    ) -> None:
        self.counts = [RuleCount(each) for each in rules]
        self.due: list[DueObject] = []
        self.questions: list[DueObject] = []
        """Those of which somebody must find out whether they meet their rule, and `answer`."""
        self._names = {each.name: each.name for each in rules}
        self._now = now
        self._recall = recall
        self._compare = compare

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count objects by their metadata."""
        for each in items:
            found = held(each["metadata"], self._now)
            if found is None:
                continue
            named = [count for count in self.counts if count.rule.name in found.finalizers]
            if named:
                # Whoever writes objects chooses the other names, and due ones are kept until the next look.
                places = tuple(self._names.get(name, "") for name in found.finalizers)
                found = self._compare(replace(found, finalizers=places))
            for count in named:
                self._count(found, count)

    def _count(self, found: Held, count: RuleCount) -> None:
        count.held += 1
        decision = decide(found, count.rule.after, self._now)
        if decision.release is Release.DUE:
            one = DueObject(found, count.rule)
            known = self._recall(found, count.rule) or (None if count.rule.when else DueFinding.MET)
            if known is None:
                self.questions.append(one)
            else:
                self.answer(one, known)
            return
        if decision.release is Release.WRITTEN:
            count.written += 1
            if found.writer in count.writers or len(count.writers) < _MOST_WRITERS:
                count.writers[found.writer] = count.writers.get(found.writer, 0) + 1
        else:
            count.waiting += 1
        count.next = min(filter(None, (count.next, decision.due)))
        _add(count.of_others, found)

    def answer(self, one: DueObject, finding: DueFinding) -> None:
        """Count an object whose time is over."""
        (count,) = (each for each in self.counts if each.rule == one.rule)
        match finding:
            case DueFinding.MET:
                count.due += 1
                _add(count.of_due, one.object)
                if one.rule.automatic and len(self.due) < MOST_DUE:
                    self.due.append(one)
            case DueFinding.UNMET:
                count.unmet += 1
                _add(count.of_others, one.object)
            case DueFinding.REFUSED:
                count.refused += 1
                _add(count.of_others, one.object)
                _add(count.of_refused, one.object)


def _add(examples: list[str], found: Held) -> None:
    if len(examples) < EXAMPLES:
        examples.append(str(found))


def read_rules(rules: Iterable[FinalizerRule]) -> tuple[list[NamedFinalizer], list[str]]:
    """The rules that can be followed, and what is wrong with the others."""
    read, problems = [], []
    for each in rules:
        try:
            read.append(_read(each))
        except ValueError as error:
            problems.append(f"{each.name}: {error}")
    return read, problems


def _read(rule: FinalizerRule) -> NamedFinalizer:
    never = why_never(rule.name)
    if never:
        raise ValueError(never)
    try:
        after = parse_after(rule.release_after)
    except ValueError as error:
        raise ValueError(f"releaseAfter: {error}") from None
    if rule.when is not None:
        # The engine is large, and few policies have a condition.
        from crdkeeper.core.finalizers.when import compile_when

        try:
            compile_when(rule.when)
        except ValueError as error:
            raise ValueError(f"when: {error}") from None
    return NamedFinalizer(rule.name, after, rule.when or "", rule.mode == "Automatic")
