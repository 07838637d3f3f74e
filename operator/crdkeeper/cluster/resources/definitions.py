"""CustomResourceDefinitions: read one, list them, and trim status.storedVersions."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from crdkeeper.api.meta import FIELD_MANAGER
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.cluster.transport.client import (
    JSON_PATCH,
    MERGE_PATCH,
    METADATA_ONLY,
    ApiError,
    Client,
    find,
)
from crdkeeper.cluster.transport.pages import names_in, pages

DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def get_definition(client: Client, name: str) -> DefinitionFacts | None:
    """The CRD named `plural.group`, by a consistent read; None if there is none."""
    found = await get_definition_object(client, name)
    return definition_facts(found) if found is not None else None


async def get_definition_object(client: Client, name: str) -> dict[str, Any] | None:
    """The whole CRD named `plural.group`, by a consistent read; None if there is none."""
    return await find(client, f"{DEFINITIONS_PATH}/{name}")


async def read_definition(client: Client, name: str) -> bytes | None:
    """The CRD as JSON, not decoded; None if there is none. Raises ApiError or Unreachable."""
    answer = await client.send("GET", f"{DEFINITIONS_PATH}/{name}")
    if answer.code == 404:
        return None
    if answer.code >= 400:
        raise ApiError(answer.code, answer.json())
    return answer.content


async def list_definitions(client: Client, selector: str = "", page: int = 100) -> list[DefinitionFacts]:
    """List all CRDs that match a label selector, a page at a time: with their schemas they are large."""
    return [definition_facts(each) async for each in _definitions(client, selector, page)]


async def list_definition_names(client: Client) -> list[str]:
    """The names of all CRDs, by a consistent read without their schemas."""
    return await names_in(client, DEFINITIONS_PATH)


async def list_definition_objects(client: Client, selector: str = "") -> list[dict[str, Any]]:
    """List all CRDs that match a label selector, with their schemas."""
    return [each async for each in _definitions(client, selector, 100)]


async def _definitions(client: Client, selector: str, page: int) -> AsyncIterator[dict[str, Any]]:
    query = f"?limit={page}" + (f"&labelSelector={quote(selector, safe='')}" if selector else "")
    async for body in pages(client, f"{DEFINITIONS_PATH}{query}"):
        for each in body["items"]:
            yield each


async def get_revision(client: Client, name: str) -> tuple[str, int] | None:
    """uid and generation of a CRD without its schemas, cheap enough to check often for changes.

    None if it is gone or being deleted: a deletion does not change the generation.
    """
    body = await find(client, f"{DEFINITIONS_PATH}/{name}", accept=METADATA_ONLY)
    if body is None:
        return None
    metadata = body["metadata"]
    if "deletionTimestamp" in metadata:
        return None
    return metadata["uid"], metadata.get("generation", 0)


async def trim_stored_versions(client: Client, definition: DefinitionFacts, keep: Sequence[str]) -> None:
    """Set status.storedVersions to `keep`, only if the CRD is still exactly as in `definition`.

    Raises ApiError; 409 means that it changed or was re-created.
    """
    body = {
        "metadata": {"uid": definition.uid, "resourceVersion": definition.resource_version},
        "status": {"storedVersions": list(keep)},
    }
    path = f"{DEFINITIONS_PATH}/{definition.name}/status?fieldManager={FIELD_MANAGER}"
    await client.request("PATCH", path, body, content_type=MERGE_PATCH)


async def patch_definition(
    client: Client, name: str, operations: Sequence[Mapping[str, Any]], manager: str
) -> dict[str, Any]:
    """Change a CRD by a JSON patch. Returns it as changed.

    Raises ApiError; 422 also means that one of its tests has failed.
    """
    path = f"{DEFINITIONS_PATH}/{quote(name, safe='')}?fieldManager={manager}"
    return await client.request("PATCH", path, list(operations), content_type=JSON_PATCH)
