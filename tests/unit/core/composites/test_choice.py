"""Which revision a composite runs by."""

from typing import Any

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.core.composites.choice import Chosen, choose
from crdkeeper.core.revisions.content import SeenRevision
from tests.unit.core.composition.documents import document


def revision(composition: str, number: int, **labels: str) -> SeenRevision:
    name = f"{composition}-{number}"
    at = "platform.example.com/v1"
    return SeenRevision(name, f"u-{name}", "1", composition, at, "Database", number, "d", labels, False)


GOLD = [revision("gold", 1), revision("gold", 2, channel="stable"), revision("gold", 3, tier="gold")]
TIN = [revision("tin", 1, tier="tin")]
OTHER = SeenRevision("o-1", "u", "1", "o", "other.example.com/v1", "Database", 9, "d", {}, False)
OLD = SeenRevision("v-1", "u", "1", "v", "platform.example.com/v0", "Database", 9, "d", {}, False)


def chosen(revisions: list[SeenRevision], settings: Any = None, **definition: Any) -> str:
    """The name of the revision, marked if it is pinned; or the message."""
    spec = CompositeResourceDefinition.model_validate(document(**definition)).spec
    composite = {"spec": {"crdkeeper": settings} if settings is not None else {}}
    found = choose(spec, composite, [*revisions, OTHER, OLD])
    if not isinstance(found, Chosen):
        return found.message
    return found.revision.name + ("!" if found.pin else "")


@pytest.mark.parametrize(
    ("settings", "definition", "name"),
    [
        (None, {}, "gold-3"),
        ({"compositionRef": {"name": "tin"}}, {}, "tin-1"),
        ({"compositionRef": {"name": "tin"}}, {"enforcedCompositionRef": {"name": "gold"}}, "gold-3"),
        (None, {"defaultCompositionRef": {"name": "tin"}}, "tin-1"),
        (
            {"compositionSelector": {"matchLabels": {"tier": "tin"}}},
            {"defaultCompositionRef": {"name": "gold"}},
            "tin-1",
        ),
        ({"compositionUpdatePolicy": "Manual"}, {}, "gold-3!"),
        (None, {"defaultCompositionUpdatePolicy": "Manual"}, "gold-3!"),
        ({"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": "gold-1"}}, {}, "gold-1"),
        ({"compositionRevisionRef": {"name": "gold-1"}}, {}, "gold-3"),
        ({"compositionRevisionSelector": {"matchLabels": {"channel": "stable"}}}, {}, "gold-2"),
        (None, {"defaultCompositionRevisionSelector": {"matchLabels": {"channel": "stable"}}}, "gold-2"),
    ],
)
def test_choice(settings: Any, definition: Any, name: str) -> None:
    several = "tin" in name or "enforcedCompositionRef" in definition
    assert chosen([*GOLD, *(TIN if several else [])], settings, **definition) == name


@pytest.mark.parametrize(
    ("revisions", "settings", "said"),
    [
        ([], None, "There is no Composition for Database with a CompositionRevision."),
        ([*GOLD, *TIN], None, "2 Compositions could be used: gold, tin."),
        (
            GOLD,
            {"compositionRef": {"name": "tin"}},
            "The Composition tin has no CompositionRevision for Database",
        ),
        (
            GOLD,
            {"compositionSelector": {"matchLabels": {"a": "b"}}},
            "has the labels of spec.crdkeeper.compositionSelector",
        ),
        (
            GOLD,
            {"compositionRevisionSelector": {"matchLabels": {"a": "b"}}},
            "has the labels of the selector",
        ),
        (
            [*GOLD, *TIN],
            {
                "compositionRef": {"name": "tin"},
                "compositionUpdatePolicy": "Manual",
                "compositionRevisionRef": {"name": "gold-1"},
            },
            "names gold-1, which is no CompositionRevision of the Composition tin",
        ),
        (GOLD, {"compositionUpdatePolicy": "Sometimes"}, "spec.crdkeeper of the composite cannot be read"),
    ],
)
def test_no_choice_is_an_error_and_no_dice(revisions: list[SeenRevision], settings: Any, said: str) -> None:
    assert said in chosen(revisions, settings)
