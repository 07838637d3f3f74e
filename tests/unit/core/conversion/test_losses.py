"""What the rules keep aside and drop, by field."""

from typing import Any

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.core.conversion.losses import losses, without_drops


def spec(*rules: dict[str, Any]) -> VersionConversionSpec:
    found = {
        "resource": {"group": "stable.example.com", "resource": "things"},
        "hub": "v2",
        "spokes": [{"version": "v1", "rules": list(rules)}],
    }
    return VersionConversionSpec.model_validate(found)


NESTED = {
    "hub": "spec.items",
    "spoke": "spec.entries",
    "each": [{"hub": "color", "aside": True}, {"spoke": "size", "drop": True}],
}


def test_losses_are_named_wherever_they_are() -> None:
    found = losses(spec({"hub": "spec.a", "spoke": "spec.b"}, {"spoke": "spec.c", "drop": True}, NESTED))
    assert [(each.side, each.path, each.treatment) for each in found] == [
        ("Spoke", "spec.c", "Dropped"),
        ("Hub", "spec.items[*].color", "KeptAside"),
        ("Spoke", "spec.entries[*].size", "Dropped"),
    ]


def test_an_expression_for_one_direction_alone() -> None:
    found = losses(spec({"hub": "spec.a", "spoke": "spec.b", "cel": {"toHub": "self"}}))
    assert [(each.side, each.path, each.treatment) for each in found] == [("Hub", "spec.a", "KeptAside")]


def test_rules_without_drops() -> None:
    kept = without_drops(spec({"spoke": "spec.c", "drop": True}, NESTED))
    assert kept is not None
    assert [each.treatment for each in losses(kept)] == ["KeptAside"] * 3
    assert without_drops(kept) is None
