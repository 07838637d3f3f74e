"""Whether someone opted in to the conversion of a CRD: read access alone is not such a consent.

The consent is the permission to patch that one CRD, which none of the operator's own roles grants. Without
it, neither a compromised operator nor someone who may write VersionConversions can obtain what others read
from a CRD.
"""

from crdkeeper.api.meta import GROUP
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.conversion.standing import StepResult
from crdkeeper.operations.rights import DEFINITIONS

LABEL = f"rbac.{GROUP}/aggregate-to-converter"


async def permitted(client: Client, owner: VersionConversion) -> StepResult:
    """The condition Permitted. Raises ApiError or Unreachable."""
    if owner.spec.mode == "Plan":
        return StepResult("True", "PlanOnly", "A plan changes nothing.")
    name = owner.metadata.name
    missing = await missing_rights(client, [Right("patch", *DEFINITIONS, name=name)])
    if not missing:
        return StepResult("True", "Permitted", f"The operator may convert {name}.")
    return StepResult(
        "False",
        "NotPermitted",
        f"The operator is not allowed to convert {name}. Not permitted: {'; '.join(map(str, missing))}. "
        f'Grant it by a ClusterRole that has the label {LABEL}: "true"; '
        "manifests/samples/converter-role.yaml is one to start from. The missing rule: "
        'apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], '
        f'resourceNames: ["{name}"], verbs: ["patch"].',
    )
