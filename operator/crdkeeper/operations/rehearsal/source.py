"""The live objects of a resource for a rehearsal, whole and page by page."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from crdkeeper.cluster.resources.objects import PAGE, Endpoint
from crdkeeper.cluster.transport.client import ApiError, Client, TooLarge

_FIRST_PAGE = 50
_PAGE_BYTES = 16 << 20
"""Target size of a page; objects may have 1.5 MB each."""
_GROWTH = 4
"""A page has at most as many times the objects of the one before: large objects may follow small ones."""


async def pages(
    client: Client, endpoint: Endpoint, *, page_bytes: int = _PAGE_BYTES, most: int | None = None
) -> AsyncGenerator[Sequence[dict[str, Any]], None]:
    """All objects, by a consistent read. Raises ApiError and Unreachable.

    Pages have about `page_bytes`. With `most`, none is larger: an answer that would be is not read to its
    end, and fewer objects are requested; TooLarge if that is one. After 410 the list continues at the same
    key, with current data.
    """
    limit, token = _FIRST_PAGE, ""
    while True:
        try:
            body = await _page(client, endpoint, limit, token, most)
        except TooLarge:
            if limit == 1:
                raise
            limit = max(1, limit // 4)
            continue
        items: list[dict[str, Any]] = body.get("items") or []
        for each in items:
            # The items of a list need not repeat its fields.
            each.setdefault("apiVersion", body.get("apiVersion"))
            each.setdefault("kind", str(body.get("kind")).removesuffix("List"))
        yield items
        token = body["metadata"].get("continue") or ""
        if not token:
            return
        wanted = page_bytes * len(items) // max(len(orjson.dumps(items)), 1)
        limit = max(1, min(PAGE, wanted, _GROWTH * limit))


async def _page(
    client: Client, endpoint: Endpoint, limit: int, token: str, most: int | None
) -> dict[str, Any]:
    path = f"{endpoint.base}/{endpoint.resource}?limit={limit}"
    try:
        return await client.request("GET", path + _continue(token), most=most)
    except ApiError as error:
        offered = (error.body.get("metadata") or {}).get("continue")
        if error.code != 410 or not offered:
            raise
        return await client.request("GET", path + _continue(offered), most=most)


def _continue(token: str) -> str:
    return f"&continue={quote(token, safe='')}" if token else ""


async def at_version(client: Client, endpoint: Endpoint, namespace: str, name: str) -> dict[str, Any] | None:
    """An object as read at the endpoint's version; None if it is gone. Raises ApiError, Unreachable."""
    try:
        return await client.request("GET", endpoint.path(namespace, name))
    except ApiError as error:
        if error.code == 404 and (error.body.get("details") or {}).get("name") == name:
            return None
        raise
