"""Which CompositionRevision a composite runs by.

The Composition is the enforced one, the composite's own, the one that its selector finds, the default, or
else the only one. Of its revisions, Automatic takes the newest, and Manual the one that the composite names,
or else runs by. Revisions carry the labels of their Composition, so that nothing changes when that is gone.

When the revision is gone by which a composite runs, only a newer one of its Composition takes its place. What
is left may be older, or a restore may not be complete: objects that only the lost revision has would go.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.composite import CompositeSettings
from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinitionSpec
from crdkeeper.core.composites.reasons import NO_REVISION
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.policy.selection import matches
from crdkeeper.core.revisions.content import SeenRevision, name_of, newest
from crdkeeper.core.templates.kinds import group_of

_SHOWN = 5
_NUMBER: Final = re.compile(r".*-([1-9][0-9]{0,17})", re.DOTALL)


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
    served: Collection[str],
) -> Chosen | Verdict:
    """The revision, or why there is none. `revisions` may be those of all Compositions.

    `served` are the versions of the composites at which they can be read and written.
    """
    spec = composite.get("spec")
    given = spec.get("crdkeeper") if isinstance(spec, Mapping) else None
    try:
        settings = CompositeSettings.model_validate(given or {})
    except ValueError:
        return Verdict(NO_REVISION, "spec.crdkeeper of the composite cannot be read.")
    usable = revisions_of(definition, revisions, served)
    used = used_revision(composite)
    name = _composition(definition, settings, usable, used)
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
        return _pinned(settings, own, name, used)
    selector = settings.composition_revision_selector or definition.default_composition_revision_selector
    matching = own if selector is None else [each for each in own if matches(selector, each.labels)]
    found = newest(matching)
    if found is None:
        return Verdict(NO_REVISION, f"No CompositionRevision of {name} has the labels of the selector.")
    return _not_back(used, found, usable) or Chosen(found)


def revisions_of(
    definition: CompositeResourceDefinitionSpec, revisions: Collection[SeenRevision], served: Collection[str]
) -> list[SeenRevision]:
    """Those for composites of the definition, at a version that is served.

    Served by the CRD: what the definition wants may have been refused, or not be applied yet.
    """
    versions = {f"{definition.group}/{each}" for each in served}
    return [
        each
        for each in revisions
        if each.kind == definition.names.kind and each.api_version in versions and not each.deleted
    ]


def is_for(definition: CompositeResourceDefinitionSpec, revision: SeenRevision) -> bool:
    """Whether the revision is for composites of the definition, served or not."""
    return (group_of(revision.api_version), revision.kind) == (definition.group, definition.names.kind)


def used_revision(composite: Mapping[str, Any]) -> str:
    """The name of the revision by which the composite runs; empty if there is none yet."""
    status = composite.get("status")
    state = status.get("crdkeeper") if isinstance(status, Mapping) else None
    used = state.get("revision") if isinstance(state, Mapping) else None
    return used if isinstance(used, str) else ""


def deciding_revisions(
    revisions: Collection[SeenRevision], chosen: SeenRevision | None
) -> dict[str, SeenRevision]:
    """By the name of a resource that makes objects: the revision that says what becomes of these.

    It is the one by which the composite runs, if that has the resource, or else that of the highest number.
    """
    known = sorted(revisions, key=lambda each: each.number)
    if chosen is not None:
        known.append(chosen)
    return {name: each for each in known for name in each.keeps}


def _not_back(used: str, found: SeenRevision, usable: Sequence[SeenRevision]) -> Verdict | None:
    """Why a revision does not take the place of the one that was used, of which only the name is left."""
    number = _number_of(used, found.composition)
    if found.number >= number or any(each.name == used for each in usable):
        return None
    return Verdict(
        NO_REVISION,
        f"The CompositionRevision {used}, by which the composite runs, is gone or cannot be used. The "
        f"composite waits for a newer one of the Composition {found.composition}. To go back to "
        f"{found.name}, set spec.crdkeeper.compositionUpdatePolicy: Manual with a compositionRevisionRef.",
    )


def _number_of(name: str, composition: str) -> int:
    """The number of a revision of a Composition by its name; 0 if that is of another one."""
    found = _NUMBER.fullmatch(name)
    number = int(found[1]) if found is not None else 0
    return number if name_of(composition, number) == name else 0


def _composition(
    definition: CompositeResourceDefinitionSpec,
    settings: CompositeSettings,
    usable: Sequence[SeenRevision],
    used: str,
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
        gone = used and all(each.name != used for each in usable)
        if gone and not _number_of(used, names[0]):
            return Verdict(
                NO_REVISION,
                f"The CompositionRevision {used}, by which the composite runs, is gone or cannot be used. "
                f"To use the Composition {names[0]}, set spec.crdkeeper.compositionRef.",
            )
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


def _pinned(
    settings: CompositeSettings, own: Sequence[SeenRevision], name: str, used: str
) -> Chosen | Verdict:
    reference = settings.composition_revision_ref
    if reference is None:
        # Manual is new, or a client that replaces the composite has dropped the reference.
        found = next((each for each in own if each.name == used), None) or newest(own)
        assert found is not None
        return _not_back(used, found, own) or Chosen(found, pin=True)
    found = next((each for each in own if each.name == reference.name), None)
    if found is None:
        return Verdict(
            NO_REVISION,
            f"spec.crdkeeper.compositionRevisionRef names {reference.name}, which is no CompositionRevision "
            f"of the Composition {name}.",
        )
    return Chosen(found)
