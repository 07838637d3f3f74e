"""The ValidatingAdmissionPolicy that protects CRDs from deletion."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.transport.client import ApiError, Client, find
from crdkeeper.core.policy.admissionpolicy import changed_fields

NAME: Final = "crdkeeper-definition-protection"
_GROUP: Final = "admissionregistration.k8s.io"
_LIMITS: Final = "namespaceSelector", "objectSelector", "resourceRules", "excludeResourceRules"
"""The fields of a binding's matchResources with which it does not concern all CRDs."""
_REMEDY: Final = "Apply the manifests of this release."


async def why_unprotected(client: Client) -> str:
    """Why the API server does not protect any CRD, as far as can be seen; empty if it does.

    Raises:
        ApiError: The API server has answered with an error other than 403.
        Unreachable: It cannot be reached.
    """
    for kind, (plural, why_not) in _PARTS.items():
        try:
            found = await find(client, f"/apis/{_GROUP}/v1/{plural}/{NAME}")
        except ApiError as error:
            if error.code != 403:
                raise
            right = Right("get", _GROUP, plural, name=NAME)
            return f"the operator may not read the {kind} {NAME} ({right}). {_REMEDY}"
        if found is None:
            return f"there is no {kind} {NAME}. {_REMEDY}"
        if why := why_not(found.get("spec") or {}):
            return f"the {kind} {NAME} {why}"
    return ""


def _why_unbound(spec: Mapping[str, Any]) -> str:
    """Why a binding does not lead to a refusal by any DefinitionPolicy; empty if it does."""
    why = ""
    if "Deny" not in (spec.get("validationActions") or ()):
        why = "does not have the validationAction Deny"
    elif spec.get("policyName") != NAME:
        why = "has another policyName"
    elif (spec.get("paramRef") or {}).get("selector") != {}:
        why = "has a paramRef that does not select all DefinitionPolicies"
    elif spec["paramRef"].get("namespace"):
        why = "has a paramRef with a namespace, while DefinitionPolicies have none"
    elif any((spec.get("matchResources") or {}).get(each) for each in _LIMITS):
        why = "has matchResources, so that it does not concern all CRDs"
    return f"{why}. {_REMEDY}" if why else ""


def _why_not_ours(spec: Mapping[str, Any]) -> str:
    """Why a policy may refuse less than that of this release; empty if it is the same.

    To apply the manifests neither overwrites what somebody else has set, nor removes what somebody has added.
    """
    changed = changed_fields(spec)
    if not changed:
        return ""
    return (
        f"is not that of this release: {', '.join(changed)}. Apply the manifests of this release again; "
        f"if they conflict, or it stays as it is, delete it first."
    )


_PARTS: Final[Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]]] = {
    "ValidatingAdmissionPolicyBinding": ("validatingadmissionpolicybindings", _why_unbound),
    "ValidatingAdmissionPolicy": ("validatingadmissionpolicies", _why_not_ours),
}
"""By kind, what the API server needs to protect: its plural, and why one with some spec does not."""
