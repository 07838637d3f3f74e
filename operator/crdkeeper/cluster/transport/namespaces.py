"""Our own namespace: whether it goes, and the whole installation with it."""

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
    """It is in deletion, or gone."""
    CLOSED = "Closed"
    """We may not look at it: our account, or its right, is not there."""
    UNKNOWN = "Unknown"


async def look_home(client: Client, namespace: str) -> Home:
    """Ask for our namespace. Raises Unreachable."""
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
    """Return only when our namespace goes, or with the right to look at it where that was `permitted`.

    An uninstall removes rights and accounts within milliseconds of the namespace. That the API server is
    silent says nothing.
    """
    while True:
        try:
            home = await look()
        except (Unreachable, ConfigurationError):
            home = Home.UNKNOWN
        if home is Home.GOES or (home is Home.CLOSED and permitted):
            return
        await asyncio.sleep(_LOOK_SECONDS)
