"""What is refused to protect CRDs, as the ValidatingAdmissionPolicy crdkeeper-definition-protection does.

The webhook refuses it, too: an API server that has just started may not know the policies yet, and what it
cannot evaluate passes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import GROUP
from crdkeeper.apiserver.definitions.facts import ALLOW_DELETION
from crdkeeper.core.policy.selection import protecting, selects_labelled

Json = Mapping[str, Any]


def protection_refusal(policies: Iterable[DefinitionPolicy], old: Json, new: Json | None) -> str:
    """Why a CRD may not be deleted, or changed from `old` to `new`; empty if no policy protects it.

    `new` is None for a deletion.
    """
    if new is not None and (_is_served(new) or not _is_served(old)):
        return ""
    annotations = (old if new is None else new)["metadata"].get("annotations") or {}
    group, labels = old["spec"]["group"], old["metadata"].get("labels") or {}
    if group == GROUP or annotations.get(ALLOW_DELETION):
        return ""
    selecting = (each for each in protecting(policies) if selects_labelled(each, group, labels))
    policy = next(selecting, None)
    if policy is None:
        return ""
    loss = (
        "all of its objects would be deleted"
        if new is None
        else "none of its objects could be read, as no version would be served"
    )
    return (
        f"DefinitionPolicy {policy.metadata.name} protects it (spec.protection.deletion), because {loss}. "
        f"To allow it: kubectl annotate crd {old['metadata']['name']} {ALLOW_DELETION}=REASON"
    )


def _is_served(crd: Json) -> bool:
    return any(each["served"] for each in crd["spec"]["versions"])
