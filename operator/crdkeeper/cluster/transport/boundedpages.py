"""Pages of objects whose size is up to strangers: no answer takes more memory than there is room for.

A limit counts objects, and each may have 1.5 MB, of which metadata alone (annotations, managedFields) can be
nearly all. So the limit follows the size of what is there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.cluster.transport.client import ApiError, Client, TooLarge
from crdkeeper.core.conversion.nesting import length

METADATA_BYTES: Final = 4 << 20
"""Of a page of metadata that tenants write: far more than 500 objects usually have."""
_SHRINKAGE: Final = 4
_GROWTH: Final = 4
"""A page has at most as many times the objects of the one before: large objects may follow small ones."""


@dataclass(slots=True)
class PageSize:
    """How many objects the next page of a list may have."""

    limit: int
    most_objects: int
    wanted_bytes: int
    """The target size of a page, without the indentation and names that an answer may add."""
    most_bytes: int | None = None
    """No page is larger; None if there is room for any."""

    def fit(self, items: Sequence[Any]) -> None:
        """Choose the limit after a page with these objects."""
        wanted = self.wanted_bytes * len(items) // max(length(items), 1)
        self.limit = max(1, min(self.most_objects, wanted, _GROWTH * self.limit))


async def bounded_page(
    client: Client, path: str, token: str, size: PageSize, *, accept: str = "application/json"
) -> dict[str, Any]:
    """The page of the collection `path` that begins at a continue token; at the beginning if it is empty.

    An answer that would be too large is not read to its end, and fewer objects are requested, also from then
    on. After 410 the list continues at the same key, with current data. Raises ApiError, 410 only if the
    server offers no other token; Unreachable, and TooLarge if a single object is too large.
    """
    renewed = False
    while True:
        query = f"?limit={size.limit}" + (f"&continue={quote(token, safe='')}" if token else "")
        try:
            return await client.request("GET", path + query, accept=accept, most=size.most_bytes)
        except TooLarge:
            if size.limit == 1:
                raise
            size.limit = max(1, size.limit // _SHRINKAGE)
        except ApiError as error:
            offered = (error.body.get("metadata") or {}).get("continue")
            if error.code != 410 or not offered or renewed:
                raise
            token, renewed = str(offered), True
