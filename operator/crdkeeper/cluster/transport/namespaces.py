"""Our own namespace: whether it is being deleted, and the whole installation with it."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum

from crdkeeper.cluster.transport.client import Client, Unreachable
from crdkeeper.cluster.transport.connection import ConfigurationError

_LOOK_SECONDS = 2.0


class Home(Enum):
    """What the API server says of the namespace that a process runs in."""

    STANDS = "Stands"
    GOES = "Goes"
    """It is being deleted, or gone."""
    CLOSED = "Closed"
    """We may not read it: our account, or its permission, does not exist."""
    UNKNOWN = "Unknown"


async def look_home(client: Client, namespace: str) -> Home:
    """Read our namespace. Raises Unreachable."""
    answer = await client.send("GET", f"/api/v1/namespaces/{namespace}")
    match answer.code:
        case 200:
            return Home.GOES if answer.json()["metadata"].get("deletionTimestamp") else Home.STANDS
        case 404:
            return Home.GOES
        case 401 | 403:
            return Home.CLOSED
    return Home.UNKNOWN


async def until_uninstalled(look: Callable[[], Awaitable[Home]], *, permitted: bool) -> None:
    """Return only when our namespace is deleted, or the right to read it, if that was `permitted`.

    An uninstall removes permissions and accounts within milliseconds of the namespace. An API server that
    does not answer proves nothing.
    """
    while True:
        try:
            home = await look()
        except (Unreachable, ConfigurationError):
            home = Home.UNKNOWN
        if home is Home.GOES or (home is Home.CLOSED and permitted):
            return
        await asyncio.sleep(_LOOK_SECONDS)
