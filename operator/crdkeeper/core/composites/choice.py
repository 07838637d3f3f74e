"""Which CompositionRevision a composite runs by.

The Composition is the enforced one, the composite's own, the one that its selector finds, the default, or
else the only one. Of its revisions, Automatic takes the newest, and Manual the one that the composite names.
Revisions carry the labels of their Composition, so that nothing changes when that is gone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.composite import CompositeSettings
from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinitionSpec
from crdkeeper.core.composites.reasons import NO_REVISION
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.policy.selection import matches
from crdkeeper.core.revisions.content import SeenRevision, newest
from crdkeeper.core.templates.kinds import group_of

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Chosen:
    """The revision of a composite."""

    revision: SeenRevision
    pin: bool = False
    """Whether the composite has to name it, so that it does not follow newer ones."""


def choose(
    definition: CompositeResourceDefinitionSpec,
    composite: Mapping[str, Any],
    revisions: Collection[SeenRevision],
) -> Chosen | Verdict:
    """The revision, or why there is none. `revisions` may be those of all Compositions."""
    spec = composite.get("spec")
    given = spec.get("crdkeeper") if isinstance(spec, Mapping) else None
    try:
        settings = CompositeSettings.model_validate(given or {})
    except ValueError:
        return Verdict(NO_REVISION, "spec.crdkeeper of the composite cannot be read.")
    usable = revisions_of(definition, revisions)
    name = _composition(definition, settings, usable)
    if isinstance(name, Verdict):
        return name
    own = [each for each in usable if each.composition == name]
    if not own:
        kind, group = definition.names.kind, definition.group
        return Verdict(
            NO_REVISION,
            f"The Composition {name} has no CompositionRevision for {kind} of {group} at a served version. "
            "It does not exist, or its condition Valid says what is wrong.",
        )
    policy = settings.composition_update_policy or definition.default_composition_update_policy
    if policy == "Manual":
        return _pinned(settings, own, name)
    selector = settings.composition_revision_selector or definition.default_composition_revision_selector
    matching = own if selector is None else [each for each in own if matches(selector, each.labels)]
    found = newest(matching)
    if found is None:
        return Verdict(NO_REVISION, f"No CompositionRevision of {name} has the labels of the selector.")
    return Chosen(found)


def revisions_of(
    definition: CompositeResourceDefinitionSpec, revisions: Collection[SeenRevision]
) -> list[SeenRevision]:
    """Those for composites of the definition, at a version that is served."""
    served = {f"{definition.group}/{each.name}" for each in definition.versions if each.served}
    return [
        each
        for each in revisions
        if each.kind == definition.names.kind and each.api_version in served and not each.deleted
    ]


def is_for(definition: CompositeResourceDefinitionSpec, revision: SeenRevision) -> bool:
    """Whether the revision is for composites of the definition, served or not."""
    return (group_of(revision.api_version), revision.kind) == (definition.group, definition.names.kind)


def _composition(
    definition: CompositeResourceDefinitionSpec, settings: CompositeSettings, usable: Sequence[SeenRevision]
) -> str | Verdict:
    reference = definition.enforced_composition_ref or settings.composition_ref
    if reference is not None:
        return reference.name
    names = sorted({each.composition for each in usable})
    if settings.composition_selector is not None:
        names = [each for each in names if _has_labels(settings, each, usable)]
    elif definition.default_composition_ref is not None:
        return definition.default_composition_ref.name
    if len(names) == 1:
        return names[0]
    if names:
        return Verdict(
            NO_REVISION,
            f"{len(names):,} Compositions could be used: {', '.join(names[:_SHOWN])}. Set "
            "spec.crdkeeper.compositionRef, or spec.defaultCompositionRef of the definition.",
        )
    which = " has the labels of spec.crdkeeper.compositionSelector" if settings.composition_selector else ""
    kind = definition.names.kind
    return Verdict(
        NO_REVISION,
        f"No Composition for {kind} with a CompositionRevision{which}."
        if which
        else f"There is no Composition for {kind} with a CompositionRevision.",
    )


def _has_labels(settings: CompositeSettings, name: str, usable: Sequence[SeenRevision]) -> bool:
    last = newest([each for each in usable if each.composition == name])
    selector = settings.composition_selector
    return last is not None and selector is not None and matches(selector, last.labels)


def _pinned(settings: CompositeSettings, own: Sequence[SeenRevision], name: str) -> Chosen | Verdict:
    reference = settings.composition_revision_ref
    if reference is None:
        last = newest(own)
        assert last is not None
        return Chosen(last, pin=True)
    found = next((each for each in own if each.name == reference.name), None)
    if found is None:
        return Verdict(
            NO_REVISION,
            f"spec.crdkeeper.compositionRevisionRef names {reference.name}, which is no CompositionRevision "
            f"of the Composition {name}.",
        )
    return Chosen(found)
