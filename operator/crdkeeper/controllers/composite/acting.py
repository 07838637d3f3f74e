"""Carries out what was planned for the objects of one composite: applies, deletes, leaves to nobody."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from crdkeeper.cluster.resources.composed import (
    apply_object,
    delete_object,
    give_up_object,
    patch_object,
    try_to_create,
)
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.refusing import (
    Trouble,
    conflicts_of,
    exists_already,
    is_immutable,
)
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.appliednote import APPLIED, is_current, settled_digest, was_applied
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite, release
from crdkeeper.core.composites.plan import Apply
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.namespaces import Identity

_log = logging.getLogger(__name__)
_AT_ONCE: Final = 4


class Acting:
    """The requests of one pass: none begins once it is over. What does not succeed is in `failed`."""

    def __init__(
        self,
        client: Client,
        composite: Composite,
        gathering: Gathering,
        failures: Failures,
        settled: dict[str, str],
        over: Callable[[], bool],
    ) -> None:
        self._client = client
        self._composite = composite
        self._gathering = gathering
        self._failures = failures
        self._settled = settled
        self._over = over
        self._places = asyncio.Semaphore(_AT_ONCE)
        self.failed: dict[Identity, Verdict] = {}

    async def apply(self, applies: Iterable[Apply]) -> None:
        """Apply objects that do not refer to each other."""
        async with asyncio.TaskGroup() as group:
            for each in applies:
                group.create_task(self._apply(each))

    async def remove(self, entries: Iterable[Entry]) -> None:
        """Delete objects, or leave them to nobody."""
        async with asyncio.TaskGroup() as group:
            for each in entries:
                group.create_task(self._remove_in_turn(each))

    async def _apply(self, wanted: Apply) -> None:
        identity = wanted.entry.identity
        live = wanted.live
        version = live["metadata"]["resourceVersion"] if live is not None else ""
        key = wanted.configuration["metadata"]["annotations"][APPLIED], version
        rests = self._failures.rests(self._composite, identity, key)
        if rests is not None:
            self.failed[identity] = rests
            return
        kind = self._gathering.kind(identity)
        if kind.namespaced != bool(identity.namespace):
            # The revision was compiled while the kind had another scope, or was not known.
            where = "in a namespace" if kind.namespaced else "in no namespace"
            said = (
                f"{identity}: {kind.kind} of {kind.api_version} is {where}. The Composition is checked again."
            )
            self.failed[identity] = Verdict(reasons.FAILED, said)
            self._failures.add(self._composite, identity, key, self.failed[identity])
            return
        async with self._places:
            if self._over():
                return
            try:
                await self._send(wanted)
            except (ApiError, Unreachable) as error:
                trouble: Trouble | None = error
                ours = identity in self._gathering.found.objects
                if wanted.recreate and ours and is_immutable(error):
                    trouble = await self._obstacle(wanted)
                if trouble is None:
                    await self._remove(wanted.entry)
                else:
                    await self._fail(identity, key, trouble)
                return
        self._failures.end(self._composite, identity)

    async def _send(self, wanted: Apply) -> None:
        identity, live, made = wanted.entry.identity, wanted.live, wanted.configuration
        kind = self._gathering.kind(identity)
        try:
            applied, created = await apply_object(self._client, kind, made, live, force=wanted.force)
        except ApiError as error:
            fields = conflicts_of(error)
            if live is None or not fields or not all(was_applied(live, each) for each, _ in fields):
                raise
            # Others have changed only what was set before: it is put back.
            applied, created = await apply_object(self._client, kind, made, live, force=True)
        if live is None and not created:
            # Somebody was faster. What was added to that object goes again.
            await give_up_object(self._client, kind, applied)
            self._gathering.forget(identity)
            return
        _log.info("%s: %s %s", self._composite.name, "created" if created else "applied", identity)
        self._gathering.took(applied)
        if is_current(made, applied, FIELD_MANAGER):
            self._settled.pop(applied["metadata"]["uid"], None)
        else:
            self._settled[applied["metadata"]["uid"]] = settled_digest(made, applied, FIELD_MANAGER)

    async def _obstacle(self, wanted: Apply) -> Trouble | None:
        """Why the object could not be created again; None if it could."""
        try:
            await try_to_create(
                self._client, self._gathering.kind(wanted.entry.identity), wanted.configuration
            )
        except (ApiError, Unreachable) as error:
            return None if exists_already(error) else error
        return None

    async def _remove_in_turn(self, entry: Entry) -> None:
        async with self._places:
            if not self._over():
                await self._remove(entry)

    async def _remove(self, entry: Entry) -> None:
        identity = entry.identity
        live = self._gathering.found.objects[identity]
        kind = self._gathering.kind(identity)
        key = "remove", live["metadata"]["resourceVersion"]
        rests = self._failures.rests(self._composite, identity, key)
        if rests is not None:
            self.failed[identity] = rests
            return
        try:
            if entry.orphan:
                await patch_object(self._client, kind, identity, release(live, self._composite.uid))
            else:
                await delete_object(self._client, kind, live)
        except (ApiError, Unreachable) as error:
            await self._fail(identity, key, error)
            return
        _log.info("%s: %s %s", self._composite.name, "released" if entry.orphan else "deleted", identity)
        self._failures.end(self._composite, identity)
        self._settled.pop(live["metadata"]["uid"], None)
        self._gathering.forget(identity)

    async def _fail(self, identity: Identity, key: object, error: Trouble) -> None:
        verdict = await self._gathering.refusal(identity, error)
        self._failures.add(self._composite, identity, key, verdict)
        self.failed[identity] = verdict
        log = _log.info if verdict.reason is reasons.FAILED else _log.warning
        log("%s: %s", self._composite.name, verdict.message)
