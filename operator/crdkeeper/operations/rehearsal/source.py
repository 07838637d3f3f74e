"""The live objects of a resource for a rehearsal, whole and page by page."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from crdkeeper.cluster.resources.objects import PAGE, Endpoint
from crdkeeper.cluster.transport.boundedpages import PageSize, bounded_page
from crdkeeper.cluster.transport.client import ApiError, Client

_FIRST_PAGE = 50
_PAGE_BYTES = 16 << 20
"""Target size of a page; objects may have 1.5 MB each."""


async def pages(
    client: Client, endpoint: Endpoint, *, page_bytes: int = _PAGE_BYTES, most: int | None = None
) -> AsyncGenerator[Sequence[dict[str, Any]], None]:
    """All objects, by a consistent read. Raises ApiError and Unreachable.

    Pages have about `page_bytes`. With `most`, none is larger: an answer that would be is not read to its
    end, and fewer objects are requested; TooLarge if that is one. After 410 the list continues at the same
    key, with current data.
    """
    size, token = PageSize(_FIRST_PAGE, PAGE, page_bytes, most), ""
    while True:
        body = await bounded_page(client, f"{endpoint.base}/{endpoint.resource}", token, size)
        items: list[dict[str, Any]] = body.get("items") or []
        for each in items:
            # The items of a list need not repeat its fields.
            each.setdefault("apiVersion", body.get("apiVersion"))
            each.setdefault("kind", str(body.get("kind")).removesuffix("List"))
        yield items
        token = body["metadata"].get("continue") or ""
        if not token:
            return
        size.fit(items)


async def at_version(client: Client, endpoint: Endpoint, namespace: str, name: str) -> dict[str, Any] | None:
    """An object as read at the endpoint's version; None if it is gone. Raises ApiError, Unreachable."""
    try:
        return await client.request("GET", endpoint.path(namespace, name))
    except ApiError as error:
        if error.code == 404 and (error.body.get("details") or {}).get("name") == name:
            return None
        raise
