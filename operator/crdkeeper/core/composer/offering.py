"""Offered: whether a new composite has a Composition that it can use.

The choice is the enforced one, the composite's own, the definition's default, else the only one for the kind.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import GROUP
from crdkeeper.core.composer.reasons import (
    COMPOSITES_NOT_COMPOSED,
    COMPOSITION_MISMATCH,
    COMPOSITION_MISSING,
    COMPOSITION_UNUSABLE,
    COMPOSITIONS_UNKNOWN,
    NO_COMPOSITION,
    OFFERED_BY_CHOICE,
    OFFERED_BY_DEFAULT,
    OFFERED_BY_ENFORCED,
    OFFERED_BY_ONLY,
    RIGHT_MISSING_TO_COMPOSE,
    SOME_NOT_COMPOSED,
)
from crdkeeper.core.composer.wording import SHOWN, own_rules, rule_on_composites
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import shortened

_RULE: Final = f"{{apiGroups: [{GROUP}], resources: [{Composition.plural}], verbs: [list, watch]}}"
_REVISIONS_RULE: Final = _RULE.replace(Composition.plural, CompositionRevision.plural)


@dataclass(frozen=True, slots=True)
class SeenComposition:
    """A Composition, reduced to what decides who can use it."""

    name: str
    group: str
    version: str
    kind: str
    """Of the composites that it is for."""
    usable: bool
    """Whether it has a revision: it has been valid, and composites use the newest one."""


def seen_composition(found: Mapping[str, Any]) -> SeenComposition:
    """Reduce a Composition. Raises KeyError if it is none."""
    reference = found["spec"]["compositeTypeRef"]
    group, _, version = reference["apiVersion"].partition("/")
    usable = int((found.get("status") or {}).get("revision") or 0) > 0
    return SeenComposition(found["metadata"]["name"], group, version, reference["kind"], usable)


def not_listed(denied: str = "") -> Verdict:
    """What to say while the Compositions are not known; `denied` is how the API server refuses the list."""
    if not denied:
        return Verdict(COMPOSITIONS_UNKNOWN, f"{COMPOSITIONS_UNKNOWN.meaning} {COMPOSITIONS_UNKNOWN.remedy}")
    return Verdict(
        COMPOSITIONS_UNKNOWN, f"{COMPOSITIONS_UNKNOWN.meaning} {denied.rstrip('.')}. {own_rules(_RULE)}"
    )


def revisions_not_listed(denied: str) -> Verdict:
    """What to say while CompositionRevisions may not be listed; `denied` is how the API server says so."""
    said = f"{COMPOSITIONS_UNKNOWN.meaning} {denied.rstrip('.')}. {own_rules(_REVISIONS_RULE)}"
    return Verdict(COMPOSITIONS_UNKNOWN, said)


def right_missing_to_compose(definition: CompositeResourceDefinition, missing: Sequence[str]) -> Verdict:
    """What to say while the composer lacks these rights on composites for which there is a revision."""
    return Verdict(
        RIGHT_MISSING_TO_COMPOSE,
        "A CompositionRevision exists, but no composite can be composed: the composer lacks rights on the "
        f"composites ({', '.join(missing)}). {rule_on_composites(definition, composed=True)}",
    )


def not_composed(composite: str, refusal: str, *, others: bool) -> Verdict:
    """What to say of composites such as this one, of which a request is refused that it cannot speak of.

    `others` is whether there are composites of which none is: what a webhook or a policy refuses in the
    namespace of one tenant does not concern those who create another one elsewhere.
    """
    reason = SOME_NOT_COMPOSED if others else COMPOSITES_NOT_COMPOSED
    which = f"Some composites, such as {composite}," if others else f"Composites such as {composite}"
    return Verdict(reason, f"{which} cannot be composed: {refusal.rstrip('.')}. {reason.remedy}")


def is_composed(
    definition: CompositeResourceDefinition, compositions: Collection[SeenComposition] | Verdict
) -> bool:
    """Whether there is a revision for composites, so that the composer reads and writes them."""
    if isinstance(compositions, Verdict):
        return False
    return any(each.usable and not _mismatch(definition, each) for each in compositions)


def offered(
    definition: CompositeResourceDefinition,
    compositions: Collection[SeenComposition] | Verdict,
    denied: Verdict | None = None,
) -> Verdict:
    """The condition, by the Compositions of the cluster, or by why they are not known.

    `denied` says why composites for which there is a revision are not composed. It comes first: a composite
    can choose a Composition of its own even if that of the definition is missing. But if it is about some of
    them only, it is said besides.
    """
    if isinstance(compositions, Verdict):
        return compositions
    if denied is None:
        return _offered(definition, compositions)
    if denied.reason is not SOME_NOT_COMPOSED:
        return denied
    usual = _offered(definition, compositions)
    reason = denied.reason if usual.reason.status == "True" else usual.reason
    return Verdict(reason, f"{usual.message} {denied.message}")


def _offered(definition: CompositeResourceDefinition, compositions: Collection[SeenComposition]) -> Verdict:
    spec = definition.spec
    for reference, field, reason in (
        (spec.enforced_composition_ref, "enforcedCompositionRef", OFFERED_BY_ENFORCED),
        (spec.default_composition_ref, "defaultCompositionRef", OFFERED_BY_DEFAULT),
    ):
        if reference is not None:
            return _named(definition, reference.name, field, reason, compositions)
    fitting = [each for each in compositions if not _mismatch(definition, each)]
    usable = sorted(each.name for each in fitting if each.usable)
    if not usable and fitting:
        said = shortened(sorted(each.name for each in fitting), SHOWN)
        of = f"the Compositions for {spec.names.kind} of {spec.group}: {said}."
        return Verdict(
            COMPOSITION_UNUSABLE, f"No CompositionRevision exists of {of} {COMPOSITION_UNUSABLE.remedy}"
        )
    if not usable:
        return Verdict(
            NO_COMPOSITION,
            f"No Composition is for {spec.names.kind} of {spec.group} at a served version: create one whose "
            f"spec.compositeTypeRef is {_wanted(definition)}.",
        )
    if len(usable) == 1:
        return Verdict(OFFERED_BY_ONLY, f"New composites use the Composition {usable[0]}, the only one.")
    return Verdict(
        OFFERED_BY_CHOICE,
        f"Composites choose among the Compositions {shortened(usable, SHOWN)}. "
        "spec.defaultCompositionRef would name one for those that choose none.",
    )


def _named(
    definition: CompositeResourceDefinition,
    name: str,
    field: str,
    reason: Reason,
    compositions: Collection[SeenComposition],
) -> Verdict:
    found = next((each for each in compositions if each.name == name), None)
    if found is None:
        return Verdict(
            COMPOSITION_MISSING, f"spec.{field} names the Composition {name}, which does not exist."
        )
    mismatch = _mismatch(definition, found)
    if mismatch:
        return Verdict(COMPOSITION_MISMATCH, f"spec.{field} names the Composition {name}, which {mismatch}.")
    if not found.usable:
        return Verdict(
            COMPOSITION_UNUSABLE,
            f"spec.{field} names the Composition {name}, which has no CompositionRevision. "
            f"{COMPOSITION_UNUSABLE.remedy}",
        )
    return Verdict(reason, f"New composites use the Composition {name}, which spec.{field} names.")


def _mismatch(definition: CompositeResourceDefinition, composition: SeenComposition) -> str:
    """Why composites cannot use it; empty if they can."""
    spec = definition.spec
    if (composition.group, composition.kind) != (spec.group, spec.names.kind):
        return f"is for {composition.kind} of {composition.group}, not {spec.names.kind} of {spec.group}"
    if composition.version not in {each.name for each in spec.versions if each.served}:
        return f"is for the version {composition.version}, which is not served"
    return ""


def _wanted(definition: CompositeResourceDefinition) -> str:
    spec = definition.spec
    version = next(each.name for each in spec.versions if each.referenceable)
    return f"{{apiVersion: {spec.group}/{version}, kind: {spec.names.kind}}}"
