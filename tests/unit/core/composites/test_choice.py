"""Which revision a composite runs by."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.core.composites.choice import Chosen, choose, deciding_revisions
from crdkeeper.core.revisions.content import SeenRevision, name_of
from tests.unit.core.composition.documents import document


def revision(composition: str, number: int, **labels: str) -> SeenRevision:
    name = f"{composition}-{number}"
    at = "platform.example.com/v1"
    return SeenRevision(name, f"u-{name}", "1", composition, at, "Database", number, "d", labels, False)


GOLD = [revision("gold", 1), revision("gold", 2, channel="stable"), revision("gold", 3, tier="gold")]
TIN = [revision("tin", 1, tier="tin")]
OTHER = SeenRevision("o-1", "u", "1", "o", "other.example.com/v1", "Database", 9, "d", {}, False)
OLD = SeenRevision("v-1", "u", "1", "v", "platform.example.com/v0", "Database", 9, "d", {}, False)


def chosen(
    revisions: list[SeenRevision], settings: Any = None, used: str | None = None, **definition: Any
) -> str:
    """The name of the revision, marked if it is pinned; or the message."""
    spec = CompositeResourceDefinition.model_validate(document(**definition)).spec
    composite: Any = {"spec": {"crdkeeper": settings} if settings is not None else {}}
    if used is not None:
        composite["status"] = {"crdkeeper": {"revision": used}}
    found = choose(spec, composite, [*revisions, OTHER, OLD], ["v1"])
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


LONG = "g" * 253
LONG_5 = name_of(LONG, 5)
MANUAL = {"compositionUpdatePolicy": "Manual"}
MANUAL_1 = {**MANUAL, "compositionRevisionRef": {"name": "gold-1"}}
CHANNEL = {"compositionRevisionSelector": {"matchLabels": {"channel": "stable"}}}


@pytest.mark.parametrize(
    ("revisions", "settings", "used", "name"),
    [
        (GOLD, None, "gold-2", "gold-3"),
        (GOLD, None, "gold-3", "gold-3"),
        ([*GOLD, revision("gold", 5)], None, "gold-4", "gold-5"),
        ([revision(LONG, 4), revision(LONG, 6)], None, LONG_5, f"{LONG}-6"),
        # Labels move while it is there.
        (GOLD, CHANNEL, "gold-3", "gold-2"),
        # Somebody has said where to go.
        (GOLD, {"compositionRef": {"name": "gold"}}, "tin-9", "gold-3"),
        (GOLD, MANUAL_1, "gold-4", "gold-1"),
        # Manual stays where the composite is, also if the reference is lost.
        (GOLD, MANUAL, "gold-1", "gold-1!"),
        (GOLD, MANUAL, "gold-3", "gold-3!"),
        ([*GOLD, revision("gold", 5)], MANUAL, "gold-4", "gold-5!"),
        ([*GOLD, *TIN], {**MANUAL, "compositionRef": {"name": "gold"}}, "tin-1", "gold-3!"),
        # Names that no revision of the Composition can have.
        (GOLD, {"compositionRef": {"name": "gold"}}, "gold-04", "gold-3"),
        (GOLD, {"compositionRef": {"name": "gold"}}, "gold-" + "9" * 5000, "gold-3"),
    ],
)
def test_another_revision_than_the_used_one(
    revisions: list[SeenRevision], settings: Any, used: str, name: str
) -> None:
    assert chosen(revisions, settings, used) == name


@pytest.mark.parametrize(
    ("revisions", "settings", "used", "said"),
    [
        (GOLD, None, "gold-4", "The CompositionRevision gold-4, by which the composite runs, is gone"),
        (GOLD, None, "gold-10", "waits for a newer one of the Composition gold. To go back to gold-3"),
        # Being deleted, or of a version that is not served: as good as gone.
        ([*GOLD, replace(revision("gold", 4), deleted=True)], None, "gold-4", "To go back to gold-3"),
        ([*GOLD, replace(revision("gold", 4), api_version=OLD.api_version)], None, "gold-4", "To go back"),
        ([revision(LONG, 4)], None, LONG_5, "is gone"),
        (GOLD, CHANNEL, "gold-4", "To go back to gold-2"),
        (GOLD, MANUAL, "gold-4", "To go back to gold-3"),
        (GOLD, None, "tin-1", "To use the Composition gold, set spec.crdkeeper.compositionRef"),
    ],
)
def test_a_composite_does_not_go_back_when_its_revision_is_gone(
    revisions: list[SeenRevision], settings: Any, used: str, said: str
) -> None:
    assert said in chosen(revisions, settings, used)


def test_whether_objects_stay_is_said_by_the_composites_own_revision_or_the_newest() -> None:
    first, second, third = (
        replace(each, keeps=keeps)
        for each, keeps in zip(
            GOLD, ({"a": True, "b": True}, {"a": False}, {"a": True, "c": False}), strict=True
        )
    )
    known = [third, first, second]
    assert deciding_revisions(known, second) == {"a": second, "b": first, "c": third}
    assert deciding_revisions(known, None) == {"a": third, "b": first, "c": third}
