"""The ValidatingAdmissionPolicy that protects CRDs from deletion."""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.cluster.transport.client import ApiError, Client, find

NAME: Final = "crdkeeper-definition-protection"
_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
_PARTS: Final = {
    "ValidatingAdmissionPolicyBinding": f"{_REGISTRATION}/validatingadmissionpolicybindings/{NAME}",
    "ValidatingAdmissionPolicy": f"{_REGISTRATION}/validatingadmissionpolicies/{NAME}",
}
"""By kind: what the API server needs to protect."""
_LIMITS: Final = "namespaceSelector", "objectSelector", "resourceRules", "excludeResourceRules"
"""The fields of a binding's matchResources with which it does not concern all CRDs."""
_REMEDY: Final = "Apply the manifests of this release."


async def why_unprotected(client: Client) -> str:
    """Why the API server does not protect any CRD, as far as can be seen; empty if it does.

    Raises:
        ApiError: The API server has answered with an error other than 403.
        Unreachable: It cannot be reached.
    """
    for kind, path in _PARTS.items():
        try:
            found = await find(client, path)
        except ApiError as error:
            if error.code != 403:
                raise
            return f"the operator may not read the {kind} {NAME}. {_REMEDY}"
        if found is None:
            return f"there is no {kind} {NAME}. {_REMEDY}"
        if kind == "ValidatingAdmissionPolicyBinding" and (why := _why_unbound(found.get("spec") or {})):
            return f"the {kind} {NAME} {why}. {_REMEDY}"
    return ""


def _why_unbound(spec: Mapping[str, Any]) -> str:
    """Why a binding does not lead to a refusal by any DefinitionPolicy; empty if it does."""
    if "Deny" not in (spec.get("validationActions") or ()):
        return "does not have the validationAction Deny"
    if spec.get("policyName") != NAME:
        return "has another policyName"
    if (spec.get("paramRef") or {}).get("selector") != {}:
        return "has a paramRef that does not select all DefinitionPolicies"
    limits = spec.get("matchResources") or {}
    if any(limits.get(each) for each in _LIMITS):
        return "has matchResources, so that it does not concern all CRDs"
    return ""
