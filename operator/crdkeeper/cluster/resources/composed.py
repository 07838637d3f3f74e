"""Composites and their objects, as the composer reads and writes them: each write once, and in time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import (
    APPLY_PATCH,
    MERGE_PATCH,
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    TooLarge,
    find,
)
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within
from crdkeeper.cluster.transport.watches import listed
from crdkeeper.core.composites.ownership import COMPOSITE_LABEL
from crdkeeper.core.conversion.nesting import dumps
from crdkeeper.core.templates.namespaces import Identity

_READ_SECONDS: Final = 20.0
_FIRST_PAGE: Final = 10
_PAGE: Final = 500
_METADATA_PAGE: Final = 100
"""At a start all kinds are listed at once, each of which takes several times the memory of its answer."""
_WANTED_BYTES: Final = 256 << 10
_PAGE_BYTES: Final = 1 << 20
"""Of many pages at once."""
_OBJECT_BYTES: Final = 10 << 20
"""More than one object can have: etcd takes 1.5 MB, of which JSON can make six times as much."""
_NEVER: Final = "1"
"""The resourceVersion of no object. An apply that has it creates the object, or is in conflict with one that
exists: what somebody else creates at the same moment is not touched."""


async def get_object(client: Client, kind: ServedKind, namespace: str, name: str) -> dict[str, Any] | None:
    """An object; None if there is none. Raises ApiError and Unreachable."""
    return await within(_READ_SECONDS, find(client, kind.path(namespace, name)))


async def get_composed(
    client: Client, kind: ServedKind, namespace: str, name: str, large: asyncio.Semaphore
) -> dict[str, Any] | None:
    """An object that others decide the size of; None if there is none. A large one is read in its turn.

    Raises ApiError, 404 if the kind is not served at this version any more; and Unreachable.
    """
    path = kind.path(namespace, name)
    try:
        try:
            return await within(_READ_SECONDS, client.request("GET", path, most=_PAGE_BYTES))
        except TooLarge:
            async with large:
                return await within(_READ_SECONDS, client.request("GET", path, most=_OBJECT_BYTES))
    except ApiError as error:
        if not _is_gone(error):
            raise
        return None


async def list_metadata(
    client: Client, path: str, selector: str, take: Callable[[Mapping[str, Any]], object]
) -> str:
    """Take the metadata of all objects, of which tenants decide how large it is.

    `selector` is a label selector. Returns the resourceVersion from which to watch. Raises ApiError and
    Unreachable.
    """
    size = PageSize(_METADATA_PAGE, _METADATA_PAGE, METADATA_BYTES // 2, METADATA_BYTES, _READ_SECONDS)
    encoded = quote(selector, safe="")
    version = token = ""
    while True:
        body = await bounded_page(client, path, token, size, accept=METADATA_ONLY_LIST, selector=encoded)
        items, first = listed(body)
        for each in items:
            take(each)
        size.fit([each["metadata"] for each in items])
        version = version or first
        token = body["metadata"].get("continue") or ""
        if not token:
            return version


async def list_of_composite(
    client: Client,
    kind: ServedKind,
    namespace: str,
    uid: str,
    keep: Callable[[dict[str, Any]], bool],
    large: asyncio.Semaphore,
) -> list[dict[str, Any]]:
    """Those objects of a kind with the label of a composite that are to be kept.

    Everybody can set the label, so what is not kept is dropped page by page. An object that is larger than a
    page is read in its turn of `large`.

    Raises ApiError, Unreachable, and what `keep` raises.
    """
    path = kind.path(namespace)
    selector = quote(f"{COMPOSITE_LABEL}={uid}", safe="")
    size = PageSize(_FIRST_PAGE, _PAGE, _WANTED_BYTES, _PAGE_BYTES, _READ_SECONDS)
    one = PageSize(1, 1, _WANTED_BYTES, _OBJECT_BYTES, _READ_SECONDS)
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        body = None
        with suppress(TooLarge):
            body = await bounded_page(client, path, token, size, selector=selector)
        if body is None:
            async with large:
                body = await bounded_page(client, path, token, one, selector=selector)
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
) -> dict[str, Any]:
    """Apply an object, and return it; without `live`, only create it.

    An object that was created, replaced or changed since is in conflict: a request that arrives late, perhaps
    after another composer has released or given up the object, does nothing. Raises ApiError and Unreachable.
    """
    metadata = dict(configuration["metadata"])
    if live is None:
        metadata["resourceVersion"] = _NEVER
    else:
        metadata["uid"] = live["metadata"]["uid"]
        metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
    path = kind.path(metadata.get("namespace", ""), metadata["name"])
    return await _apply(client, path, {**configuration, "metadata": metadata}, force=force)


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


async def delete_object(client: Client, kind: ServedKind, live: Mapping[str, Any]) -> dict[str, Any] | None:
    """Delete exactly this object; returns it if it may exist still.

    Raises ApiError, 404 if the kind is not served at this version any more; and Unreachable.
    """
    metadata = live["metadata"]
    body = {
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
        "propagationPolicy": "Background",
    }
    path = kind.path(metadata.get("namespace", ""), metadata["name"])
    try:
        answer = await within(WRITE_SECONDS, client.request("DELETE", path, body, once=True))
    except ApiError as error:
        if not _is_gone(error):
            raise
        return None
    # Of some kinds of its own, as Services, the API server answers with the object that is gone.
    gone = answer.get("kind") == "Status" or (
        not kind.group and "deletionTimestamp" not in answer["metadata"]
    )
    return None if gone else answer


def _is_gone(error: ApiError) -> bool:
    # Of a path that is not served, the API server says no reason.
    return error.code == 404 and error.reason == "NotFound"


async def patch_object(
    client: Client, kind: ServedKind, identity: Identity, patch: Mapping[str, Any]
) -> dict[str, Any]:
    """Send a merge patch, and return the object. Raises ApiError and Unreachable."""
    path = f"{kind.path(identity.namespace, identity.name)}?fieldManager={FIELD_MANAGER}"
    request = client.request("PATCH", path, patch, content_type=MERGE_PATCH, once=True)
    return await within(WRITE_SECONDS, request)


async def apply_composite_status(
    client: Client, kind: ServedKind, composite: Mapping[str, Any], status: Mapping[str, Any]
) -> dict[str, Any]:
    """Apply the status of exactly this version of a composite, and return it.

    Raises ApiError, 409 if it has changed; and Unreachable.
    """
    metadata = {
        key: composite["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion")
        if key in composite["metadata"]
    }
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "status": status}
    path = f"{kind.path(metadata.get('namespace', ''), metadata['name'])}/status"
    return await _apply(client, path, body, force=True)


async def get_same(client: Client, kind: ServedKind, composite: Mapping[str, Any]) -> dict[str, Any] | None:
    """A composite with what others have changed since; None if it is another one, or the composer wrote it.

    Raises ApiError and Unreachable.
    """
    metadata = composite["metadata"]
    found = await get_object(client, kind, metadata.get("namespace", ""), metadata["name"])
    if found is None or found["metadata"]["uid"] != metadata["uid"]:
        return None
    return found if _state_of(found) == _state_of(composite) else None


def _state_of(composite: Mapping[str, Any]) -> object:
    status = composite.get("status")
    return status.get("crdkeeper") if isinstance(status, Mapping) else None


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
    """Let a composite name its revision, unless it has changed. Raises ApiError and Unreachable.

    By an apply, after which the name alone is ours. With a patch, compositionRevisionRef would be, too: a
    client that has applied another name could not give it up, because an empty reference would be left.
    """
    metadata = {
        key: composite["metadata"][key]
        for key in ("name", "namespace", "uid", "resourceVersion")
        if key in composite["metadata"]
    }
    spec = {"crdkeeper": {"compositionRevisionRef": {"name": revision}}}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
    path = kind.path(metadata.get("namespace", ""), metadata["name"])
    return await _apply(client, path, body, force=False)


async def _apply(client: Client, path: str, body: Mapping[str, Any], *, force: bool) -> dict[str, Any]:
    query = f"?fieldManager={FIELD_MANAGER}" + ("&force=true" if force else "")
    # Values can be nested as deep as an API server accepts.
    request = client.send("PATCH", path + query, content=dumps(body), content_type=APPLY_PATCH)
    answer = await within(WRITE_SECONDS, request)
    if answer.code >= 400:
        raise ApiError(answer.code, answer.json())
    return answer.json()
