"""Says by Events about a definition what its composites cannot say: those whose status cannot be written."""

import logging
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import COMPOSER
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.composer.wording import rule_on_composites

_log = logging.getLogger(__name__)
REASON: Final = "CompositesNotComposed"


class CompositeTrouble:
    """Sends one Event for each thing that is wrong with a definition's composites, not for each of them."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self._identity = identity
        self._told: dict[str, int] = {}
        """By the uid of the definition: the code of the API server's last refusal."""

    async def tell(self, definition: CompositeResourceDefinition, composite: str, error: ApiError) -> None:
        """The composite cannot be read or written."""
        _log.warning("%s %s: %s", definition.metadata.name, composite, error)
        uid = definition.metadata.uid or ""
        if self._told.get(uid) == error.code:
            return
        self._told[uid] = error.code
        said = f"Composites such as {composite} cannot be composed: {error.message}"
        if error.code == 403:
            said = f"{said.rstrip('.')}. {rule_on_composites(definition, composed=True)}"
        await send_event(
            self._client, definition, "Warning", REASON, said, instance=self._identity, controller=COMPOSER
        )

    def works(self, definition: CompositeResourceDefinition) -> None:
        """A composite was written: what goes wrong after that is told again."""
        self._told.pop(definition.metadata.uid or "", None)
