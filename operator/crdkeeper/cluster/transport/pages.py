"""Lists, a page at a time, as one API server answer each."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, Client, Unreachable

_NAMED = 100
"""Objects in a page of which only the names are wanted: an annotation can have 256 KiB."""


async def pages(
    client: Client, path: str, *, accept: str = "application/json"
) -> AsyncIterator[dict[str, Any]]:
    """The List objects of a consistent read; `path` has at least the parameter limit.

    Raises ApiError and Unreachable, the latter also for an answer that is no list; ApiError 410 if the list
    takes longer than the server keeps its state.
    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
    """
    token = ""
    while True:
        body = await client.request("GET", f"{path}{token}", accept=accept)
        # An empty list of metadata is null.
        listed = "items" in body and isinstance(body["items"], list | None)
        if not listed or not isinstance(body.get("metadata"), dict):
            client.distrust()
            raise Unreachable(f"GET {path}: the answer is not a list")
        yield {**body, "items": body["items"] or []}
        if not body["metadata"].get("continue"):
            return
        token = f"&continue={quote(body['metadata']['continue'], safe='')}"


async def names_in(client: Client, collection: str) -> list[str]:
    """The names of all objects of a collection without namespaces, by a consistent read of their metadata.

    Raises like `pages`.
    """
    found = []
    async for body in pages(client, f"{collection}?limit={_NAMED}", accept=METADATA_ONLY_LIST):
        found += [str(each["metadata"]["name"]) for each in body["items"]]
    return found
