"""Stops the operator at an exact point: the API server denies its next write."""

from contextlib import AbstractAsyncContextManager

from tests.cluster.harness import Admin, CustomKind
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import denied


def trims_denied(admin: Admin, kind: CustomKind) -> AbstractAsyncContextManager[None]:
    """Denies removing a version from storedVersions of that CRD."""
    return denied(
        admin,
        kind.group,
        group="apiextensions.k8s.io",
        resource="customresourcedefinitions/status",
        when=f"object.metadata.name == '{kind.name}' && "
        "object.status.storedVersions.size() < oldObject.status.storedVersions.size()",
        such_as=(f"{CRDS}/{kind.name}/status", {"status": {"storedVersions": [kind.storage_version]}}),
    )
