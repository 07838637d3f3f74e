"""Lists that a conversion webhook lets hang, and how to find out at no cost whether another one would.

While a conversion webhook hangs, an API server works on each list for half a minute, whether or not anybody
still waits. As it does not know how large the objects are, each such list takes ten of the seats that all
ServiceAccounts share, so that a few dozen of them would slow down every controller of the cluster. So after
one that hung there is no other for some minutes, unless the API server has the objects in its cache.
Source: k8s.io/apiserver, pkg/util/flowcontrol/request/list_work_estimator.go.
"""

import asyncio
from typing import Final
from urllib.parse import quote

from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import TooSlow, within

_SECONDS: Final = 10.0
_LASTING: Final = 300.0
"""One object that is not converted keeps a cache from ever being ready, and a short list may not need it."""
_MOST: Final = 10_000
"""Strangers decide how many collections there are, and nobody says when one is gone."""
_ALL_FIELDS: Final = quote("metadata.name!=.", safe="")
"""Matches all objects: none can have that name."""


def hung(client: Client, collection: str, said: str) -> None:
    """Note that a short list of the collection got no answer in time, and what was said of it."""
    known = client.hung_lists
    known.pop(collection, None)
    if len(known) >= _MOST:
        known.pop(next(iter(known)))
    known[collection] = said, asyncio.get_running_loop().time()


async def would_hang(client: Client, collection: str) -> str:
    """Why another list would hang now, as was said of the one that did; empty if there may be one."""
    said, at = client.hung_lists.get(collection, ("", 0.0))
    if not said:
        return ""
    if asyncio.get_running_loop().time() < at + _LASTING:
        try:
            if await uncached(client, collection):
                return said
        except Unreachable as error:
            return str(error)
    client.hung_lists.pop(collection, None)
    return ""


async def refuse_hanging(client: Client, collection: str) -> None:
    """Raises TooSlow, with what was said of the list that hung, if another one would."""
    if said := await would_hang(client, collection):
        raise TooSlow(said)


async def uncached(client: Client, collection: str) -> str:
    """Why the API server cannot list the collection by its cache yet; empty if it can, or has no cache.

    A list with a selector is not read from etcd while the cache is not ready, but refused with 429, at once.
    Source: k8s.io/apiserver, shouldDelegateListOnNotReadyCache in pkg/storage/cacher/delegator.go.

    Raises Unreachable.
    """
    path = f"{collection}?limit=1&fieldSelector={_ALL_FIELDS}"
    try:
        await within(_SECONDS, client.request("GET", path, accept=METADATA_ONLY_LIST, once=True))
    except TooSlow as error:
        return str(error)
    except ApiError as error:
        # Of whatever else it refuses, the list itself says why.
        return error.message if error.code == 429 else ""
    return ""
