"""What the linter finds in a CRD, kept small.

A cluster has thousands of CRDs, and some have hundreds of findings. The operator keeps them to write a report
anew when a condition changes. They repeat themselves, so they are kept compressed: 2 KB instead of 20.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from crdkeeper.api.definitionreport import FINDINGS_SHOWN, SEVERITIES, Finding, FindingCounts, Severity
from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.core.lint import registry
from crdkeeper.core.lint.annotation import ignored_by
from crdkeeper.core.lint.check import check_conventions

_PATH_LIMIT = 512
_MESSAGE_LIMIT = 512


@dataclass(frozen=True, slots=True)
class Findings:
    """The worst findings, compressed, and how many there are of each severity."""

    packed: bytes = b""
    refused: int = 0
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    unchecked: int = 0

    def shown(self) -> list[Finding]:
        """The worst findings, in the order of severity and then as they were found."""
        if not self.packed:
            return []
        unpacked: list[Found] = orjson.loads(zlib.decompress(self.packed))
        return [
            Finding.model_construct(severity=severity, id=id, path=path, message=message)
            for severity, id, path, message in unpacked
        ]

    def counts(self) -> FindingCounts:
        """All of them."""
        return FindingCounts(
            total=self.refused + self.errors + self.warnings,
            refused=self.refused,
            errors=self.errors,
            warnings=self.warnings,
            notes=self.notes,
            unchecked=self.unchecked,
        )


Found = tuple[Severity, str, str, str]
"""Severity, id, path and message."""


def collect(found: Iterable[Found]) -> Findings:
    """Count all, and keep the worst; notes are only counted."""
    everything = list(found)
    counts = Counter(each[0] for each in everything)
    listed = [each for each in everything if each[0] != "Note"]
    # Sorting is stable: within a severity the order of the checks stays.
    worst = sorted(listed, key=lambda each: SEVERITIES.index(each[0]))[:FINDINGS_SHOWN]
    shown = [
        (severity, id, path[:_PATH_LIMIT], message[:_MESSAGE_LIMIT]) for severity, id, path, message in worst
    ]
    return Findings(
        packed=zlib.compress(orjson.dumps(shown)) if shown else b"",
        refused=counts["Refused"],
        errors=counts["Error"],
        warnings=counts["Warning"],
        notes=counts["Note"],
        unchecked=counts["Unchecked"],
    )


def lint(crd: Mapping[str, Any], decoded: Mapping[str, Any]) -> Iterator[Found]:
    """What the API server would say if the CRD were created now, and what breaks the conventions.

    `decoded` is the CRD as the server decodes it. Raises RecursionError if it is nested too deeply.
    """
    ignored = ignored_by(crd["metadata"])
    report = check_creation(_as_authored(crd))
    for violation in report.violations:
        yield "Refused", violation.rule.id, str(violation.path), violation.message
    for warning in report.warnings:
        yield "Warning", warning.rule.id, str(warning.path), warning.message
    for left in report.unchecked:
        yield "Unchecked", left.rule.id, str(left.path), left.reason
    for found in check_conventions(decoded):
        if not ignored(found.convention.id, found.field):
            yield _SEVERITIES[found.severity], found.convention.id, found.field, found.message


_SEVERITIES: Mapping[registry.Severity, Severity] = {
    registry.Severity.ERROR: "Error",
    registry.Severity.WARNING: "Warning",
    registry.Severity.INFO: "Note",
}


_SET_BY_SERVER = frozenset(
    (
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
        "ownerReferences",
        "finalizers",
    )
)


def _as_authored(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    """The CRD without what the API server and controllers have added: that is in no manifest."""
    metadata = {key: value for key, value in crd["metadata"].items() if key not in _SET_BY_SERVER}
    return {**{key: value for key, value in crd.items() if key != "status"}, "metadata": metadata}
