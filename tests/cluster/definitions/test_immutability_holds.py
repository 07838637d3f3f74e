"""What `immutable-open` says is true: CEL overlooks undeclared fields, and each of its remedies does not."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from crdkeeper.apiserver.definitions.create import decode
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.lint.check import check_conventions
from tests.cluster.harness import eventually
from tests.cluster.harness.admission import BINDINGS, POLICIES
from tests.controlplane.cluster import Cluster

Json = dict[str, Any]
GROUP = f"immutability-holds-{uuid4().hex[:8]}.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VAULTS = f"/apis/{GROUP}/v1/vaults"
GUARD = f"guard.{GROUP}"

KEEP = "x-kubernetes-preserve-unknown-fields"
OPEN: Json = {"type": "object", KEEP: True}
TEXT: Json = {"type": "string", "maxLength": 9}
FIXED: Json = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "must not change"}]}
SPEC: Json = {
    "open": {**OPEN, **FIXED},
    "partly": {**OPEN, "properties": {"a": TEXT}, **FIXED},
    "map": {"type": "object", "additionalProperties": True, **FIXED},
    "list": {"type": "array", "maxItems": 3, "items": OPEN, **FIXED},
    "outer": {"type": "object", "properties": {"inner": OPEN}, **FIXED},
    "whole": {"type": "object", "properties": {"inner": {KEEP: True}}, **FIXED},
    "free": OPEN,
}
DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"vaults.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "vaults", "kind": "Vault", "singular": "vault", "listKind": "VaultList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": SPEC}},
                    }
                },
            }
        ],
    },
}

in_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(plane: Cluster) -> AsyncIterator[Client]:
    """The definition is served."""
    async with Client(Connection(plane.kubeconfig)) as opened:
        await opened.request("POST", CRDS, DEFINITION)

        async def served() -> bool:
            return (await opened.send("GET", VAULTS)).code == 200

        await eventually(served, otherwise=lambda: "it is not served")
        yield opened
        await opened.send("DELETE", f"{CRDS}/{DEFINITION['metadata']['name']}")


async def _create(client: Client, name: str, spec: Json) -> Json:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Vault",
        "metadata": {"name": name},
        "spec": spec,
    }
    return await client.request("POST", VAULTS, body)


async def _replace(client: Client, made: Json, spec: Json, query: str = "") -> Json:
    return await client.request("PUT", f"{VAULTS}/{made['metadata']['name']}{query}", {**made, "spec": spec})


def test_where_it_is_reported() -> None:
    decoded = decode(DEFINITION, Report())
    assert decoded is not None
    found = check_conventions(decoded, DEFINITION)
    assert [each.field for each in found if each.rule.id == "immutable-open"] == [
        f"v1:.spec.{each}" for each in ("open", "partly", "map", "list[*]", "outer.inner")
    ]


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("open", {"x": 1}, {"y": 2}),
        ("partly", {"a": "a", "x": 1}, {"a": "a", "y": 2}),
        ("partly", {"a": "a"}, {"y": 2}),
        ("map", {"x": 1}, {"y": 2}),
        ("list", [{"x": 1}], [{"y": 2}]),
        ("outer", {"inner": {"x": 1}}, {"inner": {"y": 2}}),
    ],
)
@in_one_loop
async def test_an_undeclared_field_replaces_another(
    client: Client, field: str, before: Any, after: Any
) -> None:
    made = await _create(client, f"{field}-{uuid4().hex[:8]}", {field: before})
    stored = await _replace(client, made, {field: after})
    assert stored["spec"] == {field: after}


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("open", {"x": 1}, {"x": 2}),
        ("open", {"x": 1}, {"x": 1, "y": 2}),
        ("partly", {"y": 2}, {"a": "a"}),
        ("whole", {"inner": {"x": 1}}, {"inner": {"y": 2}}),
    ],
)
@in_one_loop
async def test_what_the_rule_refuses(client: Client, field: str, before: Any, after: Any) -> None:
    made = await _create(client, f"{field}-{uuid4().hex[:8]}", {field: before})
    with pytest.raises(ApiError, match="must not change"):
        await _replace(client, made, {field: after})


@in_one_loop
async def test_a_policy_compares_all_fields(client: Client) -> None:
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["vaults"]}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": GUARD},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "one", "expression": "object.metadata.name == 'guarded'"}],
            "validations": [{"expression": "object.spec == oldObject.spec", "message": "is guarded"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": GUARD},
        "spec": {"policyName": GUARD, "validationActions": ["Deny"]},
    }
    await client.request("POST", POLICIES, policy)
    await client.request("POST", BINDINGS, binding)
    try:
        made = await _create(client, "guarded", {"free": {"x": 1}})

        async def denied() -> bool:
            try:
                await _replace(client, made, {"free": {"y": 2}}, "?dryRun=All")
            except ApiError as error:
                return "is guarded" in str(error)
            return False

        await eventually(denied, otherwise=lambda: "the policy does not deny")
        labelled = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
        await _replace(client, labelled, made["spec"])
    finally:
        await client.send("DELETE", f"{BINDINGS}/{GUARD}")
        await client.send("DELETE", f"{POLICIES}/{GUARD}")
