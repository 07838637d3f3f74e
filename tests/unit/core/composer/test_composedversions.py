"""Versions that go although composites run by revisions for them."""

from dataclasses import replace
from typing import Any

from crdkeeper.core.composer.composedversions import RevisionUse
from tests.unit.core.composer.test_updates import composite, decided, known, live_with, refusal, versions
from tests.unit.core.composition.documents import version

Json = Any
OLD = RevisionUse("small-1", "small", "v1", 2)
NEW = RevisionUse("small-2", "small", "v2", 5)
OTHER = RevisionUse("large-7", "large", "v1", 1)


def unserved(*uses: RevisionUse, composites: int = 3, **fields: Any) -> Any:
    """What is known when the deprecated v1 is not to be served any more."""
    old = version("v1", referenceable=False, deprecated=True)
    live = live_with(old, version("v2"), stored=("v2",))
    value = versions({**old, "served": False}, version("v2"), **fields)
    found = known(value, live, *(composite(f"a-{number}", "v2") for number in range(composites)))
    return replace(found, facts=replace(found.facts, revisions=uses))


def test_the_version_of_revisions_in_use_stays() -> None:
    reason, message = refusal(unserved(NEW, OLD, OTHER))
    assert reason == "VersionInUse"
    assert message == (
        "3 composites composed at v1 would have no CompositionRevision any more (Composition large: "
        "1 composite by large-7; Composition small: 2 composites by small-1). Let them use a Composition for "
        "a version that stays first: create one whose spec.compositeTypeRef.apiVersion is "
        "platform.example.com/v2, and name it in spec.defaultCompositionRef or spec.enforcedCompositionRef, "
        "or in spec.crdkeeper of the composites. Or set spec.breakingChanges to Allow."
    )


def test_a_version_goes_that_no_revision_in_use_is_for() -> None:
    decided(unserved(NEW))


def test_without_composites_a_version_goes() -> None:
    decided(unserved(OLD, composites=0))


def test_a_version_may_be_taken_from_composites() -> None:
    decided(unserved(OLD, breakingChanges="Allow"))
