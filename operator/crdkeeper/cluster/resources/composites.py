"""CompositeResourceDefinitions with their CRDs and composites, as the composer reads and writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.cluster.resources.definitions import DEFINITIONS_PATH
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    METADATA_ONLY_LIST,
    Client,
    find,
)
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, TooSlow, within
from crdkeeper.cluster.transport.hunglists import hung, refuse_hanging
from crdkeeper.core.composer.holding import Waiting, waiting_among
from crdkeeper.core.composition.definition import OWNER
from crdkeeper.core.diagnosis.census import object_name

FIELD_MANAGER = "crdkeeper-composer"
CLAIMED = f"{GROUP}/claimed-at"
"""The annotation of a CRD whose definition is being deleted: the resourceVersion when a composer saw that."""
COMPOSER = f"{GROUP}/composer"
"""Who reports the Events."""
_COUNT_SECONDS = 10.0


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
    await _write(client, "PATCH", path, {"metadata": metadata}, MERGE_PATCH)


async def apply_crd(client: Client, crd: Mapping[str, Any], live: Mapping[str, Any] | None) -> dict[str, Any]:
    """Create the CRD, or put back what it says, and return it. What it does not say stays.

    `live` is the CRD for which that was decided; None if there was none. Raises ApiError; 409 if it changed
    since, or if somebody else has created one.
    """
    metadata = dict(crd["metadata"])
    path = f"{DEFINITIONS_PATH}/{metadata['name']}?fieldManager={FIELD_MANAGER}"
    if live is not None:
        # Without force on a CRD that is not there: one that somebody creates now is in conflict, and stays.
        path += "&force=true"
        metadata |= _as_read(live)
    return await _write(client, "PATCH", path, {**crd, "metadata": metadata}, APPLY_PATCH)


async def delete_crd(client: Client, crd: Mapping[str, Any]) -> None:
    """Delete the CRD, and with it all of its objects. Raises ApiError; 409 if it changed or is another."""
    path = f"{DEFINITIONS_PATH}/{crd['metadata']['name']}"
    await _write(client, "DELETE", path, {"preconditions": _as_read(crd)})


async def try_deletion(client: Client, crd: Mapping[str, Any]) -> None:
    """Ask whether the CRD may be deleted. Raises ApiError, 409 if it is another; and Unreachable."""
    path = f"{DEFINITIONS_PATH}/{crd['metadata']['name']}"
    # In the body: with one, the API server ignores the query, and would delete the CRD.
    body = {"preconditions": {"uid": crd["metadata"]["uid"]}, "dryRun": ["All"]}
    await _write(client, "DELETE", path, body)


async def release_crd(client: Client, crd: Mapping[str, Any]) -> None:
    """Let the CRD belong to no definition. Raises ApiError; 409 if the CRD changed."""
    await patch_metadata(client, crd, {"annotations": {OWNER: None, CLAIMED: None}})


async def claim_crd(client: Client, crd: Mapping[str, Any]) -> None:
    """Change the CRD's resourceVersion, so that no request has an effect which was decided before.

    Raises ApiError; 409 if the CRD changed.
    """
    # Another value each time: what changes nothing is not stored.
    await patch_metadata(client, crd, {"annotations": {CLAIMED: crd["metadata"]["resourceVersion"]}})


async def patch_metadata(
    client: Client, crd: Mapping[str, Any], change: Mapping[str, Mapping[str, str | None]]
) -> dict[str, Any]:
    """Merge labels and annotations into the CRD, and return it. Raises ApiError; 409 if the CRD changed."""
    body = {"metadata": {**_as_read(crd), **change}}
    path = f"{DEFINITIONS_PATH}/{crd['metadata']['name']}?fieldManager={FIELD_MANAGER}"
    return await _write(client, "PATCH", path, body, MERGE_PATCH)


async def patch_crd(
    client: Client, crd: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Change the CRD by a JSON patch, and return it. Raises ApiError; 409 if the CRD changed."""
    metadata = crd["metadata"]
    # No other object has this version. A uid that differs would be an invalid change, not a conflict.
    same = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    path = f"{DEFINITIONS_PATH}/{metadata['name']}?fieldManager={FIELD_MANAGER}"
    return await _write(client, "PATCH", path, [same, *operations], JSON_PATCH)


async def _write(
    client: Client,
    method: str,
    path: str,
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    content_type: str = "application/json",
) -> dict[str, Any]:
    """Send a write once: a failing webhook takes half a minute each time, and whoever decided that pauses."""
    answer = client.request(method, path, body, content_type=content_type, once=True)
    return await within(WRITE_SECONDS, answer)


def _as_read(crd: Mapping[str, Any]) -> dict[str, Any]:
    """What lets a request fail if the CRD has changed since."""
    return {key: crd["metadata"][key] for key in ("uid", "resourceVersion")}


@dataclass(frozen=True, slots=True)
class FirstComposites:
    """The first composites of a CRD, and how many there are."""

    number: int
    names: tuple[str, ...]
    """Of the first ones, as namespace/name."""
    waiting: Waiting
    """Which of the first ones wait for finalizers."""
    resource_version: str
    """From which to watch."""


def is_served(crd: Mapping[str, Any]) -> bool:
    """Whether the API server has begun to serve the CRD's API."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def page_of_first(most: int) -> PageSize:
    """A page has at most that many composites, and fewer if they are large or slow."""
    return PageSize(most, most, METADATA_BYTES // 2, METADATA_BYTES, _COUNT_SECONDS)


async def first_composites(client: Client, collection: str, size: PageSize) -> FirstComposites:
    """Count the composites, by a consistent read, and name the first of them: a page.

    Raises ApiError and Unreachable; Unreachable also if it takes long, as when a conversion webhook hangs;
    the next page has fewer then, and none is asked for that would hang again.
    """
    await refuse_hanging(client, collection)
    alone = size.limit == 1
    try:
        body = await bounded_page(client, collection, "", size, accept=METADATA_ONLY_LIST)
    except TooSlow as error:
        # Fewer might be listed in time.
        if alone:
            hung(client, collection, str(error))
        raise
    # An empty list of metadata is null.
    found = [each["metadata"] for each in body["items"] or ()]
    size.fit(found)
    more = int(body["metadata"].get("remainingItemCount") or 0)
    return FirstComposites(
        len(found) + more,
        tuple(map(object_name, found)),
        waiting_among(found),
        body["metadata"]["resourceVersion"],
    )


def composites_path(crd: Mapping[str, Any]) -> str | None:
    """The collection of all composites; None if no version of the CRD is served."""
    return _collection(crd) if any(each["served"] for each in crd["spec"]["versions"]) else None


def composite_path(crd: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """One composite, of a CRD that has a served version."""
    return f"{_collection(crd, metadata.get('namespace', ''))}/{quote(metadata['name'], safe='')}"


def _collection(crd: Mapping[str, Any], namespace: str = "") -> str:
    spec = crd["spec"]
    served = [each for each in spec["versions"] if each["served"]]
    # What is stored in the version that is asked for needs no conversion.
    version = next((each["name"] for each in served if each["storage"]), served[0]["name"])
    within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"/apis/{spec['group']}/{version}{within}/{spec['names']['plural']}"
