"""Whether the composer may get and patch the composites of a definition, and patch their status."""

import asyncio
from typing import Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.access import Right
from crdkeeper.controllers.rights import KnownRights, rights_to_compose
from crdkeeper.core.composer.offering import right_missing_to_compose
from crdkeeper.core.diagnosis.verdict import Verdict

_MISSING_SECONDS: Final = 10.0
"""For how long a review counts that finds a right missing: less than until the next look."""
_GRANTED_SECONDS: Final = 60.0
"""For how long one counts that finds none, unless a request for a composite is denied before."""


class ComposingRights:
    """Reviewed before there is a composite: whoever offers an API hears of it before its users do."""

    def __init__(self, rights: KnownRights) -> None:
        self._rights = rights
        self._missing: dict[str, list[Right]] = {}
        """By definition: what the last review that succeeded has found."""
        self._until: dict[str, float] = {}
        """By definition: until when the last review counts, in the loop's time."""

    async def denied(self, definition: CompositeResourceDefinition) -> Verdict | None:
        """What to say about missing rights; None if none is known to be missing."""
        name, now = definition.metadata.name, asyncio.get_running_loop().time()
        if now >= self._until.get(name, 0.0):
            wanted = rights_to_compose(definition.spec.group, definition.spec.names.plural)
            missing = await self._rights.review(wanted)
            if missing is not None:
                # Otherwise what was known is the best guess: a condition must not come and go with reviews.
                self._missing[name] = missing
            self._until[name] = now + (_GRANTED_SECONDS if missing == [] else _MISSING_SECONDS)
        return self.known(definition)

    def known(self, definition: CompositeResourceDefinition) -> Verdict | None:
        """The same, by the last review."""
        missing = self._missing.get(definition.metadata.name)
        if not missing:
            return None
        return right_missing_to_compose(definition, [*map(str, missing)])

    def doubt(self, name: str) -> None:
        """The rights may have changed."""
        self._until.pop(name, None)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._missing.pop(name, None)
        self._until.pop(name, None)
