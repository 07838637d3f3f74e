"""Applies CRDs: only when they may differ, whatever happens to the composites.

Each apply makes the API server validate the whole CRD and call admission webhooks for it, and a tenant who
creates and deletes a composite in a loop makes the composer look at the definition several times a second.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.composites import apply_crd
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.compositeresourcedefinition.pauses import Pauses
from crdkeeper.core.composer.updaterefusal import staged

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 15.0
_RACES: Final = frozenset((404, 409))
"""The CRD has changed, so that the next apply is another one."""

Key = tuple[Any, ...]


class CRDs:
    """Those that this process has applied, or could not apply."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._applied: dict[str, Key] = {}
        """By definition: what decides the CRD, and the revision of the CRD after its apply."""
        self._pauses = Pauses(_FIRST_PAUSE, _LONGEST_PAUSE, unless=_RACES)

    async def apply(
        self,
        definition: CompositeResourceDefinition,
        made: Mapping[str, Any],
        live: Mapping[str, Any] | None,
        held: Sequence[str],
    ) -> dict[str, Any] | None:
        """Apply the CRD with these versions held back, and return it; None if that would change nothing.

        Raises ApiError and Unreachable, for a while that of the last attempt; ApiError 409 if `live` is no
        longer the CRD that exists.
        """
        name = definition.metadata.name
        wanted = definition.metadata.uid, definition.metadata.generation, tuple(held)
        key = (*wanted, *_revision(live))
        if live is not None and self._applied.get(name) == key:
            return None
        applied = await self._pauses.send(
            name, key, lambda: apply_crd(self._client, staged(made, live, held), live)
        )
        self._applied[name] = *wanted, *_revision(applied)
        return applied

    def left(self, name: str) -> float:
        """Seconds until a request that failed may be repeated; 0 if there is none."""
        return self._pauses.left(name)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._applied.pop(name, None)
        self._pauses.forget(name)


def _revision(crd: Mapping[str, Any] | None) -> Key:
    """What changes whenever somebody changes the CRD, or only becomes the manager of a field."""
    return (crd["metadata"]["uid"], crd["metadata"]["resourceVersion"]) if crd is not None else ()
