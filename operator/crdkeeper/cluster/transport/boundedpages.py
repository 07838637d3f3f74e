"""Pages of objects whose size is up to strangers: none takes more memory or time than there is.

A limit counts objects, and each may have 1.5 MB, of which metadata alone (annotations, managedFields) can be
nearly all. Even if that is little, the API server reads and converts whole objects, by a webhook that may be
slow. So the limit follows what is there. Otherwise, what takes too long once would do so each time.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.transport.client import ApiError, Client, TooLarge
from crdkeeper.cluster.transport.deadlines import TooSlow, within
from crdkeeper.core.conversion.nesting import length

METADATA_BYTES: Final = 4 << 20
"""Of a page of metadata that tenants write: far more than 500 objects usually have."""
_SHRINKAGE: Final = 4
_GROWTH: Final = 4
"""A page has at most as many times the objects of the one before: large objects may follow small ones."""
_PAGE_SECONDS: Final = 20.0
_SPARE: Final = 2
"""A page that comes as fast as the one before takes half of the time that there is."""


@dataclass(slots=True)
class PageSize:
    """How many objects the next page of a list may have."""

    limit: int
    most_objects: int
    wanted_bytes: int
    """The target size of a page, without the indentation and names that an answer may add."""
    most_bytes: int | None = None
    """No page is larger; None if there is room for any."""
    seconds: float | None = None
    """No page takes longer; None if there is time for any."""
    took: float = 0.0
    """Seconds, for the last page."""

    def fit(self, items: Sequence[Any]) -> None:
        """Choose the limit after a page with these objects; one without any says nothing about others."""
        if not items:
            return
        wanted = self.wanted_bytes * len(items) // max(length(items), 1)
        if self.seconds is not None and self.took > 0.0:
            wanted = min(wanted, int(len(items) * self.seconds / (_SPARE * self.took)))
        self.limit = max(1, min(self.most_objects, wanted, _GROWTH * self.limit))

    def shrink(self) -> None:
        """Choose the limit after a page of which there was too much."""
        self.limit = max(1, self.limit // _SHRINKAGE)


async def bounded_page(
    client: Client,
    path: str,
    token: str,
    size: PageSize,
    *,
    accept: str = "application/json",
    what: str = "no answer",
    selector: str = "",
) -> dict[str, Any]:
    """The page of the collection `path` that begins at a continue token; at the beginning if it is empty.

    `selector` is a label selector, encoded for a query.

    An answer that would be too large is not read to its end, and fewer objects are requested, also from then
    on. After 410 the list continues at the same key, with current data.

    Raises ApiError, 410 only if the server offers no other token; Unreachable, whose text begins with `what`
    if it takes too long; TooLarge if a single object is too large. If there is a limit of time, and less
    might succeed, the next page has fewer objects after that.
    """
    loop, renewed = asyncio.get_running_loop(), False
    while True:
        query = f"?limit={size.limit}" + (f"&continue={quote(token, safe='')}" if token else "")
        query += f"&labelSelector={selector}" if selector else ""
        began = loop.time()
        try:
            request = client.request("GET", path + query, accept=accept, most=size.most_bytes)
            body = await (request if size.seconds is None else within(size.seconds, request, what))
            size.took = loop.time() - began
            return body
        except TooLarge:
            if size.limit == 1:
                raise
            size.shrink()
        except TooSlow:
            size.shrink()
            raise
        except ApiError as error:
            if error.code >= 500 and size.seconds is not None:
                # A conversion webhook may take only so many objects, or only some seconds.
                size.shrink()
            offered = (error.body.get("metadata") or {}).get("continue")
            if error.code != 410 or not offered or renewed:
                raise
            token, renewed = str(offered), True


async def each_object(client: Client, path: str, first: int, most: int) -> AsyncIterator[Mapping[str, Any]]:
    """All objects of a collection: pages begin with `first` objects, and have at most so many.

    Raises ApiError and Unreachable.
    """
    size = PageSize(first, most, METADATA_BYTES // 2, 4 * METADATA_BYTES, _PAGE_SECONDS)
    token = ""
    while True:
        body: Mapping[str, Any] = await bounded_page(client, path, token, size)
        items = body["items"] or ()
        for each in items:
            yield each
        size.fit(items)
        token = str(body["metadata"].get("continue") or "")
        if not token:
            return
