"""Versions that go, and the CompositionRevisions by which composites run at them.

A revision is for one version. When that is not served any more, its composites have no revision: what is
composed of them stays as it is, and follows nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.core.composer.reasons import VERSION_IN_USE
from crdkeeper.core.composer.wording import SHOWN, listed
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.text import count


@dataclass(frozen=True, slots=True)
class RevisionUse:
    """A CompositionRevision by which composites run."""

    name: str
    composition: str
    version: str
    """Of the composites that it is for."""
    composites: int
    """How many run by it."""


def versions_that_go(
    definition: CompositeResourceDefinition, live: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """The versions that the CRD serves today, and will not serve any more."""
    kept = {each.name for each in definition.spec.versions if each.served}
    versions = live["spec"]["versions"] if live is not None else ()
    return tuple(each["name"] for each in versions if each["served"] and each["name"] not in kept)


def composed_at(
    definition: CompositeResourceDefinition, going: Collection[str], revisions: Iterable[RevisionUse]
) -> Verdict | None:
    """Why versions cannot go by which composites are composed."""
    found = sorted((each for each in revisions if each.version in going), key=lambda each: each.name)
    if not found:
        return None
    spec = definition.spec
    number = sum(each.composites for each in found)
    stays = next(each.name for each in spec.versions if each.referenceable)
    names = ", ".join(sorted({each.version for each in found}))
    by: dict[str, list[str]] = {}
    for each in found:
        by.setdefault(each.composition, []).append(f"{count(each.composites, 'composite')} by {each.name}")
    uses = [f"Composition {name}: {', '.join(by[name][:SHOWN])}" for name in sorted(by)]
    return Verdict(
        VERSION_IN_USE,
        f"{count(number, 'composite')} composed at {names} would have no CompositionRevision any more "
        f"({listed(uses)}). Let them use a Composition for a version that stays first: create one whose "
        f"spec.compositeTypeRef.apiVersion is {spec.group}/{stays}, and name it in "
        "spec.defaultCompositionRef or spec.enforcedCompositionRef, or in spec.crdkeeper of the composites. "
        "Or set spec.breakingChanges to Allow.",
    )
