"""What the API server and its controllers do with what names a version that goes away."""

import asyncio
import json
import os
from typing import Any

import pytest

from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.transport.client import APPLY_PATCH, JSON_PATCH, ApiError
from crdkeeper.core.retirement.admission import PLURALS, REGISTRATION
from crdkeeper.core.retirement.changes import version_managers
from crdkeeper.operations.retirement.evidence import gather_evidence
from crdkeeper.operations.retirement.run import FIELD_MANAGER, apply_step
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS
from tests.cluster.harness.admission import BINDINGS, POLICIES
from tests.cluster.retirement.scene import (
    NEW,
    OLD,
    assert_retired,
    moved,
    permit,
    retire,
    standing,
    until_permitted,
    until_ready,
    versions,
)

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def change(admin: Admin, kind: CustomKind, op: str, field: str = "", value: Any = None) -> None:
    """Change the entry of the old version in the CRD."""
    names = [each["name"] for each in (await admin.definition(kind))["spec"]["versions"]]
    path = f"/spec/versions/{names.index(OLD)}{field}"
    operation = {"op": op, "path": path, **({} if op == "remove" else {"value": value})}
    await admin.client.request("PATCH", f"{CRDS}/{kind.name}", [operation], content_type=JSON_PATCH)


async def bind(admin: Admin, kind: CustomKind, name: str, **match: Any) -> None:
    """Bind a policy that denies objects of a name, by a rule that has only the old version."""
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": [OLD],
        "operations": ["CREATE"],
        "resources": [kind.plural],
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"{name}.{kind.group}"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule], **match},
            "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "not that one"}],
        },
    }
    await admin.create(POLICIES, policy)
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{name}.{kind.group}"},
        "spec": {"policyName": f"{name}.{kind.group}", "validationActions": ["Deny"]},
    }
    await admin.create(BINDINGS, binding)


async def until_created(admin: Admin, kind: CustomKind, name: str, version: str, *, denied: bool) -> None:
    """Wait until the creation of an object of that name at a version is denied, or not."""
    body = json.dumps(kind.instance(name, version=version, engine="mysql")).encode()
    seen: list[bytes] = []

    async def so() -> bool:
        answer = await admin.client.send("POST", f"{kind.path(version=version)}?dryRun=All", content=body)
        seen[:] = [answer.content]
        return b"not that one" in answer.content if denied else answer.code == 201

    await eventually(so, otherwise=lambda: f"{name} at {version}: {seen}")


async def test_a_rule_ends_with_the_version_that_it_names(admin: Admin, group: str) -> None:
    kind = await moved(admin, group, 0)
    await bind(admin, kind, "equivalent")
    await bind(admin, kind, "exact", matchPolicy="Exact")
    await until_created(admin, kind, "equivalent", NEW, denied=True)
    await until_created(admin, kind, "exact", OLD, denied=True)
    await until_created(admin, kind, "exact", NEW, denied=False)

    found = await gather_evidence(admin.client, await admin.definition(kind), OLD)
    (held,) = found.holds
    assert (held.step, held.reason, held.name) == ("Removed", "AdmissionPolicy", f"equivalent.{group}")
    (warning,) = found.warnings
    assert f"ValidatingAdmissionPolicy exact.{group} matches databases only by {OLD}" in warning

    await change(admin, kind, "replace", "/served", value=False)
    await until_created(admin, kind, "equivalent", NEW, denied=True)
    # Proves that the API server has seen the change before.
    await until_created(admin, kind, "other", NEW, denied=False)
    await admin.merge(f"{CRDS}/{kind.name}/status", {"status": {"storedVersions": [NEW]}})
    await change(admin, kind, "remove")
    await until_created(admin, kind, "equivalent", NEW, denied=False)


@pytest.mark.parametrize("granted", [True, False])
async def test_a_rule_that_would_end_holds_the_removal(
    admin: Admin, operator: Operator, group: str, granted: bool
) -> None:
    kind = await moved(admin, group, 3)
    await permit(admin, kind)
    if granted:
        await permit_admission(admin, kind)
    # Also that of another test may not be gone yet.
    await until_permitted(
        admin, [Right("list", REGISTRATION, each) for each in PLURALS.values()], permitted=granted
    )
    await bind(admin, kind, "equivalent")
    name = await retire(admin, kind, mode="Execute")
    if not granted:
        found = await until_ready(admin, name, "True", "Removed")
        rule = 'apiGroups: ["admissionregistration.k8s.io"], resources: ["validatingwebhookconfigurations", '
        assert any(rule in each for each in found.status.evidence.unknown)
        return
    found = await until_ready(admin, name, "False", "AdmissionPolicy")
    assert f"matches databases only by {OLD}" in standing(found, "Ready").message
    old = (await versions(admin, kind))[OLD]
    assert old["served"] is False
    await until_created(admin, kind, "equivalent", NEW, denied=True)
    path = "/spec/matchConstraints/resourceRules/0/apiVersions/-"
    add = [{"op": "add", "path": path, "value": NEW}]
    await admin.client.request("PATCH", f"{POLICIES}/equivalent.{group}", add, content_type=JSON_PATCH)
    await until_ready(admin, name, "True", "Removed", seconds=120)
    await until_created(admin, kind, "equivalent", NEW, denied=True)
    await assert_retired(admin, kind, 3)


async def permit_admission(admin: Admin, kind: CustomKind) -> None:
    """Let the operator list admission rules."""
    name = f"test-retire-admission-{kind.group}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {"rbac.crdkeeper.dev/aggregate-to-retirer": "true"}},
        "rules": [{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["list"]}],
    }
    await admin.apply(f"{CLUSTER_ROLES}/{name}", role)
    admin.cleans_up(f"{CLUSTER_ROLES}/{name}")


async def test_server_side_apply_has_all_versions_or_none(admin: Admin, group: str) -> None:
    # Why each step is a JSON patch: see docs/decisions.md.
    kind = await moved(admin, group, 0)
    path = f"{CRDS}/{kind.name}?dryRun=All&fieldManager={FIELD_MANAGER}"
    crd = await admin.definition(kind)
    whole = [{**each, "served": each["name"] != OLD} for each in crd["spec"]["versions"]]
    one = [each for each in whole if each["name"] == OLD]

    async def answer(entries: list[dict[str, Any]], query: str = "") -> tuple[int, dict[str, Any]]:
        body = {key: crd[key] for key in ("apiVersion", "kind")}
        body |= {"metadata": {"name": kind.name}, "spec": {**crd["spec"], "versions": entries}}
        content = json.dumps(body).encode()
        found = await admin.client.send("PATCH", path + query, content=content, content_type=APPLY_PATCH)
        return found.code, found.json()

    for entries in (one, whole):
        code, found = await answer(entries)
        assert (code, found["details"]["causes"][0]["field"]) == (409, ".spec.versions")
    code, found = await answer(one, "&force=true")
    assert (code, "must have exactly one version marked as storage" in found["message"]) == (422, True)
    code, found = await answer(whole, "&force=true")
    assert (code, version_managers(found)) == (200, (FIELD_MANAGER,))
    # A patch takes the field over, too, and names nothing but the change.
    changed = await apply_step(admin.client, crd, OLD, "NotServed")
    assert version_managers(changed) == (FIELD_MANAGER,)
    # Whoever applies the same change is in no conflict, unlike whoever applies what was there before.
    path = path.replace(FIELD_MANAGER, "admin")
    assert ((await answer(whole))[0], (await answer(crd["spec"]["versions"]))[0]) == (200, 409)
    # Only a change of spec is in the way of one that was decided before it.
    annotated = await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {"looked": "1"}}})
    assert annotated["metadata"]["generation"] == changed["metadata"]["generation"]
    again = await apply_step(admin.client, changed, OLD, "Deprecated")
    assert again["metadata"]["generation"] == changed["metadata"]["generation"] + 1
    with pytest.raises(ApiError, match="422 Invalid"):
        await apply_step(admin.client, crd, OLD, "NotServed")


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_RETIREMENT_FAULTS"), reason="waits for half a minute")
async def test_the_garbage_collector_does_not_find_an_owner_at_the_version(admin: Admin, group: str) -> None:
    kind = await moved(admin, group, 1)
    owner = (await admin.get(kind.path("db-00000")))["metadata"]
    for version in (OLD, NEW):
        reference = {"apiVersion": f"{group}/{version}", "kind": kind.kind}
        reference |= {"name": owner["name"], "uid": owner["uid"]}
        metadata = {"name": f"{version}-{group}", "ownerReferences": [reference]}
        await admin.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await change(admin, kind, "replace", "/served", value=False)
    await asyncio.sleep(35)  # the garbage collector looks for kinds every half minute
    await admin.delete(kind.path("db-00000"))

    async def collected() -> bool:
        return await admin.find(f"{CONFIG_MAPS}/{NEW}-{group}") is None

    await eventually(collected)
    await asyncio.sleep(30)
    assert await admin.find(f"{CONFIG_MAPS}/{OLD}-{group}") is not None
