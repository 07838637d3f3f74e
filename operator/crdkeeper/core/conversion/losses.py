"""Which fields only one version has, according to the rules, and what happens to them."""

from collections.abc import Iterator, Sequence
from typing import Literal

from crdkeeper.api.versionconversion import ConversionLoss, ConversionRule, Spoke, VersionConversionSpec


def losses(spec: VersionConversionSpec) -> list[ConversionLoss]:
    """All fields that are kept aside or dropped; within lists and maps as `spec.containers[*].memory`."""
    return [each for spoke in spec.spokes for each in _losses(spoke.version, spoke.rules, "", "")]


def without_drops(spec: VersionConversionSpec) -> VersionConversionSpec | None:
    """The rules with `aside` in place of each `drop`; None if they drop nothing.

    What is not lost on purpose must not be lost at all: these rules test that.
    """
    if not any(each.treatment == "Dropped" for each in losses(spec)):
        return None
    spokes = [Spoke(version=each.version, rules=_kept(each.rules)) for each in spec.spokes]
    return spec.model_copy(update={"spokes": spokes})


def _losses(version: str, rules: Sequence[ConversionRule], hub: str, spoke: str) -> Iterator[ConversionLoss]:
    for rule in rules:
        treatment: Literal["KeptAside", "Dropped"] = "Dropped" if rule.drop else "KeptAside"
        one_sided = bool(rule.aside or rule.drop)
        if rule.hub is not None and (one_sided or (rule.cel is not None and rule.cel.to_spoke is None)):
            yield ConversionLoss(version=version, side="Hub", path=hub + rule.hub, treatment=treatment)
        if rule.spoke is not None and (one_sided or (rule.cel is not None and rule.cel.to_hub is None)):
            yield ConversionLoss(version=version, side="Spoke", path=spoke + rule.spoke, treatment=treatment)
        if rule.each:
            yield from _losses(version, rule.each, f"{hub}{rule.hub}[*].", f"{spoke}{rule.spoke}[*].")


def _kept(rules: Sequence[ConversionRule]) -> list[ConversionRule]:
    made = []
    for rule in rules:
        changes: dict[str, object] = {}
        if rule.drop:
            changes |= {"drop": None, "aside": True}
        if rule.each is not None:
            changes["each"] = _kept(rule.each)
        made.append(rule.model_copy(update=changes))
    return made
