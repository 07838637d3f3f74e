"""A watch on the objects of one resource, for what must be followed cheaply and by the thousand.

Kopf watches CRDs and the kinds that users write. It takes two milliseconds of CPU for each object, and does
not tell when its list is complete.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import orjson

from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)

_QUERY = "watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


async def watch(
    client: Client, collection: str, since: str, *, selector: str = ""
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The changes after a resourceVersion, each as ADDED, MODIFIED or DELETED with the object, without end.

    An API server that does not answer, or answers with 429 or 5xx, is waited out, and the watch goes on after
    the last change that it saw: no new list is needed. `selector` is a label selector.

    Raises ApiError for any other answer; with 410 if so much has changed that a new list is needed.
    """
    version = since
    query = f"{_QUERY}&labelSelector={quote(selector)}" if selector else _QUERY
    failures = 0
    while True:
        trouble = "it ended without an event"
        try:
            async for line in client.lines(f"{collection}?{query}&resourceVersion={version}"):
                event = orjson.loads(line)
                found: dict[str, Any] = event["object"]
                if event["type"] == "ERROR":
                    raise ApiError(int(found.get("code") or 500), found)
                version, failures, trouble = found["metadata"]["resourceVersion"], 0, ""
                if event["type"] != "BOOKMARK":
                    yield event["type"], found
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.code != 429 and error.code < 500:
                raise
            trouble = str(error)
        if trouble:
            wait = backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)
            _log.log(
                logging.WARNING if failures else logging.INFO,
                "The watch of %s broke: %s; going on in %.1f s",
                collection,
                trouble,
                wait,
            )
            failures += 1
            await asyncio.sleep(wait)
