"""Which rights the composer lacks: reviewed when something is denied, but not for each event of a tenant."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within

_log = logging.getLogger(__name__)
_REVIEW_SECONDS: Final = 5.0
_KNOWN_SECONDS: Final = 4.0
"""How long a review counts: less than until the next look, if a right is missing."""


def rights_to_compose(group: str, plural: str) -> tuple[Right, ...]:
    """What the composer needs on composites besides list and watch, once there is a revision for them."""
    return Right("get", group, plural), Right("patch", group, plural), Right("patch", group, plural, "status")


class KnownRights:
    """The composer's own rights, as far as they were reviewed lately."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[Right, tuple[bool, float]] = {}
        """Whether the composer lacks it, and until when that counts, in the loop's time."""

    async def missing(self, rights: Sequence[Right]) -> list[Right]:
        """Those that the composer is known to lack: a review that fails must not hide what is to be said."""
        now = asyncio.get_running_loop().time()
        self._known = {right: each for right, each in self._known.items() if now < each[1]}
        unknown = [each for each in rights if each not in self._known]
        if unknown:
            try:
                found = await within(_REVIEW_SECONDS, missing_rights(self._client, unknown))
            except (ApiError, Unreachable) as error:
                _log.warning("The composer's own rights are not known: %s", error)
                return []
            self._known |= {each: (str(each) in found, now + _KNOWN_SECONDS) for each in unknown}
        return [each for each in rights if self._known[each][0]]
