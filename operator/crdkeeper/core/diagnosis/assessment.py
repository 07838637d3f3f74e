"""What a CRD's schemas show: computed once for each revision, because it takes up to seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.apiserver.definitions.fields import DEFINITION
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.diagnosis.findings import FindingSummary, collect, rows
from crdkeeper.core.diagnosis.structure import Structure, structure
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources, declared_subresources
from crdkeeper.core.lint.linter import lint


@dataclass(frozen=True, slots=True)
class Assessment:
    """All results that need the schemas; the schemas themselves are not kept."""

    structure: Structure = field(default_factory=Structure)
    subresources: DeclaredSubresources = field(default_factory=DeclaredSubresources)
    findings: FindingSummary = field(default_factory=FindingSummary)
    recorded: bool = False
    """Whether this is a stand-in from the stored report, which has only the counts of the findings."""


def assess(crd: Mapping[str, Any]) -> Assessment:
    """Assess a CRD object as returned by the API server."""
    try:
        found = lint(crd, live=True)
        # What the API server would accept as new is structural.
        accepted = not any(each.final for each in found)
        return Assessment(
            structure=Structure() if accepted else structure(_decoded(crd)),
            subresources=declared_subresources(crd),
            findings=collect(rows(found)),
        )
    except RecursionError:
        return unassessed("the schemas are nested too deeply to be checked")


def _decoded(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    decoded: Any = DEFINITION.decode(crd, Path("", ()), Report())
    known: Mapping[str, Any] = {} if decoded is ABSENT else decoded
    return known


def unassessed(why: str) -> Assessment:
    """The assessment of a CRD that could not be assessed: reported as such, not as healthy."""
    left = collect([("Unchecked", "assessment", "spec", why)])
    return Assessment(structure=Structure(decided=False), findings=left)
