"""APIs that refuse new composites although their definition is gone: they are opened again.

Somebody may have removed the finalizer in the middle of a deletion, or have brought the rule back with a
backup. A GitOps tool may do so again and again, so there are pauses, as for the CRD of a definition that
exists. There is no status to say so: Events about the CRD do.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.cluster.resources.composites import COMPOSER, get_composite_definition, patch_crd
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.events import send_definition_event
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent
from crdkeeper.core.composer.fence import unfencing
from crdkeeper.core.composer.overwriting import Applied
from crdkeeper.core.composer.plan import may_open

_log = logging.getLogger(__name__)
_OPENED: Final = "APIOpened"
_CLOSED_AGAIN: Final = "APIClosedAgain"
_NOT_OPENED: Final = "APINotOpened"


class LeftAPIs:
    """Those of all CRDs whose definition is gone."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self._identity = identity
        self._dues = Dues()
        """Of CRDs: what was due for a definition is forgotten with it."""
        self._opened: dict[str, Applied] = {}
        """With the uid of the CRD as the content."""
        self._said: dict[str, str] = {}
        """The reason of the last Event about each."""

    async def open(self, name: str) -> float | None:
        """Open the API of a CRD if it is closed and its definition is gone.

        Returns in how many seconds that has to be tried again, if no event comes before. Raises ApiError and
        Unreachable if it cannot be read.
        """
        crd = await get_definition_object(self._client, name)
        if crd is None:
            self.forget(name)
            return None
        if not may_open(crd):
            return None
        opened = self._opened.get(name)
        if opened is None or opened.content != crd["metadata"]["uid"]:
            opened = Applied(crd["metadata"]["uid"])
        elif (pause := opened.pause(_now())) > 0.0:
            return pause
        # Read after the CRD: one that is made now is not the one that the CRD belongs to.
        if await get_composite_definition(self._client, name) is not None:
            return None
        try:
            after = await self._dues.send(
                name, Sent.UNFENCE, opened.content, lambda: patch_crd(self._client, crd, unfencing(crd))
            )
        except (ApiError, Unreachable) as error:
            said = error.message if isinstance(error, ApiError) else str(error)
            await self._say(
                crd, _NOT_OPENED, f"The composer cannot let the API take composites again: {said}"
            )
            return self._dues.left(name)
        self._opened[name] = opened = opened.again(crd, after, _now())
        if opened.is_fought(_now()):
            await self._say(crd, _CLOSED_AGAIN, opened.verdict().message)
        else:
            await self._say(crd, _OPENED, "The API takes composites again, because its definition is gone.")
        return None

    def forget(self, name: str) -> None:
        """The CRD is gone, or has a definition."""
        self._dues.forget(name)
        self._opened.pop(name, None)
        self._said.pop(name, None)

    async def _say(self, crd: Mapping[str, Any], reason: str, note: str) -> None:
        """Send an Event about the CRD, unless the last one had the same reason."""
        name = crd["metadata"]["name"]
        if self._said.get(name) == reason:
            return
        self._said[name] = reason
        _log.warning("%s has no definition any more: %s", name, note)
        await send_definition_event(
            self._client, crd, "Warning", reason, note, instance=self._identity, controller=COMPOSER
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
