"""Kinds with their own webhooks, scale and schemas, and the permission to read their objects."""

from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS

READER_LABEL = "rbac.crdkeeper.dev/aggregate-to-reader"


async def let_read(
    admin: Admin, group: str, resources: Sequence[str] = ("*",), verbs: Sequence[str] = ("get", "list")
) -> None:
    """Lets the operator read an API group, like manifests/samples/reader-role.yaml; waits until it may."""
    name = f"test-read-{group}"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {READER_LABEL: "true"}},
        "rules": [{"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}],
    }
    await admin.apply(f"{CLUSTER_ROLES}/{name}", role)
    admin.cleans_up(f"{CLUSTER_ROLES}/{name}")
    account = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    some = "anything" if "*" in resources else resources[0]
    async with Client(Connection(account)) as operator:

        async def known() -> bool:
            return not await missing_rights(operator, [Right(each, group, some) for each in verbs])

        await eventually(known, otherwise=lambda: f"the operator may not read {group}")


async def change(admin: Admin, kind: CustomKind, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch of a CRD's spec; returns the CRD."""
    return await admin.merge(f"{CRDS}/{kind.name}", {"spec": spec})


async def change_versions(admin: Admin, kind: CustomKind, **fields: Any) -> dict[str, Any]:
    """Sets fields in each of spec.versions; None removes one."""
    versions = (await admin.definition(kind))["spec"]["versions"]
    for version in versions:
        version.update(fields)
    return await change(admin, kind, {"versions": versions})


def through(client_config: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch for spec: conversion by a webhook, whatever it was before."""
    empty = {"url": None, "service": None, "caBundle": None}
    webhook = {"clientConfig": {**empty, **client_config}, "conversionReviewVersions": ["v1"]}
    return {"conversion": {"strategy": "Webhook", "webhook": webhook}}


WITHOUT: dict[str, Any] = {"conversion": {"strategy": "None", "webhook": None}}
