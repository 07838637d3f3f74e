"""Writes to CRDs besides fences, and when: only what may change something, and as seldom as others allow.

Each apply makes the API server validate the whole CRD and call admission webhooks for it, and a tenant who
creates and deletes a composite in a loop makes the composer look at the definition several times a second.

In a deletion, a composer that was frozen, or that got no answer, may have sent a request to delete or to
release the CRD. Such a request names the resourceVersion at which it was decided. But a decision to keep the
CRD for now, because a composite was created or the policy has changed, would leave that resourceVersion as it
is. So whoever keeps the CRD claims it first, which makes earlier requests harmless.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.cluster.resources.compositerelease import release_composites
from crdkeeper.cluster.resources.composites import (
    FIELD_MANAGER,
    apply_crd,
    claim_crd,
    delete_crd,
    patch_metadata,
    release_crd,
    try_deletion,
)
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.compositeresourcedefinition.due import Dues, Sent, key_of
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.givenup import given_up, without_short_names
from crdkeeper.core.composer.overwriting import Applied
from crdkeeper.core.composer.plan import ComposerStep, Gathered, Plan
from crdkeeper.core.composer.unchanged import is_unchanged
from crdkeeper.core.composer.update import Rest
from crdkeeper.core.composer.updaterefusal import staged

_log = logging.getLogger(__name__)

Key = tuple[Any, ...]


@dataclass(slots=True)
class _Known:
    """The CRD of one definition."""

    applied: Key = ()
    """What decided the CRD that was applied last, and the revision of the CRD after that."""
    put_back: Applied | None = None
    claimed: str = ""
    """The uid of the CRD, if no older request for it has an effect any more."""
    deletable: object = None
    """The CRD and the definition as they were when a dry run has deleted the CRD."""
    to_delete: Key = ()
    """The revision of the CRD that was to be deleted last, if that got no answer."""


class CRDs:
    """Those of all definitions, as far as this process has written them."""

    def __init__(self, client: Client, dues: Dues) -> None:
        self._client = client
        self._dues = dues
        self._known: dict[str, _Known] = {}

    def rest(
        self, definition: CompositeResourceDefinition, live: Mapping[str, Any], held: Sequence[str]
    ) -> Rest | None:
        """Why nothing would be sent for now to apply the CRD with these versions held back; None if it would.

        Whoever goes by that must not send anything, although a pause may end meanwhile.
        """
        known, wanted = self._of(definition), _wanted(definition, held)
        key = (*wanted, *_revision(live))
        if known.applied == key:
            return Rest.SETTLED
        put_back = known.put_back
        if put_back is not None and put_back.content == wanted and put_back.is_paused(_now()):
            return Rest.UNDONE
        if self._dues.rests(definition.metadata.name, Sent.APPLY, key):
            return Rest.FAILED
        return None

    def paced(self, gathered: Gathered, decided: Plan) -> Plan:
        """The step; or none, with a refusal, as long as a CRD that others overwrite is not put back."""
        put_back = self._of(gathered.definition).put_back
        if gathered.live is None or put_back is None or "deletionTimestamp" in gathered.live["metadata"]:
            return decided
        if decided.step is ComposerStep.UNFENCE:
            return decided
        same = put_back.content == _wanted(gathered.definition, decided.held)
        refusal = decided.refusal
        if refusal is not None and refusal.reason is reasons.REHEARSING:
            # Before it is put back again.
            paused = same and put_back.is_fought(_now()) and gathered.facts.rehearsal.failure is None
        else:
            paused = same and (gathered.facts.rest is Rest.UNDONE or put_back.is_paused(_now()))
            paused = paused and decided.step is ComposerStep.APPLY
        return replace(decided, step=ComposerStep.NOTHING, refusal=put_back.verdict()) if paused else decided

    async def apply(
        self,
        definition: CompositeResourceDefinition,
        made: Mapping[str, Any],
        live: Mapping[str, Any] | None,
        held: Sequence[str],
        rest: Rest | None = None,
    ) -> bool:
        """Apply the CRD with these versions held back; returns whether that has changed something.

        Sends nothing if the decision was made for a `rest`. Raises ApiError and Unreachable, for a while that
        of the last attempt; ApiError 409 if `live` is no longer the CRD that exists.
        """
        name, known, wanted = definition.metadata.name, self._of(definition), _wanted(definition, held)
        key = (*wanted, *_revision(live))
        if rest is Rest.FAILED:
            self._dues.repeat(name, Sent.APPLY)
        if rest is not None or (live is not None and known.applied == key):
            return False
        whole = without_short_names(staged(made, live, held), live)
        if live is not None and is_unchanged(whole, live, FIELD_MANAGER):
            known.applied = key
            if known.put_back is None or known.put_back.content != wanted:
                known.put_back = Applied(wanted)
            return False

        async def send() -> dict[str, Any]:
            now = live
            # First, while it can be seen what an earlier apply had: who dies in between leaves nothing.
            if live is not None and (leftover := given_up(live, whole, FIELD_MANAGER)):
                now = await patch_metadata(self._client, live, leftover)
            return await apply_crd(self._client, whole, now)

        applied = await self._dues.send(name, Sent.APPLY, key, send)
        known.applied = *wanted, *_revision(applied)
        changed = live is None or _content(live) != _content(applied)
        if known.put_back is None or known.put_back.content != wanted:
            known.put_back = Applied(wanted)
        elif live is not None and changed:
            known.put_back = known.put_back.again(live, applied, _now())
            _log.info("Put back the CRD of CompositeResourceDefinition %s: %s", name, known.put_back.who)
        return changed

    async def claim(self, definition: CompositeResourceDefinition, crd: Mapping[str, Any]) -> None:
        """Make earlier requests for a CRD harmless, unless they are. Raises ApiError; 409 if it changed."""
        known, uid = self._of(definition), crd["metadata"]["uid"]
        if known.claimed != uid:
            key = key_of(definition, crd)
            await self._dues.send(
                definition.metadata.name, Sent.CLAIM, key, lambda: claim_crd(self._client, crd)
            )
            known.claimed = uid

    async def try_deletion(self, definition: CompositeResourceDefinition, crd: Mapping[str, Any]) -> None:
        """Ask once whether a CRD may be deleted, before composites are, or the API is closed.

        Raises ApiError and Unreachable, for a while that of the last attempt.
        """
        name, known, key = definition.metadata.name, self._of(definition), key_of(definition, crd)
        if known.deletable != key:
            await self._dues.send(name, Sent.TRY_DELETION, key, lambda: try_deletion(self._client, crd))
            known.deletable = key

    async def delete(self, definition: CompositeResourceDefinition, crd: Mapping[str, Any]) -> None:
        """Delete a CRD as it is. Raises ApiError and Unreachable, for a while that of the last attempt."""

        async def send() -> None:
            # It may get lost, and arrive later.
            known = self._of(definition)
            known.claimed, known.to_delete = "", _revision(crd)
            try:
                await delete_crd(self._client, crd)
            except ApiError as error:
                if error.code < 500:
                    known.to_delete = ()
                raise

        await self._dues.send(definition.metadata.name, Sent.DELETE, key_of(definition, crd), send)

    async def release(self, definition: CompositeResourceDefinition, crd: Mapping[str, Any]) -> None:
        """Leave a CRD to nobody. Raises ApiError and Unreachable, for a while that of the last attempt."""

        async def send() -> None:
            self._of(definition).claimed = ""
            # First: nobody would let them go later.
            await release_composites(self._client, crd)
            await release_crd(self._client, crd)

        await self._dues.send(definition.metadata.name, Sent.RELEASE, key_of(definition, crd), send)

    def may_be_deleted(self, definition: CompositeResourceDefinition, crd: Mapping[str, Any] | None) -> bool:
        """Whether a request to delete the CRD as it is now may be under way, as far as this process knows."""
        return crd is not None and self._of(definition).to_delete == _revision(crd)

    def forget(self, name: str) -> None:
        """The definition is gone."""
        self._known.pop(name, None)

    def _of(self, definition: CompositeResourceDefinition) -> _Known:
        return self._known.setdefault(definition.metadata.name, _Known())


def _wanted(definition: CompositeResourceDefinition, held: Sequence[str]) -> Key:
    """Differs if the definition does, or what is left out of its CRD for the time being."""
    return definition.metadata.uid, definition.metadata.generation, tuple(held)


def _revision(crd: Mapping[str, Any] | None) -> Key:
    """What changes whenever somebody changes the CRD, or only becomes the manager of a field."""
    return (crd["metadata"]["uid"], crd["metadata"]["resourceVersion"]) if crd is not None else ()


def _content(crd: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the CRD says, whoever manages its fields."""
    return crd["spec"], *(crd["metadata"].get(each) for each in ("labels", "annotations", "ownerReferences"))


def _now() -> float:
    return asyncio.get_running_loop().time()
