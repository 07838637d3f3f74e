"""What composites cannot say themselves, because they cannot be read or written: their definition says it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import COMPOSER
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.composer.offering import not_composed
from crdkeeper.core.composer.wording import rule_on_composites
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
REASON: Final = "CompositesNotComposed"
_EVENT_SECONDS: Final = 600.0
"""Between two Events about one definition and one code of the API server."""


class CompositeTrouble:
    """What is wrong with the composites of each definition: one of them stands for all."""

    def __init__(
        self, client: Client, identity: str, number: Callable[[str], int], changed: Callable[[str], None]
    ) -> None:
        """Both are called with the name of a definition.

        `number` returns how many composites there are, and `changed` if there is something else to say.
        """
        self._client = client
        self._identity = identity
        self._number = number
        self._changed = changed
        self._told: dict[tuple[str, int], float] = {}
        """By the uid of the definition and the code of a refusal: in the loop's time, when an Event was."""
        self._failing: dict[str, dict[str, str]] = {}
        """By definition and composite: how a request about it was refused."""

    def verdict(self, name: str) -> Verdict | None:
        """What to say about a definition; None if all of its composites speak for themselves."""
        failing = self._failing.get(name)
        if not failing:
            return None
        # The one that has failed first, as long as it does: a condition must not change with each of them.
        composite, refusal = next(iter(failing.items()))
        return not_composed(composite, refusal, others=self._number(name) > len(failing))

    def counted(self, name: str) -> None:
        """Composites have come or gone."""
        if name in self._failing:
            self._changed(name)

    async def tell(
        self, definition: CompositeResourceDefinition, composite: str, error: ApiError, *, denied: bool
    ) -> None:
        """The composite cannot be read or written; `denied`: because the composer lacks a right."""
        name, uid = definition.metadata.name, definition.metadata.uid or ""
        _log.warning("%s %s: %s", name, composite, error)
        if not denied:
            failing = self._failing.setdefault(name, {})
            # Words that differ from time to time are no news.
            failing.setdefault(composite, error.message)
            self._changed(name)
        now = asyncio.get_running_loop().time()
        self._told = {key: at for key, at in self._told.items() if now - at < _EVENT_SECONDS}
        if (uid, error.code) in self._told:
            return
        self._told[uid, error.code] = now
        note = not_composed(composite, error.message, others=False).message
        if error.code == 403:
            note = f"{note} {rule_on_composites(definition, composed=True)}"
        await send_event(
            self._client, definition, "Warning", REASON, note, instance=self._identity, controller=COMPOSER
        )

    def works(self, name: str, composite: str) -> None:
        """The composite was read and written, or is gone."""
        failing = self._failing.get(name, {})
        if failing.pop(composite, None) is not None:
            if not failing:
                del self._failing[name]
            self._changed(name)
