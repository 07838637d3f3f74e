"""Deletions of which Kopf has not told.

Where a watch cannot be resumed, such as after the restart of an API server, Kopf lists again, and tells of
what there is, but not of what is gone: a deleted policy would govern until the process ends. So the names of
all that it has shown are compared with a list from time to time.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.pages import names_in

_log = logging.getLogger(__name__)

_SECONDS = 300.0
"""Between two comparisons: each lists the metadata of all CRDs."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The objects of one kind that Kopf has shown."""

    collection: str
    """The path of all of them."""
    known: Callable[[], Mapping[str, object]]
    """Returns them by name, each with something that changes with the next event about it."""
    gone: Callable[[str], None]
    """Passes on that the object of that name is gone."""


async def find_missed_deletions(client: Client, shown: Sequence[Shown]) -> None:
    """Pass on deletions that nobody has told of, until cancelled."""
    while True:
        await asyncio.sleep(_SECONDS)
        for each in shown:
            try:
                await _compare(client, each)
            except (ApiError, Unreachable) as error:
                _log.info("%s cannot be compared with what is known: %s", each.collection, error)


async def _compare(client: Client, shown: Shown) -> None:
    before = dict(shown.known())
    if not before:
        return
    there = frozenset(await names_in(client, shown.collection))
    now = shown.known()
    for name, state in before.items():
        # The list is newer than what was known when it began; of anything else, the watch is telling.
        if name not in there and now.get(name) == state:
            _log.info("%s/%s is gone, and the watch has not told of it.", shown.collection, name)
            shown.gone(name)
