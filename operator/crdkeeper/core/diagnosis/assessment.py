"""What a CRD's schemas say about it: computed once for each revision, as it takes up to seconds."""

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
    """All that needs the schemas; the schemas themselves are forgotten."""

    structure: Structure = field(default_factory=Structure)
    subresources: DeclaredSubresources = field(default_factory=DeclaredSubresources)
    findings: FindingSummary = field(default_factory=FindingSummary)
    recorded: bool = False
    """Whether it stands in for one: only the counts of its findings are known, by the report on record."""


def assess(crd: Mapping[str, Any]) -> Assessment:
    """Assess a CRD object as the API server returned it."""
    try:
        decoded = DEFINITION.decode(crd, Path("", ()), Report())
        known = {} if decoded is ABSENT else decoded
        return Assessment(
            structure=structure(known),
            subresources=declared_subresources(crd),
            findings=collect(rows(lint(crd, live=True))),
        )
    except RecursionError:
        return unassessed("the schemas are nested too deeply to be checked")


def unassessed(why: str) -> Assessment:
    """The assessment of a CRD that could not be assessed: said, and not taken for sound."""
    left = collect([("Unchecked", "assessment", "spec", why)])
    return Assessment(structure=Structure(decided=False), findings=left)
