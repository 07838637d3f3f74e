"""The live objects of a resource for a rehearsal, whole and page by page."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from crdkeeper.cluster.resources.objects import PAGE, Endpoint
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import (
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    TooLarge,
    Unreachable,
)

_FIRST_PAGE = 50
_PAGE_BYTES = 16 << 20
"""Target size of a page; objects may have 1.5 MB each."""
Unread = Callable[[Mapping[str, Any], str], None]
"""Called with the metadata of an object that is not in any page, and the reason."""


async def pages(
    client: Client,
    endpoint: Endpoint,
    *,
    page_bytes: int = _PAGE_BYTES,
    most: int | None = None,
    seconds: float | None = None,
    what: str = "no answer",
    unread: Unread | None = None,
) -> AsyncGenerator[Sequence[dict[str, Any]], None]:
    """All objects, by a consistent read. Raises ApiError and Unreachable.

    Pages have about `page_bytes`. With `most`, none is larger: an answer that would be is not read to its
    end, and fewer objects are requested. An object that is too large alone is left out, and `unread` is
    called; without that, TooLarge. After 410 the list continues at the same key, with current data.

    With `seconds`, none takes longer: an empty page comes instead, after which fewer objects are requested,
    so that whoever reads can let others go first. Unreachable, whose text begins with `what`, if that is one.
    """
    path = f"{endpoint.base}/{endpoint.resource}"
    size, token = PageSize(_FIRST_PAGE, PAGE, page_bytes, most, seconds), ""
    while True:
        limit = size.limit
        body: dict[str, Any] | None = None
        try:
            body = await bounded_page(client, path, token, size, what=what)
        except TooLarge as error:
            if unread is None:
                raise
            body = await _metadata_of_one(client, path, token, seconds, what)
            for each in body.get("items") or []:
                unread(each["metadata"], str(error))
            body["items"] = []
        except (ApiError, Unreachable):
            if size.limit == limit:
                raise
        if body is None:
            yield []
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
        size.fit(items)


async def _metadata_of_one(
    client: Client, path: str, token: str, seconds: float | None, what: str
) -> dict[str, Any]:
    """A page with the metadata of one object, which is never too large. Raises ApiError and Unreachable."""
    size = PageSize(1, 1, METADATA_BYTES, METADATA_BYTES, seconds)
    return await bounded_page(client, path, token, size, accept=METADATA_ONLY_LIST, what=what)


async def at_version(client: Client, endpoint: Endpoint, namespace: str, name: str) -> dict[str, Any] | None:
    """An object as read at the endpoint's version; None if it is gone. Raises ApiError, Unreachable."""
    try:
        return await client.request("GET", endpoint.path(namespace, name))
    except ApiError as error:
        if error.code == 404 and (error.body.get("details") or {}).get("name") == name:
            return None
        raise
