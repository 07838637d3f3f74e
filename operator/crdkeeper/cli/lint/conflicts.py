"""Names that two CRDs of one run claim: each is valid alone, but one would never become established.

The API server's naming controller compares plural, singular and short names of one group with each other, and
kinds with list kinds (apiextensions-apiserver, pkg/controller/status/naming_controller.go). Before that, a
missing singular and a missing list kind are made of the kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crdkeeper.apiserver.definitions.rules.internalform import default_names
from crdkeeper.cli.input.files import LocatedDefinition
from crdkeeper.cli.lint.check import KnownPlace, add_found
from crdkeeper.cli.lint.config import Configurations
from crdkeeper.cli.lint.findings import LintResult
from crdkeeper.core.documents.yamldocument import Document, Position
from crdkeeper.core.lint.annotation import ANNOTATION, apply_annotation
from crdkeeper.core.lint.conventions.definition import NAMES_CONFLICT
from crdkeeper.core.lint.found import Found


@dataclass(frozen=True, slots=True)
class Claim:
    """A name that a CRD claims in its group."""

    name: str
    at: KnownPlace
    derived: bool = False
    """Whether it is made of the kind."""

    @property
    def is_kind(self) -> bool:
        """Kinds are capitalized, and compared only with kinds."""
        return self.at.field.lower().endswith("kind")


@dataclass(frozen=True, slots=True)
class Claimant:
    """A CRD that claims names."""

    definition: LocatedDefinition
    """Only what says which findings are ignored: the documents of a run may take all memory."""
    name: str
    group: str
    claims: tuple[Claim, ...]


def claimant(definition: LocatedDefinition) -> Claimant | None:
    """A CRD with the names that it claims; None if it is not complete enough to claim any."""
    spec, metadata = definition.value.get("spec"), definition.value.get("metadata")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(metadata, dict):
        return None
    name, annotations = metadata.get("name"), metadata.get("annotations")
    ignoring = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    kept = replace(
        definition,
        document=Document(None, Position(), []),
        steps=(),
        value={"metadata": {"name": name, "annotations": {ANNOTATION: ignoring}}},
        old=None,
        composite=None,
    )
    return Claimant(kept, str(name or ""), str(spec.get("group") or ""), tuple(_claims(definition, names)))


def _claims(definition: LocatedDefinition, names: Mapping[str, Any]) -> Iterator[Claim]:
    given, kind = definition.origin["spec"]["names"], names.get("kind")
    defaults = default_names(kind) if isinstance(kind, str) and kind else {}
    for key in ("plural", "singular", "kind", "listKind"):
        name = names.get(key) or defaults.get(key)
        if isinstance(name, str):
            at = KnownPlace(f"spec.names.{key}", definition.find(("spec", "names", key)))
            yield Claim(name, at, derived=not given.get(key))
    short = names.get("shortNames")
    for i, name in enumerate(short if isinstance(short, list) else ()):
        if name and isinstance(name, str):
            steps = ("spec", "names", "shortNames", i)
            yield Claim(name, KnownPlace(f"spec.names.shortNames[{i}]", definition.find(steps)))


def add_conflicts(
    claimants: Iterable[Claimant], configurations: Configurations, result: LintResult, *, everything: bool
) -> None:
    """Add a finding for each name that another CRD has claimed before. Raises BadConfiguration."""
    first: dict[tuple[str, bool, str], Claimant] = {}
    for each in claimants:
        taken: list[tuple[Claim, Claimant]] = []
        for claim in each.claims:
            earlier = first.setdefault((each.group, claim.is_kind, claim.name), each)
            if earlier.name != each.name:
                taken.append((claim, earlier))
        if taken:
            found = _found(taken)
            # Errors in the annotation are among the findings for the CRD itself.
            judged = apply_annotation(each.definition.value["metadata"], found)[: len(found)]
            configuration = configurations.of_name(each.definition.file)
            add_found(judged, each.definition, configuration, result, everything=everything)


def _found(taken: Sequence[tuple[Claim, Claimant]]) -> list[Found]:
    kind_is_taken = any(claim.at.field == "spec.names.kind" for claim, _ in taken)
    found: list[Found] = []
    for claim, earlier in taken:
        if claim.derived and kind_is_taken:
            continue  # It changes with the kind.
        name = f"{claim.name} (by default)" if claim.derived else claim.name
        message = f"{name} is already used by {earlier.name} ({earlier.definition.file})"
        found.append(Found(NAMES_CONFLICT, claim.at, (), message, NAMES_CONFLICT.severity))
    return found
