"""Deletes all composites of a CRD: for some seconds at a time, and each in its turn.

A single deletion takes as long as the admission webhooks that are asked about it, and can be refused forever.
So a pass ends by the clock, and the next one begins where it ended. Each request ends in time, too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from crdkeeper.cluster.resources.composites import composite_path, composites_path
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import (
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    Unreachable,
    find,
)
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.core.diagnosis.census import object_name

PASS_SECONDS: Final = 5.0
"""Nothing begins later, except for the first composites of a page."""
_READ_SECONDS: Final = 10.0
"""For a page of the list, and for the question whether it is still wanted."""
_DELETE_SECONDS: Final = 30.0
"""For one composite: an admission webhook has 30 seconds at most."""
_THROTTLED_SECONDS: Final = 1.0
"""Before another deletion, if the API server, or a webhook, asks for a pause: it may ask for hours."""
UNASKED: Final = 48
"""The most composites that are deleted after somebody has decided to stop."""
_PAGE: Final = 480
_AT_ONCE: Final = 8
_NEEDED: Final = "namespace", "name", "uid", "resourceVersion"
"""Of the metadata, to delete an object."""


@dataclass(slots=True)
class ListPlace:
    """Where a pass through all composites has ended."""

    token: str = ""
    """Continues the list with the page at which it ended; empty at the beginning."""
    next: str = ""
    """Continues the list behind that page."""
    tried: set[str] = field(default_factory=set)
    """The uids of those on that page which were tried already."""
    size: PageSize = field(
        default_factory=lambda: PageSize(_PAGE, _PAGE, METADATA_BYTES // 2, METADATA_BYTES, _READ_SECONDS)
    )


@dataclass(slots=True)
class PassResult:
    """What came of a pass."""

    deleted: int = 0
    """Composites that are deleted now, or wait for their finalizers."""
    failure: ApiError | Unreachable | None = None
    """That of the first in the list; those that fail do not hold up the others."""
    complete: bool = False
    """Whether the pass has come to the end of the list."""


async def delete_composites(
    client: Client, crd: Mapping[str, Any], place: ListPlace, wanted: Callable[[], Awaitable[bool]]
) -> PassResult:
    """Delete the composites that nobody has deleted yet, each as it was listed, from a place on.

    Asks `wanted` before each batch, and stops if it says no. Moves `place` to where the next pass begins.
    Ends within a minute, whatever hangs. Raises ApiError and Unreachable, but not for single composites.
    """
    until, result = 0.0, PassResult()
    while True:
        left = await _page(client, crd, place)
        # A page that takes long leaves as much time as any other.
        until = until or asyncio.get_running_loop().time() + PASS_SECONDS
        for first in range(0, len(left), UNASKED):
            if not await within(_READ_SECONDS, wanted()):
                return result
            await _delete_each(client, crd, left[first : first + UNASKED], until, place, result)
            if _over(until):
                return result
        place.token = place.next
        place.tried.clear()
        result.complete = not place.token
        if result.complete or _over(until):
            return result


def _over(until: float) -> bool:
    return asyncio.get_running_loop().time() >= until


async def _page(client: Client, crd: Mapping[str, Any], place: ListPlace) -> list[dict[str, Any]]:
    """Those on the next page that nobody has deleted yet, and which were not tried.

    Only what a deletion needs: all of the metadata may take hundreds of times the memory.
    """
    path = str(composites_path(crd))
    try:
        body = await bounded_page(client, path, place.token, place.size, accept=METADATA_ONLY_LIST)
    except ApiError as error:
        if error.code != 410 or not place.token:
            raise
        # Expired, and without another token for the same place.
        place.token = ""
        body = await bounded_page(client, path, "", place.size, accept=METADATA_ONLY_LIST)
    found = [each["metadata"] for each in body["items"] or ()]
    place.size.fit(found)
    place.next = body["metadata"].get("continue") or ""
    # Those that wait for their finalizers may be whole pages.
    alive = [each for each in found if "deletionTimestamp" not in each and each["uid"] not in place.tried]
    return [{key: each[key] for key in _NEEDED if key in each} for each in alive]


async def _delete_each(
    client: Client,
    crd: Mapping[str, Any],
    composites: Sequence[Mapping[str, Any]],
    until: float,
    place: ListPlace,
    result: PassResult,
) -> None:
    waiting = enumerate(composites)
    failures: dict[int, ApiError | Unreachable] = {}

    async def work() -> None:
        for number, each in waiting:
            place.tried.add(each["uid"])
            try:
                result.deleted += await within(_DELETE_SECONDS, _delete(client, crd, each), _hangs(each))
            except ApiError as error:
                failures[number] = ApiError(error.code, _about(each, error))
                if error.code == 429:
                    await asyncio.sleep(_THROTTLED_SECONDS)
            except Unreachable as error:
                failures[number] = error
            if _over(until):
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())
    if failures and result.failure is None:
        result.failure = failures[min(failures)]


def _about(composite: Mapping[str, Any], error: ApiError) -> Mapping[str, Any]:
    """The answer, which need not name the object: that of a failing webhook does not."""
    return {"reason": error.reason, "message": f"{object_name(composite)}: {error.message}"}


def _hangs(composite: Mapping[str, Any]) -> str:
    return f"{object_name(composite)}: no answer to its deletion"


async def _delete(client: Client, crd: Mapping[str, Any], listed: Mapping[str, Any]) -> bool:
    """Whether it is deleted now, or waits for its finalizers, by this request."""
    path = composite_path(crd, listed)
    try:
        await _request(client, path, listed)
    except ApiError as error:
        if error.code not in (404, 409):
            raise
        # Somebody has written or deleted it, or an admission webhook answers so: once more, as it is now.
        now = ((await find(client, path, accept=METADATA_ONLY)) or {}).get("metadata") or {}
        if now.get("uid") != listed["uid"] or "deletionTimestamp" in now:
            return False
        await _request(client, path, now)
    return True


async def _request(client: Client, path: str, metadata: Mapping[str, Any]) -> None:
    # As it was seen: a request that is delayed until somebody has decided otherwise must not delete what was
    # written or made since.
    preconditions = {key: metadata[key] for key in ("uid", "resourceVersion")}
    await client.request("DELETE", path, {"preconditions": preconditions}, once=True)
