"""Comparing CRDs: no change without a difference, and changes forth and back that match."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.core.compatibility.change import Change, Impact
from crdkeeper.core.compatibility.compare import NotComparable, compare
from tests.cluster.definitions.lint.variants import BASES, Crd, variants
from tests.cluster.definitions.upgrading.upgrades import definition, upgrades

Json = Any

# The change in one direction, and what is then reported at the same place for the other direction.
THERE_AND_BACK: list[tuple[set[str], set[str]]] = [
    (
        {"field-added", "field-added-with-default", "field-added-required", "field-described"},
        {"field-removed", "field-undescribed", "unknown-fields-pruned"},
    ),
    ({"required-added"}, {"required-removed"}),
    ({"type-widened"}, {"type-changed"}),
    ({"nullable-added"}, {"nullable-removed", "null-defaulted", "null-dropped"}),
    ({"enum-loosened"}, {"enum-tightened"}),
    ({"limit-loosened"}, {"limit-tightened"}),
    ({"pattern-loosened"}, {"pattern-tightened", "pattern-changed", "limit-satisfied"}),
    ({"format-loosened"}, {"format-tightened", "limit-satisfied"}),
    ({"format-changed"}, {"format-changed", "limit-satisfied"}),
    ({"default-added"}, {"default-removed"}),
    ({"default-changed"}, {"default-changed"}),
    ({"unknown-fields-kept"}, {"unknown-fields-pruned", "map-closed"}),
    ({"map-opened"}, {"map-closed"}),
    ({"map-values-loosened"}, {"map-values-tightened"}),
    ({"embedded-resource-added"}, {"embedded-resource-removed"}),
    ({"rule-removed"}, {"rule-added", "transition-rule-added", "rule-satisfied", "limit-satisfied"}),
    ({"rule-changed"}, {"rule-changed", "rule-tightened", "rule-satisfied", "limit-satisfied"}),
    ({"junctor-loosened"}, {"junctor-tightened", "limit-satisfied"}),
    ({"junctor-changed"}, {"junctor-changed", "junctor-tightened", "limit-satisfied"}),
    ({"list-merged"}, {"list-replaced"}),
    ({"map-merged"}, {"map-replaced"}),
    ({"version-served"}, {"version-not-served"}),
    ({"scale-added"}, {"scale-removed"}),
    ({"status-enabled", "status-added"}, {"status-disabled"}),
    ({"selectable-field-added"}, {"selectable-field-removed"}),
]
# For these, the other direction may have another kind, depending on the context.
LOOSE = {
    "limit-satisfied",
    "rule-tightened",
    "junctor-tightened",
    "rule-satisfied",
    "pattern-changed",
    "type-changed",
    "map-closed",
    "field-undescribed",
    "unknown-fields-pruned",
}
# Relevant in one direction only, or not a difference between the two as such.
ONE_WAY = {
    "not-accepted",
    "refused",
    "preserve-unknown-fields",
    "preferred-version",
    "schema-removed",
    "version-dropped",
    "version-maybe-stored",
}


def _changes(old: Crd, new: Crd) -> tuple[Change, ...]:
    try:
        return compare(old, new).changes
    except NotComparable:
        return ()


def _reversed(value: Json) -> Json:
    """The same JSON with the keys of all objects in another order."""
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(each) for each in value] if isinstance(value, list) else value


def _assert_fits(old: Crd, new: Crd) -> None:
    there, back = (
        {
            (each.kind.id, each.place.version, each.place.field)
            for each in _changes(*pair)
            if each.kind.id not in ONE_WAY
        }
        for pair in ((old, new), (new, old))
    )
    assert bool(there) == bool(back), (there, back)
    for said, answer in ((there, back), (back, there)):
        # Nothing else is said of a field of another type, nor below it.
        changed = [(version, field) for id, version, field in answer if id == "type-changed"]
        for id, *place in said:
            if id != "type-widened" and any(place[0] == v and place[1].startswith(f) for v, f in changed):
                continue
            for one, other in THERE_AND_BACK:
                expected = other if id in one else one if id in other - LOOSE else None
                if expected:
                    assert any((each, *place) in answer for each in expected), (id, place, answer)


@given(variants(BASES))
def test_a_crd_is_compatible_with_itself(crd: Crd) -> None:
    # One that cannot exist is refused in its own place as well.
    bad = bool(check_creation(crd).violations)
    for same in (copy.deepcopy(crd), _reversed(crd)):
        assert [
            each for each in _changes(crd, same) if not (bad and each.kind.id in ("refused", "not-accepted"))
        ] == []


@given(upgrades())
def test_a_field_there_and_back(schemas: tuple[Json, Json]) -> None:
    _assert_fits(*map(definition, schemas))


@given(st.sampled_from(BASES), st.data())
def test_a_crd_there_and_back(old: Crd, data: st.DataObject) -> None:
    _assert_fits(old, data.draw(variants((old,))))


@given(st.sampled_from(BASES), st.data())
def test_the_counts_are_those_of_the_changes(old: Crd, data: st.DataObject) -> None:
    try:
        comparison = compare(old, data.draw(variants((old,))))
    except NotComparable:
        return
    assert comparison.complete
    for severity in Impact:
        found = sum(each.severity is severity for each in comparison.changes)
        assert comparison.counts.get(severity, 0) == found
    assert comparison.severity is (comparison.changes[0].severity if comparison.changes else Impact.SAFE)
