"""Composites and their objects, as the composer reads and writes them: each write once, and in time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.boundedpages import PageSize, bounded_page
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, Answer, ApiError, Client, find
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL
from crdkeeper.core.conversion.nesting import dumps
from crdkeeper.core.templates.namespaces import Identity

_READ_SECONDS: Final = 20.0
_FIRST_PAGE: Final = 100
_PAGE: Final = 500
_WANTED_BYTES: Final = 512 << 10
_PAGE_BYTES: Final = 10 << 20
"""More than one object can have: etcd takes 1.5 MB, of which JSON can make six times as much."""


async def get_object(client: Client, kind: ServedKind, namespace: str, name: str) -> dict[str, Any] | None:
    """An object; None if there is none. Raises ApiError and Unreachable."""
    return await within(_READ_SECONDS, find(client, kind.path(namespace, name)))


async def list_of_composite(
    client: Client, kind: ServedKind, namespace: str, uid: str, keep: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    """Those objects of a kind with the label of a composite that are to be kept.

    Everybody can set the label, so what is not kept is dropped page by page.

    Raises ApiError, Unreachable, and what `keep` raises.
    """
    path = kind.path(namespace)
    selector = quote(f"{COMPOSITE_LABEL}={uid}", safe="")
    size = PageSize(_FIRST_PAGE, _PAGE, _WANTED_BYTES, _PAGE_BYTES, _READ_SECONDS)
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        body = await bounded_page(client, path, token, size, selector=selector)
        items = body["items"] or ()
        # Items of a list do not say what they are.
        whole = ({**each, "apiVersion": kind.api_version, "kind": kind.kind} for each in items)
        found += [each for each in whole if keep(each)]
        size.fit(items)
        token = body["metadata"].get("continue") or ""
        if not token:
            return found


async def apply_object(
    client: Client,
    kind: ServedKind,
    configuration: Mapping[str, Any],
    live: Mapping[str, Any] | None,
    *,
    force: bool,
) -> tuple[dict[str, Any], bool]:
    """Apply an object; returns it, and whether this request has created it.

    An object that is replaced meanwhile is in conflict; so is one that changes, if fields are taken over.
    Raises ApiError and Unreachable.
    """
    metadata = dict(configuration["metadata"])
    if live is not None:
        metadata["uid"] = live["metadata"]["uid"]
        if force:
            metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
    path = kind.path(metadata.get("namespace", ""), metadata["name"])
    answer = await _apply(client, path, {**configuration, "metadata": metadata}, force=force)
    return answer.json(), answer.code == 201


async def try_to_create(client: Client, kind: ServedKind, configuration: Mapping[str, Any]) -> None:
    """Ask whether an object would be accepted; creates nothing. Raises ApiError and Unreachable.

    The API server looks last whether the object exists, so AlreadyExists says that all else is in order.
    """
    path = (
        f"{kind.path(configuration['metadata'].get('namespace', ''))}?dryRun=All&fieldManager={FIELD_MANAGER}"
    )
    answer = await within(WRITE_SECONDS, client.send("POST", path, content=dumps(configuration)))
    if answer.code >= 400:
        raise ApiError(answer.code, answer.json())


async def give_up_object(client: Client, kind: ServedKind, live: Mapping[str, Any]) -> None:
    """Take back what was applied to an object, which is somebody else's. Raises ApiError and Unreachable."""
    metadata = {key: live["metadata"][key] for key in ("name", "namespace", "uid") if key in live["metadata"]}
    path = kind.path(metadata.get("namespace", ""), metadata["name"])
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    await _apply(client, path, body, force=False)


async def delete_object(client: Client, kind: ServedKind, live: Mapping[str, Any]) -> None:
    """Delete exactly this object. Raises ApiError and Unreachable."""
    metadata = live["metadata"]
    body = {
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "propagationPolicy": "Background",
    }
    path = kind.path(metadata.get("namespace", ""), metadata["name"])
    try:
        await within(WRITE_SECONDS, client.request("DELETE", path, body, once=True))
    except ApiError as error:
        if error.code != 404:
            raise


async def patch_object(
    client: Client, kind: ServedKind, identity: Identity, patch: Mapping[str, Any]
) -> None:
    """Send a merge patch. Raises ApiError and Unreachable."""
    path = f"{kind.path(identity.namespace, identity.name)}?fieldManager={FIELD_MANAGER}"
    await within(WRITE_SECONDS, client.request("PATCH", path, patch, content_type=MERGE_PATCH, once=True))


async def apply_composite_status(
    client: Client, kind: ServedKind, composite: Mapping[str, Any], status: Mapping[str, Any]
) -> dict[str, Any]:
    """Apply the status of exactly this composite, and return it. Raises ApiError and Unreachable."""
    metadata = {
        key: composite["metadata"][key]
        for key in ("name", "namespace", "uid")
        if key in composite["metadata"]
    }
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "status": status}
    path = f"{kind.path(metadata.get('namespace', ''), metadata['name'])}/status"
    return (await _apply(client, path, body, force=True)).json()


async def set_finalizers_of(
    client: Client, kind: ServedKind, composite: Mapping[str, Any], finalizers: Sequence[str]
) -> dict[str, Any]:
    """Replace the finalizers of exactly this version of a composite, and return it.

    Raises ApiError, 409 if it has changed; and Unreachable.
    """
    metadata = composite["metadata"]
    body = {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "finalizers": list(finalizers),
        }
    }
    path = f"{kind.path(metadata.get('namespace', ''), metadata['name'])}?fieldManager={FIELD_MANAGER}"
    request = client.request("PATCH", path, body, content_type=MERGE_PATCH, once=True)
    return await within(WRITE_SECONDS, request)


async def pin_revision(
    client: Client, kind: ServedKind, composite: Mapping[str, Any], revision: str
) -> dict[str, Any]:
    """Let a composite name its revision, unless it has changed. Raises ApiError and Unreachable."""
    metadata = composite["metadata"]
    body = {
        "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "spec": {"crdkeeper": {"compositionRevisionRef": {"name": revision}}},
    }
    path = f"{kind.path(metadata.get('namespace', ''), metadata['name'])}?fieldManager={FIELD_MANAGER}"
    request = client.request("PATCH", path, body, content_type=MERGE_PATCH, once=True)
    return await within(WRITE_SECONDS, request)


async def _apply(client: Client, path: str, body: Mapping[str, Any], *, force: bool) -> Answer:
    query = f"?fieldManager={FIELD_MANAGER}" + ("&force=true" if force else "")
    # Values can be nested as deep as an API server accepts.
    request = client.send("PATCH", path + query, content=dumps(body), content_type=APPLY_PATCH)
    answer = await within(WRITE_SECONDS, request)
    if answer.code >= 400:
        raise ApiError(answer.code, answer.json())
    return answer
