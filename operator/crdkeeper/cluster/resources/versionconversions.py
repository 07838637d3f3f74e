"""What a VersionConversion needs of the API server: itself, its bundle, and spec.conversion of its CRD."""

import base64
from collections.abc import Mapping
from typing import Any

from crdkeeper.api.meta import API_VERSION, GROUP, VERSION, ObjectMeta
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.cluster.resources.definitions import DEFINITIONS_PATH
from crdkeeper.cluster.transport.client import (
    APPLY_PATCH,
    MERGE_PATCH,
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    find,
)
from crdkeeper.core.conversion.bundle import digest
from crdkeeper.core.conversion.target import WebhookAddress, wanted_conversion

FIELD_MANAGER = "crdkeeper-conversion"
"""A separate one, because server-side apply removes fields that a manager no longer names."""
FINALIZER = f"{GROUP}/conversion"
"""Set by an earlier release. An admission policy has replaced it: see docs/decisions.md."""
BUNDLE_LABEL = f"{GROUP}/bundle"
BUNDLE_SELECTOR = f"{BUNDLE_LABEL}=conversion"
BUNDLE_KEY = "conversion.json.gz"

_OURS = f"/apis/{GROUP}/{VERSION}/{VersionConversion.plural}"
_APPLY = f"?fieldManager={FIELD_MANAGER}&force=true"


async def read_conversion(client: Client, name: str) -> dict[str, Any] | None:
    """The VersionConversion as stored; None if there is none."""
    return await find(client, f"{_OURS}/{name}")


async def list_conversions(client: Client) -> list[dict[str, Any]]:
    """List all VersionConversions; empty if the kind is not installed."""
    found = await find(client, _OURS)
    return list(found["items"]) if found is not None else []


async def drop_finalizer(client: Client, metadata: ObjectMeta) -> None:
    """Remove our finalizer from a VersionConversion. Does nothing if exactly this object is gone."""
    body = {
        "apiVersion": API_VERSION,
        "kind": VersionConversion.__name__,
        "metadata": {"name": metadata.name, "uid": metadata.uid},
    }
    try:
        await client.request("PATCH", f"{_OURS}/{metadata.name}{_APPLY}", body, content_type=APPLY_PATCH)
    except ApiError as error:
        if error.code not in (404, 409):
            raise


def bundles_path(namespace: str, name: str = "") -> str:
    """The path of the ConfigMaps that hold bundles, or of the one for a CRD."""
    base = f"/api/v1/namespaces/{namespace}/configmaps"
    return f"{base}/{name}" if name else base


def bundle_of(config_map: Mapping[str, Any]) -> bytes | None:
    """The bundle in a ConfigMap; None if it is missing or not Base64."""
    try:
        return base64.b64decode((config_map.get("binaryData") or {})[BUNDLE_KEY], validate=True)
    except (KeyError, ValueError):
        return None


async def read_bundle(client: Client, namespace: str, name: str) -> bytes | None:
    """The bundle that the webhook gets for a CRD; None if there is none."""
    found = await find(client, bundles_path(namespace, name))
    return bundle_of(found) if found is not None else None


async def bundle_names(client: Client, namespace: str) -> list[str]:
    """The CRDs that have bundles. Raises ApiError or Unreachable."""
    path = f"{bundles_path(namespace)}?labelSelector={BUNDLE_SELECTOR}"
    found = await client.request("GET", path, accept=METADATA_ONLY_LIST)
    return [each["metadata"]["name"] for each in found["items"] or ()]


async def keep_bundle(client: Client, namespace: str, name: str) -> None:
    """Keep a CRD's bundle when its VersionConversion is deleted; an earlier release had set an owner."""
    body = {"metadata": {"ownerReferences": None}}
    path = f"{bundles_path(namespace, name)}?fieldManager={FIELD_MANAGER}"
    try:
        await client.request("PATCH", path, body, content_type=MERGE_PATCH)
    except ApiError as error:
        if error.code != 404:
            raise


async def delete_bundle(client: Client, namespace: str, name: str) -> bool:
    """Delete a CRD's bundle. Returns whether there was one; leaves a ConfigMap that is not a bundle."""
    path = bundles_path(namespace, name)
    found = await find(client, path, accept=METADATA_ONLY)
    if found is None or BUNDLE_LABEL not in (found["metadata"].get("labels") or {}):
        return False
    try:
        await client.request("DELETE", path, {"preconditions": {"uid": found["metadata"]["uid"]}})
    except ApiError as error:
        if error.code not in (404, 409):
            raise
    return True


async def apply_bundle(client: Client, namespace: str, owner: ObjectMeta, content: bytes) -> None:
    """Store this bundle for the webhook. It stays until `delete_bundle`, even if its owner is deleted."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": owner.name,
            "labels": {"app.kubernetes.io/managed-by": "crdkeeper", BUNDLE_LABEL: "conversion"},
            "annotations": {
                f"{GROUP}/digest": digest(content),
                f"{GROUP}/generation": str(owner.generation),
            },
        },
        "binaryData": {BUNDLE_KEY: base64.b64encode(content).decode()},
    }
    path = bundles_path(namespace, owner.name) + _APPLY
    await client.request("PATCH", path, body, content_type=APPLY_PATCH)


async def set_conversion(
    client: Client, crd: Mapping[str, Any], address: WebhookAddress, bundle: str, *, replace: bool
) -> None:
    """Point the CRD to our webhook, if it is still exactly the CRD and version that was read.

    `replace` also removes another webhook's fields in the same request. Raises ApiError; 409 means that the
    CRD has changed.
    """
    metadata = crd["metadata"]
    pinned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    conversion = wanted_conversion(address, metadata["name"], bundle)
    path = f"{DEFINITIONS_PATH}/{metadata['name']}"
    if replace:
        config = {"url": None, "service": None, **conversion["webhook"]["clientConfig"]}
        webhook = {**conversion["webhook"], "clientConfig": config}
        body = {"metadata": pinned, "spec": {"conversion": {**conversion, "webhook": webhook}}}
        found = await client.request(
            "PATCH", f"{path}?fieldManager={FIELD_MANAGER}", body, content_type=MERGE_PATCH
        )
        pinned["resourceVersion"] = found["metadata"]["resourceVersion"]
    await _apply_definition(client, metadata["name"], pinned, {"conversion": conversion})


async def release_conversion(client: Client, crd: Mapping[str, Any]) -> None:
    """Give up spec.conversion of a CRD: unless another manager owns it, it becomes strategy None."""
    metadata = crd["metadata"]
    pinned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    await _apply_definition(client, metadata["name"], pinned, {})


async def _apply_definition(
    client: Client, name: str, pinned: Mapping[str, str], spec: Mapping[str, Any]
) -> None:
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, **pinned},
        **({"spec": spec} if spec else {}),
    }
    await client.request("PATCH", f"{DEFINITIONS_PATH}/{name}{_APPLY}", body, content_type=APPLY_PATCH)
