"""Whether the composer may get and patch the composites of a definition, and patch their status."""

import asyncio
import logging
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.access import missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.controllers.rights import rights_to_compose
from crdkeeper.core.composer.reasons import RIGHT_MISSING_TO_COMPOSE
from crdkeeper.core.composer.wording import rule_on_composites
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
_REVIEW_SECONDS: Final = 5.0
_MISSING_SECONDS: Final = 10.0
"""For how long a review counts that finds a right missing: less than until the next look."""
_GRANTED_SECONDS: Final = 60.0
"""For how long one counts that finds none, unless a request for a composite is denied before."""


class ComposingRights:
    """Reviewed before there is a composite: whoever offers an API hears of it before its users do."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._missing: dict[str, list[str]] = {}
        """By definition: what the last review that succeeded has found."""
        self._until: dict[str, float] = {}
        """By definition: until when the last review counts, in the loop's time."""

    async def denied(self, definition: CompositeResourceDefinition) -> Verdict | None:
        """What to say about missing rights; None if none is known to be missing."""
        name, now = definition.metadata.name, asyncio.get_running_loop().time()
        if now >= self._until.get(name, 0.0):
            wanted = rights_to_compose(definition.spec.group, definition.spec.names.plural)
            try:
                self._missing[name] = await within(_REVIEW_SECONDS, missing_rights(self._client, wanted))
                granted = not self._missing[name]
            except (ApiError, Unreachable) as error:
                # What was known before is the best guess: a condition must not come and go with the reviews.
                _log.warning("The composer's own rights are not known: %s", error)
                granted = False
            self._until[name] = now + (_GRANTED_SECONDS if granted else _MISSING_SECONDS)
        return self.known(definition)

    def known(self, definition: CompositeResourceDefinition) -> Verdict | None:
        """The same, by the last review."""
        missing = self._missing.get(definition.metadata.name)
        if not missing:
            return None
        return Verdict(
            RIGHT_MISSING_TO_COMPOSE,
            "A Composition exists, but no composite can be composed: the composer lacks rights on the "
            f"composites ({', '.join(missing)}). {rule_on_composites(definition, composed=True)}",
        )

    def doubt(self, name: str) -> None:
        """The rights may have changed."""
        self._until.pop(name, None)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._missing.pop(name, None)
        self._until.pop(name, None)
