"""Names that two CRDs of one run claim: each is valid alone, but one would never become established.

The API server's naming controller compares plural, singular and short names of one group with each other, and
kinds with list kinds (apiextensions-apiserver, pkg/controller/status/naming_controller.go).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import Step
from crdkeeper.cli.input.files import LocatedDefinition
from crdkeeper.cli.lint.config import Configurations
from crdkeeper.cli.lint.findings import LintFinding
from crdkeeper.core.documents.yamldocument import Position
from crdkeeper.core.lint.conventions.definition import NAMES_CONFLICT


@dataclass(frozen=True, slots=True)
class Claim:
    """A name that a CRD claims in its group."""

    file: str
    position: Position
    definition: str
    group: str
    name: str
    field: str

    @property
    def scope(self) -> tuple[str, bool, str]:
        """What no other CRD may claim: kinds are capitalized, and compared only with kinds."""
        return self.group, self.field.lower().endswith("kind"), self.name


def claims(definition: LocatedDefinition) -> Iterator[Claim]:
    """The names that a CRD claims."""
    spec, metadata = definition.value.get("spec"), definition.value.get("metadata")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(metadata, dict):
        return
    for field, steps, name in _names(names):
        if isinstance(name, str):
            yield Claim(
                definition.file,
                definition.find(("spec", "names", *steps)),
                str(metadata.get("name") or ""),
                str(spec.get("group") or ""),
                name,
                field,
            )


def _names(names: dict[str, Any]) -> Iterator[tuple[str, tuple[Step, ...], Any]]:
    for key in ("plural", "singular", "kind", "listKind"):
        if key in names:
            yield f"spec.names.{key}", (key,), names[key]
    short = names.get("shortNames")
    for i, each in enumerate(short if isinstance(short, list) else ()):
        yield f"spec.names.shortNames[{i}]", ("shortNames", i), each


def conflicts(claimed: Iterable[Claim], configurations: Configurations) -> Iterator[LintFinding]:
    """A finding for each name that another CRD has claimed before."""
    first: dict[tuple[str, bool, str], Claim] = {}
    for claim in claimed:
        earlier = first.setdefault(claim.scope, claim)
        if earlier.definition == claim.definition:
            continue
        configuration = configurations.of_name(claim.file)
        severity = configuration.severities.get(NAMES_CONFLICT.id, NAMES_CONFLICT.severity)
        if severity is not None and configuration.rules.shows(NAMES_CONFLICT.id, severity, everything=True):
            message = (
                f"{claim.name} is already used by {earlier.definition} ({earlier.file or 'in the cluster'})"
            )
            yield LintFinding(
                claim.file, claim.position, severity, NAMES_CONFLICT, claim.definition, claim.field, message
            )
