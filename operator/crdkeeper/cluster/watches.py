"""A watch on the objects of one resource, for what must be followed cheaply and by the thousand.

Kopf watches CRDs and the kinds that users write. It takes two milliseconds of CPU for each object, and does
not tell when its list is complete.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import orjson

from crdkeeper.cluster.client import ApiError, Client

_QUERY = "watch=true&allowWatchBookmarks=true&timeoutSeconds=300"


async def watch(
    client: Client, collection: str, since: str, *, selector: str = ""
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The changes after a resourceVersion, each as ADDED, MODIFIED or DELETED with the object, without end.

    `selector` is a label selector.

    Raises ApiError, with 410 if so much has changed that a new list is needed, and Unreachable.
    """
    version = since
    query = f"{_QUERY}&labelSelector={quote(selector)}" if selector else _QUERY
    while True:
        async for line in client.lines(f"{collection}?{query}&resourceVersion={version}"):
            event = orjson.loads(line)
            found: dict[str, Any] = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(int(found.get("code") or 500), found)
            version = found["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                yield event["type"], found
