"""The outcome of a rehearsal: its results, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from crdkeeper.core.rehearsal.definition import NONE, CompiledDefinition
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.tally import EffectTally
from crdkeeper.core.removedversions import APPLY_REMEDY


class RehearsalVerdict(Enum):
    """The overall result."""

    SAFE = "Safe"
    HARMFUL = "Harmful"
    REJECTED = "Rejected"
    UNCERTAIN = "Uncertain"


@dataclass(slots=True)
class RehearsalReport:
    """One rehearsal."""

    name: str
    offline: bool = False
    """Whether there was no API server to check the CRD or the objects."""
    by_server: int = 0
    """How many objects the API server judged, too; for the others there is only the prediction."""
    tally: EffectTally = field(default_factory=EffectTally)
    rejections: Sequence[str] = ()
    """Why the API server rejects the CRD itself; then no object was examined."""
    is_new: bool = False
    """The CRD does not exist yet, so there is nothing to rehearse."""
    notes: list[str] = field(default_factory=list)
    """What was not rehearsed, and why."""
    doubts: list[str] = field(default_factory=list)
    """Why a rehearsal without findings is not a proof."""
    gone: int = 0
    """Objects that were deleted in the meantime."""

    @property
    def verdict(self) -> RehearsalVerdict:
        """Rejected before harmful, harmful before uncertain."""
        if self.rejections:
            return RehearsalVerdict.REJECTED
        if any(kind.is_harm for kind in self.tally.affected):
            return RehearsalVerdict.HARMFUL
        if self.doubts or EffectKind.INDETERMINATE in self.tally.affected:
            return RehearsalVerdict.UNCERTAIN
        return RehearsalVerdict.SAFE


def note_unserved(report: RehearsalReport, old: CompiledDefinition, new: CompiledDefinition) -> None:
    """Count what all objects lose with a version that is no longer served.

    It is harm even without objects: clients that request that version fail.
    """
    away = [each for each in old.served if each not in new.served]
    if not away:
        return
    message = f"{', '.join(away)} will not be served: clients that use it get 404"
    report.tally.add_to_all(Effect(EffectKind.NOT_SERVED, "", "", message, message), away)


def note_apply(report: RehearsalReport) -> None:
    """Add what to do if a server-side apply would fail."""
    if EffectKind.APPLY_FAILS in report.tally.affected:
        report.notes.append(APPLY_REMEDY.replace("PLURAL.GROUP", report.name))


def note_conversion(
    report: RehearsalReport, old: CompiledDefinition, new: CompiledDefinition, stored_in: Sequence[str]
) -> None:
    """Add at which versions nobody can say whether fields are converted differently than before."""
    known = [each for each in new.served if each in old.served and _is_known(new, each, stored_in)]
    before = [each for each in known if not _is_known(old, each, stored_in)]
    if before:
        report.notes.append(
            f"{old.webhook} converts today, and what it makes of objects is not known: whether fields are "
            f"converted differently at {', '.join(before)} was not rehearsed; give its rules with --old-rules"
        )


def _is_known(definition: CompiledDefinition, version: str, stored_in: Sequence[str]) -> bool:
    """Whether the result of converting to a version is known."""
    return all(definition.converts(source, version) for source in stored_in)


def doubts(
    old: CompiledDefinition | None, new: CompiledDefinition, stored_in: Sequence[str], remark: str = ""
) -> list[str]:
    """What cannot be predicted for any object, because of the CRDs. `stored_in` are the stored versions.

    The `remark` says why there are no rules of the new CRD's webhook.
    """
    found = [
        f"the schema of {each.name} cannot be judged here: {each.problem}"
        for each in new.versions.values()
        if each.schema is None
    ]
    away = [each for each in new.versions if not _is_known(new, each, stored_in)]
    if away:
        found.append(
            f"{new.webhook} converts, and what it makes of objects is not known: what is read at "
            f"{', '.join(away)} was not rehearsed; give its rules with --rules{remark and f' ({remark})'}"
        )
    if old is not None:
        hidden = [each for each in stored_in if each not in old.served]
        if hidden:
            found.append(
                f"objects may be stored in {', '.join(hidden)}, which is not served: what it alone has "
                "is not seen"
            )
        elif len(stored_in) > 1 and old.strategy != NONE:
            found.append(
                f"objects may be stored in {', '.join(stored_in)}, and a webhook converts them: migrate them "
                "first"
            )
    return found
