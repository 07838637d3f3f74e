"""Takes the composer's finalizer off all composites of a CRD that is left to nobody."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.cluster.resources.composites import FIELD_MANAGER, composite_path, composites_path
from crdkeeper.cluster.resources.compositions import is_composed
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import MERGE_PATCH, METADATA_ONLY_LIST, ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, TooSlow, within
from crdkeeper.cluster.transport.hunglists import refuse_hanging
from crdkeeper.core.composites.ownership import FINALIZER
from crdkeeper.core.diagnosis.census import object_name

_SECONDS: Final = 15.0
"""Then others have their turn."""
_READ_SECONDS: Final = 10.0
_PAGE: Final = 480
_AT_ONCE: Final = 8


async def release_composites(client: Client, crd: Mapping[str, Any]) -> None:
    """Let no composite wait for the composer any more; their objects stay, and so do the owner references.

    Raises ApiError; and Unreachable, also if it is not complete yet: the next attempt continues.
    """
    path = composites_path(crd)
    if path is None:
        return
    await refuse_hanging(client, path)
    until = asyncio.get_running_loop().time() + _SECONDS
    size = PageSize(_PAGE, _PAGE, METADATA_BYTES // 2, METADATA_BYTES, _READ_SECONDS)
    token = ""
    while True:
        try:
            body = await bounded_page(client, path, token, size, accept=METADATA_ONLY_LIST)
        except ApiError as error:
            if error.code != 403:
                raise
            if not await is_composed(client, crd["spec"]["group"], crd["spec"]["names"]["kind"]):
                return
            # It may have held some while it had the right: they could never be deleted.
            raise Unreachable(
                "its composites cannot be listed, and could never be deleted if the composer holds one. Let "
                f"the composer list them: {error.message}"
            ) from None
        found = [each["metadata"] for each in body["items"] or ()]
        size.fit(found)
        held = [each for each in found if FINALIZER in (each.get("finalizers") or ())]
        await _release_each(client, crd, held, until)
        token = body["metadata"].get("continue") or ""
        if not token:
            return
        if held and asyncio.get_running_loop().time() >= until:
            raise TooSlow(f"not all composites have been released within {_SECONDS:g} seconds")


async def _release_each(
    client: Client, crd: Mapping[str, Any], composites: list[Mapping[str, Any]], until: float
) -> None:
    waiting = iter(composites)
    errors: list[ApiError | Unreachable] = []

    async def work() -> None:
        for each in waiting:
            try:
                if asyncio.get_running_loop().time() >= until:
                    raise TooSlow(f"not all composites have been released within {_SECONDS:g} seconds")
                await _release(client, crd, each)
            except (ApiError, Unreachable) as error:
                errors.append(error)
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())
    if errors:
        raise errors[0]


async def _release(client: Client, crd: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    left = [each for each in metadata["finalizers"] if each != FINALIZER]
    body = {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "finalizers": left,
        }
    }
    path = f"{composite_path(crd, metadata)}?fieldManager={FIELD_MANAGER}"
    try:
        request = client.request("PATCH", path, body, content_type=MERGE_PATCH, once=True)
        await within(WRITE_SECONDS, request)
    except ApiError as error:
        if error.code != 404:
            # It says nothing about the CRD, which may be left to nobody only when all are released.
            raise Unreachable(f"{object_name(metadata)} cannot be released: {error.message}") from None
