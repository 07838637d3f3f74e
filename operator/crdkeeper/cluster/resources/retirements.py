"""VersionRetirements: read, list and suspend them."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.resources.kinds import readable
from crdkeeper.cluster.transport.client import MERGE_PATCH, Client, find

_PATH = f"/apis/{GROUP}/{VERSION}/{VersionRetirement.plural}"


def parse_retirement(found: Mapping[str, Any]) -> VersionRetirement:
    """Parse a VersionRetirement; without its status if another version of crdkeeper wrote unknown values.

    Raises ValidationError for a spec that cannot be read.
    """
    try:
        return VersionRetirement.model_validate(found)
    except ValidationError:
        return VersionRetirement.model_validate({**found, "status": {}})


async def get_retirement(client: Client, name: str) -> VersionRetirement | None:
    """The VersionRetirement; None if there is none."""
    found = await find(client, f"{_PATH}/{name}")
    return parse_retirement(found) if found is not None else None


async def list_retirements(client: Client, unread: set[str]) -> list[VersionRetirement] | None:
    """The VersionRetirements whose spec can be parsed; None if the kind is not installed.

    The names of the others are added to `unread`. Raises ApiError and Unreachable.
    """
    listed = await find(client, _PATH)
    return readable(parse_retirement, listed["items"], unread) if listed is not None else None


async def suspend_retirement(client: Client, name: str) -> VersionRetirement:
    """Set spec.suspend of a VersionRetirement. Returns it as it is then. Raises ApiError."""
    body = {"spec": {"suspend": True}}
    return parse_retirement(await client.request("PATCH", f"{_PATH}/{name}", body, content_type=MERGE_PATCH))
