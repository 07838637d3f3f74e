"""Stops the operator at an exact point: the API server denies its next write."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import orjson

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import BINDINGS, POLICIES


@asynccontextmanager
async def denied(
    admin: Admin, name: str, *, group: str, resource: str, when: str, such_as: tuple[str, Mapping[str, Any]]
) -> AsyncIterator[None]:
    """Has updates of `resource` denied if the CEL expression `when` is true, until the end of the block.

    `such_as` is the path and body of a merge patch that is denied by then: a dry run of it shows when the API
    server has loaded the policy.
    """
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["UPDATE"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": f"!({when})", "message": "stopped by a test"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    path, body = such_as

    async def in_force() -> bool:
        answer = await admin.client.send(
            "PATCH", f"{path}?dryRun=All", content=orjson.dumps(body), content_type=MERGE_PATCH
        )
        return b"stopped by a test" in answer.content

    async def lifted() -> bool:
        return not await in_force()

    await admin.create(POLICIES, policy)
    await admin.create(BINDINGS, binding)
    await eventually(in_force, otherwise=lambda: f"policy {name} is not in force")
    try:
        yield
    finally:
        await admin.delete(f"{BINDINGS}/{name}")
        await admin.delete(f"{POLICIES}/{name}")
        await eventually(lifted, otherwise=lambda: f"policy {name} is still in force")


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
