"""By which CompositionRevisions composites run, as far as an update of their definition depends on that."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import composites_path
from crdkeeper.cluster.resources.compositions import list_revision_uses
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.composer.composedversions import RevisionUse, versions_that_go
from crdkeeper.core.composer.plan import takes

_PAUSE: Final = 5.0
"""Between two looks at all composites of a definition: tenants choose how many there are."""
_REST: Final = 10.0
"""Or this multiple of the time that a look took, if it is longer."""


@dataclass(frozen=True, slots=True)
class _Found:
    generation: int | None
    uses: Sequence[RevisionUse]
    until: float


class RevisionUses:
    """Looks at composites only while a version is to go by which they may be composed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: dict[str, _Found] = {}

    async def of(
        self, definition: CompositeResourceDefinition, live: Mapping[str, Any] | None, composites: int | None
    ) -> Sequence[RevisionUse]:
        """The revisions in use, as they were seconds ago; none if it does not matter.

        Raises ApiError and Unreachable.
        """
        metadata, spec = definition.metadata, definition.spec
        path = composites_path(live) if live is not None and takes(definition, live) else None
        matters = metadata.deletion_timestamp is None and spec.breaking_changes != "Allow" and composites
        if path is None or not matters or not versions_that_go(definition, live):
            self.forget(metadata.name)
            return ()
        loop = asyncio.get_running_loop()
        known = self._found.get(metadata.name)
        if known is None or known.generation != metadata.generation or loop.time() >= known.until:
            began = loop.time()
            uses = await list_revision_uses(self._client, spec.group, spec.names.kind, path)
            now = loop.time()
            known = _Found(metadata.generation, uses, now + max(_PAUSE, _REST * (now - began)))
            self._found[metadata.name] = known
        return known.uses

    def forget(self, name: str) -> None:
        """The definition is gone, or all of its versions stay."""
        self._found.pop(name, None)
