"""A watch on the objects of one resource, where cheap watches of thousands of objects are needed.

Kopf watches CRDs and the kinds that users write. It takes two milliseconds of CPU for each object, and does
not report when its list is complete.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from crdkeeper.cluster.transport.client import ApiError, Client, NoCredentials, Unreachable, may_pass
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)

_QUERY = "watch=true&allowWatchBookmarks=true&timeoutSeconds=300"
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
REFUSED_SECONDS = 600.0
"""How long to retry refused credentials: an API server that cannot look up accounts refuses all."""

Heard = Callable[[str], None]
"""Called with an empty text when the API server answered, else with the reason why it did not."""


def _nobody(_: str) -> None:
    """The callback of callers that need none."""


def _nothing() -> None:
    """The other one."""


def _never(_: ApiError) -> bool:
    """For those that are to be retried whatever is answered."""
    return False


async def follow(
    client: Client,
    collection: str,
    load: Callable[[], Awaitable[str]],
    saw: Callable[[str, dict[str, Any]], Awaitable[None]],
    *,
    selector: str = "",
    fields: str = "",
    accept: str = "application/json",
    heard: Heard = _nobody,
    begun: Callable[[], None] = _nothing,
    ends: Callable[[ApiError], bool] = _never,
) -> None:
    """Keep a copy of a collection: `load` lists it and returns the resourceVersion, `saw` gets each change.

    Runs for ever: a refused request is retried, beginning with a list, as changes may have been missed.
    `selector` is a label selector, `fields` a field selector, `accept` the form of the objects. `begun` is
    called whenever a watch was accepted. `ends` says of which refusals to raise.

    Raises what `load` and `saw` raise besides ApiError and Unreachable; and the API server's 401 or
    NoCredentials if no credentials have been accepted for `REFUSED_SECONDS`.
    """
    loop = asyncio.get_running_loop()
    failures = 0
    refused_since: float | None = None

    def hear(trouble: str) -> None:
        nonlocal failures, refused_since
        if not trouble:
            failures, refused_since = 0, None
        heard(trouble)

    while True:
        try:
            version = await load()
            refused_since = None
            heard("")
            async for type_, found in watch(
                client,
                collection,
                version,
                selector=selector,
                fields=fields,
                accept=accept,
                heard=hear,
                begun=begun,
            ):
                await saw(type_, found)
        except (ApiError, Unreachable) as error:
            heard(str(error))
            if isinstance(error, ApiError) and ends(error):
                raise
            code = error.code if isinstance(error, ApiError) else 0
            if code == 401 or isinstance(error, NoCredentials):
                refused_since = loop.time() if refused_since is None else refused_since
                if loop.time() - refused_since >= REFUSED_SECONDS:
                    raise
            elif 0 < code < 500:
                refused_since = None
            # A list that expires at once is the price of a long pause; one that always does is a problem.
            wait = 0.0 if code == 410 and not failures else backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)
            failures += 1
            _log.log(
                logging.WARNING if wait else logging.INFO,
                "%s cannot be watched: %s; listing again in %.1f s",
                collection,
                error,
                wait,
            )
            await asyncio.sleep(wait)


async def watch(
    client: Client,
    collection: str,
    since: str,
    *,
    selector: str = "",
    fields: str = "",
    accept: str = "application/json",
    heard: Heard = _nobody,
    begun: Callable[[], None] | None = None,
    failed: Callable[[ApiError], None] | None = None,
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the changes after a resourceVersion as ADDED, MODIFIED or DELETED with the object, without end.

    While the API server does not answer, or answers with 429 or 5xx, the watch waits, then continues after
    the last change that it saw: no new list is needed. `selector` is a label selector, `fields` a field
    selector, `accept` the form of the objects. `begun` is called whenever the API server has accepted the
    request, `failed` whenever it answers with 429 or 5xx.

    Raises ApiError for any other answer; 410 if so much has changed that a new list is needed.
    """
    version = since
    query = f"{_QUERY}&labelSelector={quote(selector)}" if selector else _QUERY
    query += f"&fieldSelector={quote(fields, safe='')}" if fields else ""
    failures = 0
    while True:
        trouble = "it ended without an event"
        try:
            path = f"{collection}?{query}&resourceVersion={version}"
            async for line in client.lines(path, accept=accept, begun=begun):
                type_, found, version = _event(line)
                failures, trouble = 0, ""
                heard("")
                if type_ != "BOOKMARK":
                    yield type_, found
        except (ApiError, Unreachable) as error:
            if not may_pass(error):
                raise
            if isinstance(error, ApiError) and failed is not None:
                failed(error)
            trouble = str(error)
        if trouble:
            heard(trouble)
            wait = backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)
            _log.log(
                logging.WARNING if failures else logging.INFO,
                "The watch of %s broke: %s; resuming in %.1f s",
                collection,
                trouble,
                wait,
            )
            failures += 1
            await asyncio.sleep(wait)


def listed(body: Any) -> tuple[Sequence[Mapping[str, Any]], str]:
    """The objects of a list, and the resourceVersion from which to watch.

    Raises Unreachable for what is no list from which one can: what answers need not be an API server of
    Kubernetes, but an aggregated one.
    """
    try:
        items, version = body["items"] or (), body["metadata"]["resourceVersion"]
        for each in items:
            _ = each["metadata"]["name"], each["metadata"]["resourceVersion"]
    except (LookupError, TypeError) as error:
        raise Unreachable(f"no list that can be watched: {error!r}") from error
    return items, str(version)


def _event(line: bytes) -> tuple[str, dict[str, Any], str]:
    """An event's type, object and resourceVersion. Raises ApiError for ERROR, Unreachable for no event."""
    try:
        event = loads(line)
        type_, found = event["type"], event["object"]
        if type_ == "ERROR":
            raise ApiError(int(found.get("code") or 500), found)
        return type_, found, found["metadata"]["resourceVersion"]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreachable(f"no event of a watch: {error!r}") from error
