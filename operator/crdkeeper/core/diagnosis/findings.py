"""The linter's findings for a CRD, in compact form.

A cluster has thousands of CRDs, and some have hundreds of findings. The operator keeps them to write a report
again when a condition changes. They are repetitive, so they are kept compressed: 2 KB instead of 20.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import orjson

from crdkeeper.api.definitionreport import FINDINGS_SHOWN, SEVERITIES, Finding, FindingCounts
from crdkeeper.api.definitionreport import Severity as ReportSeverity
from crdkeeper.core.lint.found import Found
from crdkeeper.core.lint.merging import merge
from crdkeeper.core.lint.severity import Severity

_PATH_LIMIT = 512
_MESSAGE_LIMIT = 512


@dataclass(frozen=True, slots=True)
class FindingSummary:
    """The worst findings, compressed, and the number of findings of each severity."""

    packed: bytes = b""
    refused: int = 0
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    unchecked: int = 0

    def shown(self) -> list[Finding]:
        """The worst findings, sorted by severity, then in the order of the linter."""
        if not self.packed:
            return []
        unpacked: list[Row] = orjson.loads(zlib.decompress(self.packed))
        return [
            Finding.model_construct(severity=severity, id=id, path=path, message=message)
            for severity, id, path, message in unpacked
        ]

    def counts(self) -> FindingCounts:
        """The counts of all findings."""
        return FindingCounts(
            total=self.refused + self.errors + self.warnings,
            refused=self.refused,
            errors=self.errors,
            warnings=self.warnings,
            notes=self.notes,
            unchecked=self.unchecked,
        )


Row = tuple[ReportSeverity, str, str, str]
"""Severity, id, path and message."""


def collect(found: Iterable[Row]) -> FindingSummary:
    """Count all, and keep the worst; notes are only counted."""
    everything = list(found)
    counts = Counter(each[0] for each in everything)
    listed = [each for each in everything if each[0] != "Note"]
    # Sorting is stable: within a severity, the order of the checks remains.
    worst = sorted(listed, key=lambda each: SEVERITIES.index(each[0]))[:FINDINGS_SHOWN]
    shown = [
        (severity, id, path[:_PATH_LIMIT], message[:_MESSAGE_LIMIT]) for severity, id, path, message in worst
    ]
    return FindingSummary(
        packed=zlib.compress(orjson.dumps(shown)) if shown else b"",
        refused=counts["Refused"],
        errors=counts["Error"],
        warnings=counts["Warning"],
        notes=counts["Note"],
        unchecked=counts["Unchecked"],
    )


def rows(found: Iterable[Found]) -> Iterator[Row]:
    """The linter's findings that a report shows: those that count at present and are not ignored."""
    for each in merge(found):
        if not each.ignored and not each.behind:
            refused = each.final and each.severity is Severity.ERROR
            severity = "Refused" if refused else _SEVERITIES[each.severity]
            yield severity, each.rule.id, each.field, each.message + each.elsewhere


_SEVERITIES: Mapping[Severity, ReportSeverity] = {
    Severity.ERROR: "Error",
    Severity.WARNING: "Warning",
    Severity.INFO: "Note",
    Severity.UNCHECKED: "Unchecked",
}
