"""A migration that several processes share: which part an object is in, who works on which part, and the sum.

What a part's state says is never evidence: that all parts are done only starts the second pass, in which one
process reads all objects. So the worst that a stale or wrong state can do is to cost time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from crdkeeper.api.meta import find_condition
from crdkeeper.api.storagemigration import (
    MigrationClaim,
    MigrationPart,
    RefusedObject,
    StorageMigration,
    StorageMigrationStatus,
)
from crdkeeper.api.texts import bounded
from crdkeeper.core.migration.counts import SweepTally

BEAT_SECONDS = 5.0
"""How often a holder shows that it is alive, more or less: see `until_beat`."""
DEAD_SECONDS = 15.0
"""Without a beat for this long, a holder is taken for dead. If it is not, two processes do the same work."""


_EXAMPLES = 3
_EXAMPLE_BYTES = 200
"""The longest text of an example: each write of any part sends and stores those of all parts again."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A process of a shared migration: the part that it begins with, and the number of parts it wants."""

    index: int
    count: int


def part_of(namespace: str, name: str, count: int) -> int:
    """The part of an object: the first 8 bytes of the SHA-256 of NAMESPACE/NAME, modulo `count`.

    All processes of a run must agree on it, also if they are of different releases: it does not change.
    """
    digest = sha256(f"{namespace}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


def name_of_pass(status: StorageMigrationStatus) -> str:
    """Identifies a pass that rewrites, among all of this migration: each has its own evidence or round."""
    return f"{status.restarts}.{status.quarantine.rounds}.{status.settled_resource_version}"


def pass_at_work(migration: StorageMigration) -> str | None:
    """The pass whose parts are to be worked on now; None while there is none, or while it is held up."""
    status = migration.status
    rewritten = find_condition(status.conditions, "Rewritten")
    if migration.spec.suspend or status.target is None or not status.settled_resource_version:
        return None
    if status.sweep is None or status.sweep.done or status.sweep.type != "Rewrite":
        return None
    at_work = rewritten is not None and rewritten.reason == "Rewriting"
    return name_of_pass(status) if at_work else None


@dataclass(slots=True)
class Liveness:
    """Which holders are alive: those whose claims change. Only our own monotonic clock decides."""

    _seen: dict[str, tuple[tuple[str, int, int], float]] = field(default_factory=dict)

    def is_free(self, key: str, claim: MigrationClaim, now: float) -> bool:
        """Whether nobody holds a claim, or its holder has shown nothing for too long."""
        if not claim.holder:
            return True
        state = (claim.holder, claim.term, claim.beat)
        known, since = self._seen.get(key, (None, now))
        if known != state:
            since = now
        self._seen[key] = (state, since)
        return now - since > DEAD_SECONDS


def next_part(parts: Sequence[MigrationPart], work: str, shard: Shard, free: Sequence[bool]) -> int | None:
    """The part to work on next in the pass `work`: the shard's own first, then those after it."""
    for offset in range(len(parts)):
        index = (shard.index + offset) % len(parts)
        if free[index] and not (parts[index].done and parts[index].sweep == work):
            return index
    return None


def begun(part: MigrationPart, work: str, holder: str) -> MigrationPart:
    """The part as a new holder takes it for the pass `work`: it resumes where the previous one stopped."""
    kept = part.model_copy(deep=True) if part.sweep == work else MigrationPart(sweep=work, beat=part.beat)
    kept.holder, kept.term, kept.trouble = holder, part.term + 1, ""
    return kept


def until_beat(chance: float) -> float:
    """Seconds until the next beat. `chance` is from 0 to 1; it keeps processes from writing in step."""
    return BEAT_SECONDS * (0.8 + 0.4 * chance)


@dataclass(frozen=True, slots=True)
class Division:
    """The parts of a shared migration in its latest pass that rewrites."""

    count: int
    done: int
    at_work: int


def division(status: StorageMigrationStatus) -> Division | None:
    """How many parts are done and at work; None if the migration is not shared."""
    if status.shards is None:
        return None
    parts, work = status.shards.parts, name_of_pass(status)
    done = sum(each.done and each.sweep == work for each in parts)
    at_work = sum(bool(each.holder) and each.sweep == work and not each.done for each in parts)
    return Division(len(parts), done, at_work)


def dealt_with(part: MigrationPart) -> int:
    """How many objects of a part are done: what was written after its token is not scanned yet."""
    return max(part.scanned, part.rewritten + part.gone + part.refused)


def examples(known: Sequence[RefusedObject], fresh: Sequence[RefusedObject]) -> list[RefusedObject]:
    """The first refused objects of a part, with their texts shortened."""
    return [*known, *map(_shortened, fresh[:_EXAMPLES])][:_EXAMPLES]


def _shortened(refused: RefusedObject) -> RefusedObject:
    texts = {
        "reason": refused.reason,
        "denied_by": refused.denied_by,
        "field": refused.field,
        "message": refused.message,
    }
    return refused.model_copy(update={name: bounded(text, _EXAMPLE_BYTES) for name, text in texts.items()})


def summed(parts: Sequence[MigrationPart], work: str) -> tuple[SweepTally, bool]:
    """What all parts have counted in the pass `work`, and whether all of them are done."""
    mine = [each for each in parts if each.sweep == work]
    done = len(mine) == len(parts) and all(each.done for each in mine)
    scanned = sum(map(dealt_with, mine))
    tally = SweepTally(
        scanned=scanned,
        rewritten=sum(each.rewritten for each in mine),
        gone=sum(each.gone for each in mine),
        total=scanned if done else max([scanned, *(each.total for each in mine)]),
        refused_count=sum(each.refused for each in mine),
        refused=_named(mine),
    )
    return tally, done


def _named(parts: Sequence[MigrationPart]) -> list[RefusedObject]:
    return [refused for each in parts for refused in each.examples]


def stopped_by(parts: Sequence[MigrationPart], work: str, known: Sequence[int]) -> str:
    """Why nobody can go on: the trouble of a part, if every part left was given up because of one.

    Troubles of the terms in `known`, one for each part, are old. Empty if somebody works, or may begin.
    """
    left = [
        (each, term)
        for each, term in zip(parts, known, strict=True)
        if not (each.done and each.sweep == work)
    ]
    if any(each.holder or not each.trouble or each.term == term for each, term in left):
        return ""
    return next((each.trouble for each, _ in left), "")
