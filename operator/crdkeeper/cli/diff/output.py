"""Prints the changes found by `crdkeeper diff`: for reviewers, programs, and code hosts (SARIF)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from crdkeeper.cli import sarif
from crdkeeper.cli.input.files import Failed
from crdkeeper.cli.output.printing import Styled, line, print_json
from crdkeeper.core.compatibility.change import Audience, Change, ChangeKind, Impact
from crdkeeper.core.compatibility.compare import Comparison
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.text import count

_DOCUMENTATION = "docs/diff.md"
_OF_ONE_KIND = 10
"""Changes of one kind that are shown for one version; a person looks only at the first few."""


@dataclass(frozen=True, slots=True)
class FileSpot:
    """A place in a file."""

    file: str
    position: Position

    def __str__(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}"

    def to_object(self) -> dict[str, Any]:
        """The place as JSON."""
        return {"file": self.file, "line": self.position.line, "column": self.position.column}


@dataclass(frozen=True, slots=True)
class LocatedChange:
    """A change of one CRD, with its places in the files."""

    definition: str
    change: Change
    at: FileSpot | None
    """The place in the new file; None if the CRD was removed."""
    was: FileSpot | None
    """The place in the old file; None if there is no file, as for the cluster."""

    @property
    def where(self) -> str:
        """The place to show."""
        return str(self.at or self.was or self.definition)

    @property
    def remedy(self) -> str:
        """The remedy, with the name of this CRD."""
        return self.change.kind.remedy.replace("PLURAL.GROUP", self.definition)

    def to_object(self) -> dict[str, Any]:
        change = self.change
        return {
            "definition": self.definition,
            "version": change.place.version,
            "field": change.place.field,
            "severity": change.severity.value,
            "configured": change.chosen is not None,
            "effects": {who.value: severity.value for who, severity in change.effects.items()},
            "id": change.kind.id,
            "message": change.message,
            "example": change.example,
            "why": change.kind.why,
            "hint": self.remedy,
            "at": self.at.to_object() if self.at else None,
            "was": self.was.to_object() if self.was else None,
        }


@dataclass(slots=True)
class Configured:
    """Which severities the configurations have changed."""

    files: dict[Path, None] = field(default_factory=dict)
    """The configurations that had an effect."""
    changed: int = 0
    """How many changes have another severity."""
    left_out: int = 0
    """How many changes are not reported."""

    def take(self, path: Path, comparison: Comparison) -> None:
        """Count the changes to which a configuration applied in one comparison."""
        if comparison.chosen or comparison.left_out:
            self.files[path] = None
        self.changed += comparison.chosen
        self.left_out += comparison.left_out

    def __str__(self) -> str:
        """A summary for readers; empty if no configuration had an effect."""
        if not self.files:
            return ""
        first, *others = map(str, self.files)
        more = f" and {count(len(others), 'more file')}" if others else ""
        changed = f"{count(self.changed, 'change')} with another severity"
        return f"By configuration ({first}{more}): {changed}, {self.left_out:,} left out."

    def to_object(self) -> dict[str, Any]:
        return {
            "files": [str(each) for each in self.files],
            "changed": self.changed,
            "leftOut": self.left_out,
        }


@dataclass(slots=True)
class DiffResult:
    """The results of a run."""

    compared: int = 0
    found: list[LocatedChange] = field(default_factory=list)
    counts: Counter[Impact] = field(default_factory=Counter)
    """All changes, including those that are not listed because there are too many."""
    incomplete: list[str] = field(default_factory=list)
    """CRDs that are too large to compare completely."""
    failed: list[Failed] = field(default_factory=list)
    configured: Configured = field(default_factory=Configured)

    @property
    def severity(self) -> Impact:
        """The worst of all."""
        return next((each for each in Impact if self.counts[each]), Impact.SAFE)

    @property
    def not_listed(self) -> int:
        """How many changes are only counted."""
        return self.counts.total() - len(self.found)

    def shown(self, *, everything: bool) -> list[LocatedChange]:
        """The changes to show."""
        return [each for each in self.found if everything or each.change.severity is not Impact.SAFE]


class Printer(Protocol):
    """Prints a result."""

    def __call__(self, result: DiffResult, *, everything: bool) -> None:
        """Print it, with or without the safe changes."""


def _print_text(result: DiffResult, *, everything: bool) -> None:
    explained: set[ChangeKind] = set()
    shown = _merged(result.shown(everything=everything))
    places = Counter(_cause(each) for each, _ in shown)
    if not everything:
        # The effects of one shared type in many fields and CRDs need one review.
        shown = list({_cause(each[0]): each for each in reversed(shown)}.values())[::-1]
    for (definition, versions), group in groupby(shown, key=lambda each: (each[0].definition, each[1])):
        line(Styled(f"{definition}{', ' if versions else ''}{versions}", bold=True))
        of_kind: Counter[ChangeKind] = Counter()
        for found, _ in group:
            kind = found.change.kind
            of_kind[kind] += 1
            if everything or of_kind[kind] <= _OF_ONE_KIND:
                _print_change(found, explained, 1 if everything else places[_cause(found)])
        for kind, number in of_kind.items():
            if number > _OF_ONE_KIND and not everything:
                line(f"  and {number - _OF_ONE_KIND:,} more {kind.id} (--all shows them)")
        line()
    for name in result.incomplete:
        line(f"{name}: too large to compare completely", err=True)
    for failure in result.failed:
        place = FileSpot(failure.file, failure.position)
        line(f"{place}: unreadable: {failure.message}", err=True)
    if not result.failed:
        _print_summary(result, everything=everything)


_COLORS = {Impact.BREAKING: "red", Impact.RISKY: "yellow", Impact.SAFE: "green"}


def _cause(found: LocatedChange) -> tuple[str, ...]:
    """What changes have in common that come from one shared type: kind, message and the field's own name."""
    change = found.change
    field = change.place.field
    if "openAPIV3Schema" not in change.place.path.steps:
        return change.kind.id, change.message, field, found.definition
    return change.kind.id, change.message, field.rpartition(".")[2]


def _print_change(found: LocatedChange, explained: set[ChangeKind], places: int) -> None:
    change = found.change
    label = Styled(f"{change.severity.value}[{change.kind.id}]", _COLORS[change.severity])
    was = f" (was at {found.was})" if found.was and _is_gone(found) else ""
    line(f"  {found.where}: ", label, f": {change.place.field}: {change.message}{was}")
    if places > 1:
        line(f"      and the same in {count(places - 1, 'more place')} (--all shows them)")
    if change.kind in explained:
        return
    explained.add(change.kind)
    line(f"      {_hurt(change)}{change.kind.why}")
    if change.severity is not Impact.SAFE:
        line(f"      hint: {found.remedy}")


def _hurt(change: Change) -> str:
    """`Hurts writers, may hurt readers. `, or empty if nobody is affected."""
    by = f"{change.severity.value.capitalize()} by configuration. " if change.chosen is not None else ""
    parts = []
    for severity, verb in ((Impact.BREAKING, "hurts"), (Impact.RISKY, "may hurt")):
        who = [each for each in Audience if change.effects.get(each) is severity]
        if who:
            parts.append(f"{verb} {_listed(who)}")
    said = ", ".join(parts)
    return f"{by}{said[0].upper()}{said[1:]}. " if said else by


def _is_gone(found: LocatedChange) -> bool:
    return found.change.kind.id.endswith("-removed")


def _merged(shown: Iterable[LocatedChange]) -> list[tuple[LocatedChange, str]]:
    """Each change with its versions: the same one in several versions is shown once."""
    versions: dict[tuple[str, str, str, str], tuple[LocatedChange, list[str]]] = {}
    for each in shown:
        change = each.change
        key = each.definition, change.place.field, change.kind.id, change.message
        versions.setdefault(key, (each, []))[1].append(change.place.version)
    merged = [(found, ", ".join(names)) for found, names in versions.values()]
    return sorted(merged, key=lambda each: (each[0].definition, each[1], each[0].change.severity.rank))


def _print_summary(result: DiffResult, *, everything: bool) -> None:
    counts = ", ".join(f"{result.counts[each]:,} {each.value}" for each in Impact)
    hidden = " (--all shows the safe ones)" if result.counts[Impact.SAFE] and not everything else ""
    line(f"{count(result.compared, 'CRD')} compared. Changes: {counts}{hidden}.")
    if result.not_listed:
        line(f"{count(result.not_listed, 'change')} not listed.")
    if result.configured.files:
        line(str(result.configured))
    line(Styled(_verdict(result), _COLORS[result.severity], bold=True))


def _verdict(result: DiffResult) -> str:
    severity = result.severity
    if severity is Impact.SAFE:
        return "Compatible as far as compared." if result.incomplete else "Compatible."
    hurt = {who for each in result.found if each.change.severity is severity for who in each.change.affected}
    who = _listed(each for each in Audience if each in hurt)
    verdict = f"{severity.value.capitalize()} for {who}" if who else severity.value.capitalize()
    return f"{verdict}." if severity is Impact.BREAKING else f"{verdict}: needs a review."


def _listed(audiences: Iterable[Audience]) -> str:
    names = [each.value for each in audiences]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _print_json(result: DiffResult, *, everything: bool) -> None:
    causes = Counter(map(_cause, result.found))
    document = {
        "compared": result.compared,
        "severity": result.severity.value,
        "counts": {each.value: result.counts[each] for each in Impact},
        "changes": [{**each.to_object(), "alike": causes[_cause(each)]} for each in result.found],
        "notListed": result.not_listed,
        "configuration": result.configured.to_object(),
        "incomplete": result.incomplete,
        "unreadable": [
            {**FileSpot(each.file, each.position).to_object(), "message": each.message}
            for each in result.failed
        ],
    }
    print_json(document)


_LEVELS = {Impact.BREAKING: "error", Impact.RISKY: "warning", Impact.SAFE: "note"}


def _print_sarif(result: DiffResult, *, everything: bool) -> None:
    shown = result.shown(everything=everything)
    print_json(
        sarif.document(
            [each.change.kind for each in shown],
            [_sarif_result(each) for each in shown],
            result.failed,
            complete=not result.incomplete,
            notes=[str(result.configured)] if result.configured.files else (),
            cut=f"{count(result.not_listed, 'change')} not listed" if result.not_listed else "",
            documentation=_DOCUMENTATION,
        )
    )


def _sarif_result(found: LocatedChange) -> dict[str, Any]:
    change = found.change
    spot = found.at or found.was
    version = f" {change.place.version}" if change.place.version else ""
    text = f"{found.definition}{version}: {change.place.field}: {change.message}"
    return {
        "ruleId": change.kind.id,
        "level": _LEVELS[change.severity],
        "message": {"text": f"{text}\n{_hurt(change)}{change.kind.why}\n{found.remedy}"},
        "locations": [sarif.location(spot.file, spot.position)] if spot else [],
    }


PRINTERS: dict[str, Printer] = {"text": _print_text, "json": _print_json, "sarif": _print_sarif}
