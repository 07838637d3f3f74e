"""Which rights the composer, or a ServiceAccount in its place, lacks.

They are reviewed when something is denied, but not for each event of a tenant.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.core.composites.accounts import ServiceAccount

_log = logging.getLogger(__name__)
_REVIEW_SECONDS: Final = 5.0
_KNOWN_SECONDS: Final = 4.0
"""How long a review counts: less than until the next look, if a right is missing."""


def rights_to_compose(group: str, plural: str) -> tuple[Right, ...]:
    """What the composer needs on composites besides list and watch, once there is a revision for them."""
    return Right("get", group, plural), Right("patch", group, plural), Right("patch", group, plural, "status")


class KnownRights:
    """The rights of one account, as far as they were reviewed lately."""

    def __init__(self, client: Client, account: ServiceAccount | None = None) -> None:
        """`client` is the account's, or that of the composer, whose rights count if there is no account."""
        self._client = client
        self.account = account
        self._known: dict[Right, tuple[bool, float]] = {}
        """Whether the account lacks it, and until when that counts, in the loop's time."""

    async def missing(self, rights: Sequence[Right]) -> list[Right]:
        """Those that the account is known to lack: a review that fails must not hide what is to be said."""
        now = asyncio.get_running_loop().time()
        self._known = {right: each for right, each in self._known.items() if now < each[1]}
        unknown = [each for each in rights if each not in self._known]
        if unknown and await self.review(unknown) is None:
            return []
        return [each for each in rights if self._known[each][0]]

    async def review(self, rights: Sequence[Right]) -> list[Right] | None:
        """Those that the account lacks now, whatever is known; None if that cannot be found out."""
        try:
            found = await within(_REVIEW_SECONDS, missing_rights(self._client, rights))
        except (ApiError, Unreachable) as error:
            whose = "The composer's own rights" if self.account is None else f"The rights of {self.account}"
            _log.warning("%s are not known: %s", whose, error)
            return None
        until = asyncio.get_running_loop().time() + _KNOWN_SECONDS
        self._known |= {each: (each in found, until) for each in rights}
        return found
