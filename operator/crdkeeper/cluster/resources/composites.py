"""CompositeResourceDefinitions with their CRDs and composites, as the composer reads and writes them."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError, Client, find

FIELD_MANAGER = "crdkeeper-composer"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PAGE = 500


def _path(name: str) -> str:
    return f"/apis/{GROUP}/{VERSION}/{CompositeResourceDefinition.plural}/{quote(name, safe='')}"


async def get_composite_definition(client: Client, name: str) -> dict[str, Any] | None:
    """The CompositeResourceDefinition as it is stored; None if there is none."""
    return await find(client, _path(name))


async def set_finalizers(
    client: Client, definition: CompositeResourceDefinition, finalizers: Sequence[str]
) -> None:
    """Replace the finalizers of exactly this version of the object. Raises ApiError; 409 if it changed."""
    metadata = {
        "uid": definition.metadata.uid,
        "resourceVersion": definition.metadata.resource_version,
        "finalizers": list(finalizers),
    }
    path = f"{_path(definition.metadata.name)}?fieldManager={FIELD_MANAGER}"
    await client.request("PATCH", path, {"metadata": metadata}, content_type=MERGE_PATCH)


async def apply_crd(client: Client, crd: Mapping[str, Any]) -> None:
    """Create the CRD, or put back what it says. What it does not say stays. Raises ApiError."""
    path = f"{_CRDS}/{crd['metadata']['name']}?fieldManager={FIELD_MANAGER}&force=true"
    await client.request("PATCH", path, dict(crd), content_type=APPLY_PATCH)


async def delete_crd(client: Client, crd: Mapping[str, Any]) -> None:
    """Delete exactly this CRD, and with it all of its objects. Does nothing if it is gone or another one."""
    metadata = crd["metadata"]
    await _delete(client, f"{_CRDS}/{metadata['name']}", metadata["uid"])


async def disown_crd(client: Client, crd: Mapping[str, Any], uid: str | None) -> None:
    """Take an owner out of the CRD. Raises ApiError; 409 if the CRD changed."""
    metadata = crd["metadata"]
    body = {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "ownerReferences": [each for each in metadata.get("ownerReferences") or () if each["uid"] != uid],
        }
    }
    path = f"{_CRDS}/{metadata['name']}?fieldManager={FIELD_MANAGER}"
    await client.request("PATCH", path, body, content_type=MERGE_PATCH)


async def count_composites(client: Client, crd: Mapping[str, Any]) -> int | None:
    """How many there are; None if we may not list them, or they are not served at the moment."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
        return 0
    try:
        body = await find(client, f"{_composites(crd)}?limit=1")
    except ApiError as error:
        if error.code == 403:
            return None
        raise
    if body is None:
        return None
    return len(body["items"]) + int(body["metadata"].get("remainingItemCount") or 0)


async def delete_composites(client: Client, crd: Mapping[str, Any]) -> None:
    """Delete the first composites, each as it was listed. Raises ApiError."""
    body = await client.request("GET", f"{_composites(crd)}?limit={_PAGE}")
    namespaced = crd["spec"]["scope"] == "Namespaced"
    for each in body["items"]:
        metadata = each["metadata"]
        if "deletionTimestamp" not in metadata:
            await _delete(
                client, _composites(crd, metadata if namespaced else None, metadata["name"]), metadata["uid"]
            )


def _composites(crd: Mapping[str, Any], metadata: Mapping[str, Any] | None = None, name: str = "") -> str:
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    namespace = f"/namespaces/{quote(metadata['namespace'], safe='')}" if metadata is not None else ""
    base = f"/apis/{spec['group']}/{version}{namespace}/{spec['names']['plural']}"
    return f"{base}/{quote(name, safe='')}" if name else base


async def _delete(client: Client, path: str, uid: str) -> None:
    try:
        await client.request("DELETE", path, {"preconditions": {"uid": uid}})
    except ApiError as error:
        if error.code not in (404, 409):
            raise
