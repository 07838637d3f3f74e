"""Which revisions may be deleted."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import LabelSelector
from crdkeeper.core.revisions.retention import revisions_in_use, superfluous
from tests.unit.core.revisions.revisions import history

FIVE = history("a", "b", "c", "d", "e")
STABLE = LabelSelector(match_labels={"channel": "stable"}, match_expressions=[])


@pytest.mark.parametrize(
    ("limit", "in_use", "expected"),
    [
        (10, (), []),
        (4, (), []),
        (2, (), [1, 2]),
        (0, (), [1, 2, 3, 4]),
        (2, ("small-1",), [2]),
        (0, ("small-2", "small-4"), [1, 3]),
        (1, ("small-5",), [1, 2, 3]),
        (None, (), [1, 2, 3, 4, 5]),
        (None, ("small-2", "small-9"), [1, 3, 4, 5]),
    ],
)
def test_how_many_are_kept(limit: int | None, in_use: tuple[str, ...], expected: list[int]) -> None:
    assert [each.number for each in superfluous(FIVE, limit, in_use)] == expected


def test_what_new_composites_will_use_is_kept() -> None:
    first, second, *rest = FIVE
    labels = {"channel": "stable"}
    revisions = [replace(first, labels=labels), replace(second, labels=labels), *rest]
    assert [each.number for each in superfluous(revisions, 0, (), STABLE)] == [1, 3, 4]
    # When the Composition is gone, there are no new composites.
    assert [each.number for each in superfluous(revisions, None, (), STABLE)] == [1, 2, 3, 4, 5]


def test_one_in_deletion_is_neither_deleted_again_nor_the_newest() -> None:
    *others, last = FIVE
    revisions = [*others, replace(last, deleted=True)]
    assert [each.number for each in superfluous(revisions, 0)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("composite", "expected"),
    [
        ({}, set()),
        ({"spec": {"crdkeeper": {"compositionRevisionRef": {"name": "a"}}}}, {"a"}),
        ({"status": {"crdkeeper": {"revision": "b"}}}, {"b"}),
        (
            {
                "spec": {"crdkeeper": {"compositionRevisionRef": {"name": "a"}}},
                "status": {"crdkeeper": {"revision": "b"}},
            },
            {"a", "b"},
        ),
        ({"spec": None, "status": []}, set()),
        ({"spec": {"crdkeeper": {"compositionRevisionRef": {"name": 1}}}}, set()),
    ],
)
def test_what_a_composite_uses(composite: Any, expected: set[str]) -> None:
    assert revisions_in_use(composite) == expected
