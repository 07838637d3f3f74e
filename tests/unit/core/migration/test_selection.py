"""Which CRDs `crdkeeper migrate` chooses, if it is not told their names."""

from dataclasses import replace

from crdkeeper.apiserver.definitions.facts import DefinitionFacts, VersionFacts
from crdkeeper.core.migration.selection import select
from tests.unit.builders import definition


def named(plural: str, **changes: object) -> DefinitionFacts:
    return replace(definition(), name=f"{plural}.example.com", plural=plural, **changes)  # type: ignore[arg-type]


CURRENT = ("v2",)


def test_all_or_only_the_outdated_ones_by_name() -> None:
    given = [named("c"), named("a"), named("b", stored_versions=CURRENT)]
    assert [str(each) for each in select(given, outdated=False).resources] == [
        "a.example.com",
        "b.example.com",
        "c.example.com",
    ]
    chosen = select(given, outdated=True)
    assert [str(each) for each in chosen.resources] == ["a.example.com", "c.example.com"]
    assert chosen.remarks == []


def test_what_cannot_be_migrated_is_left_out_and_named() -> None:
    nowhere = (
        VersionFacts("v1", served=False, storage=False),
        VersionFacts("v2", served=False, storage=True),
    )
    given = [
        named("a", terminating=True),
        named("b", established=False),
        named("c", versions=nowhere),
        named("d", terminating=True, stored_versions=CURRENT),
        named("e"),
    ]
    chosen = select(given, outdated=True)
    assert [str(each) for each in chosen.resources] == ["e.example.com"]
    assert chosen.remarks == [
        "a.example.com: left out, because the CRD is being deleted.",
        "b.example.com: left out, because no version of it is served.",
        "c.example.com: left out, because no version of it is served.",
    ]


def test_old_versions_that_stay_without_a_served_one_are_told() -> None:
    assert select([named("a", established=False)], outdated=True).unserved
    assert select([named("a", established=False), named("b")], outdated=False).unserved
    # With the CRD, its stored versions go.
    assert not select([named("a", terminating=True), named("b")], outdated=True).unserved
    assert not select([named("a", established=False, stored_versions=CURRENT)], outdated=False).unserved
