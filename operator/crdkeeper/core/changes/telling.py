"""What `kubectl apply` shows of an examined change: warnings of bounded size, and the refusal."""

from collections.abc import Iterator, Mapping
from typing import Final

from crdkeeper.api.meta import format_time
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.changes.examination import Examination
from crdkeeper.core.changes.guarding import ALLOW_CHANGE, GuardingPolicy
from crdkeeper.core.compatibility.change import Audience, Change, Impact
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.tally import EffectCount
from crdkeeper.core.text import count, visible

WARNING_BYTES: Final = 256
"""Of one warning: API servers cut longer ones where there are many."""
ALL_BYTES: Final = 4000
"""Of all warnings: API servers show 4,096."""
_HARMS_SHOWN: Final = 6
_CHANGES_SHOWN: Final = 9
_WRITERS_SHOWN: Final = 3
_NAME_BYTES: Final = 120
_REHEARSE: Final = "`crdkeeper rehearse -f FILE`"
_MEANINGS: Final[Mapping[EffectKind, str]] = {
    EffectKind.UNREADABLE: "could not be read any more",
    EffectKind.APPLY_FAILS: "could not be applied server-side: managedFields name a version that goes",
    EffectKind.UNCONVERTIBLE: "could not be converted any more",
    EffectKind.PRUNED: "would lose {field}",
    EffectKind.LOST_ON_WRITE: "would lose {field} with the next write",
    EffectKind.CHANGED: "would have another value in {field}",
    EffectKind.CONVERTED_DIFFERENTLY: "would be converted differently in {field}",
    EffectKind.WRITE_REFUSED: "would be refused with every write because of {field}",
    EffectKind.REFUSED: "would be refused when created again, or once {field} changes",
    EffectKind.STATUS_REFUSED: "would be refused with the next status that changes {field}",
}
"""Not the API server's messages: they have values of objects, which not every author of CRDs may read."""


def harms(examination: Examination) -> list[EffectCount]:
    """What the change does to live objects that exist: losses and refusals."""
    found = examination.tally.findings()
    return [each for each in found if each.kind in _MEANINGS and not each.at_new_version]


def refusal_of(examination: Examination, guard: GuardingPolicy) -> str:
    """Why the change is refused; empty if it passes."""
    found = harms(examination)
    if not guard.denies or not found:
        return ""
    more = f"; and {count(len(found) - 1, 'more finding')}" if len(found) > 1 else ""
    remedy = f"kubectl annotate crd {examination.request.name} {ALLOW_CHANGE}=REASON"
    by = f"DefinitionPolicy {guard.policy} refuses it (spec.changes)"
    said = bounded(visible(_harm(examination, found[0])), LINE_BYTES // 2)
    return f"{by}: {said}{more}. To allow it: {remedy}"


def warnings_of(examination: Examination, guard: GuardingPolicy) -> list[str]:
    """The warnings, the most important first."""
    told: list[str] = []
    size = 0
    lines = list(_lines(examination, guard))
    for number, each in enumerate(lines):
        line = bounded(visible(each), WARNING_BYTES)
        size += len(line.encode())
        if size > ALL_BYTES - WARNING_BYTES:
            told.append(f"and {count(len(lines) - number, 'more warning')}")
            break
        told.append(line)
    return told


def _lines(examination: Examination, guard: GuardingPolicy) -> Iterator[str]:
    found = harms(examination)
    changes = _told(examination)
    if guard.allowed and found:
        name = examination.request.name
        remedy = f"kubectl annotate crd {bounded(name, _NAME_BYTES)} {ALLOW_CHANGE}-"
        yield f"allowed by {ALLOW_CHANGE} ({bounded(guard.allowed, _NAME_BYTES // 2)}); afterwards: {remedy}"
    for each in found[:_HARMS_SHOWN]:
        yield _harm(examination, each)
    if len(found) > _HARMS_SHOWN:
        yield f"and {len(found) - _HARMS_SHOWN} more findings about live objects"
    yield from _counted(examination)
    yield from _writers(examination)
    for change in changes[:_CHANGES_SHOWN]:
        yield _change(change)
    if len(changes) > _CHANGES_SHOWN:
        yield f"and {len(changes) - _CHANGES_SHOWN:,} more changes: `crdkeeper diff -f FILE` lists them"
    if examination.rules.misfit:
        misfit = bounded(examination.rules.misfit, _NAME_BYTES)
        yield f"the VersionConversion's rules do not fit, so that the former ones stay: {misfit}"
    yield from _doubts(examination)


def _told(examination: Examination) -> list[Change]:
    """The changes to show: what is only for readers to get used to would hide the others."""
    known = examination.comparison
    if known is None:
        return []
    return [each for each in known.changes if each.severity is not Impact.SAFE]


def _change(change: Change) -> str:
    place = f"{change.place.version}: " if change.place.version else ""
    field = bounded(change.place.field, _NAME_BYTES)
    hurt = [each.value for each in Audience if each in change.affected]
    message = bounded(change.message, _NAME_BYTES)
    return f"{change.severity.value}[{change.kind.id}]: {place}{field}: {message} (for {', '.join(hurt)})"


def _harm(examination: Examination, harm: EffectCount) -> str:
    field = bounded(harm.field, _NAME_BYTES) or "the whole object"
    versions = f" at {', '.join(sorted(harm.versions))}" if harm.versions else ""
    such = f", such as {bounded(str(harm.examples[0]), _NAME_BYTES)}" if harm.examples else ""
    meaning = _MEANINGS[harm.kind].format(field=field)
    return f"{_of(examination, harm.count)} {meaning}{bounded(versions, 40)}{such}"


def _of(examination: Examination, number: int) -> str:
    """`312 of 4,000 Databases`."""
    kind, left = bounded(examination.request.kind, 63), examination.left
    examined = examination.tally.objects
    which = f"the first {examined:,} of about {examined + left:,}" if left else f"{examined:,}"
    return f"{number:,} of {which} {kind} objects"


def _counted(examination: Examination) -> Iterator[str]:
    """What the last census says of all objects, if not all were examined now."""
    census = examination.census
    if census is None or examination.is_whole:
        return
    kind, removed = bounded(examination.request.kind, 63), examination.removed
    for each in census.versions:
        if each.version in removed or each.version in examination.gone:
            meaning = (
                "goes: they could not be applied" if each.version in removed else "is not served any more"
            )
            yield (
                f"{each.objects:,} of {census.objects:,} {kind} objects named {each.version} in "
                f"managedFields at {format_time(census.taken_at)}, which {meaning}"
            )


def _writers(examination: Examination) -> Iterator[str]:
    for (version, manager), number in examination.writers.most_common(_WRITERS_SHOWN):
        who = bounded(manager, _NAME_BYTES)
        yield f"{who} wrote {_of(examination, number)} at {version}, which is not served any more"


def _doubts(examination: Examination) -> Iterator[str]:
    known = examination.comparison
    if examination.incomparable:
        yield f"the CRDs cannot be compared: {examination.incomparable}"
    elif known is None or not known.complete:
        yield "the CRDs are too large to compare in time: `crdkeeper diff -f FILE` compares them"
    if examination.unruled:
        why = bounded(examination.unruled, _NAME_BYTES)
        yield f"what the VersionConversion's rules do is not known: {why}"
    if not examination.concerns_objects:
        return
    if not examination.tally.objects and examination.unexamined:
        census = examination.census
        counted = f"; there were {census.objects:,} at {format_time(census.taken_at)}" if census else ""
        yield f"no live object was examined: {examination.unexamined}{counted}"
    elif examination.unexamined or examination.left:
        examined, left = examination.tally.objects, examination.left
        total = f" of about {examined + left:,}" if left else ""
        why = f": {examination.unexamined}" if examination.unexamined else ""
        yield f"{count(examined, 'live object')}{total} examined{why}; {_REHEARSE} examines all"
    if examination.uncounted and not examination.is_whole:
        yield f"the last count of all objects is not known: {examination.uncounted}"
    open_ = examination.tally.affected.get(EffectKind.INDETERMINATE, 0)
    if open_:
        yield f"{_of(examination, open_)} could not be judged wholly: {_REHEARSE} asks the API server"
