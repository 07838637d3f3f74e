"""Carries out what was planned for the objects of one composite: applies, deletes, leaves to nobody."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from crdkeeper.cluster.resources.composed import (
    apply_object,
    delete_object,
    patch_object,
    try_to_create,
)
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.failures import Failures
from crdkeeper.controllers.composite.gathering import Gathering
from crdkeeper.controllers.composite.refusing import (
    Trouble,
    conflicts_of,
    exists_already,
    is_immutable,
)
from crdkeeper.controllers.composite.report import PassReport
from crdkeeper.core.composer.overwriting import put_back
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.appliednote import (
    APPLIED,
    is_current,
    is_settled,
    same_configuration,
    settled_digest,
    shape_digest,
    was_applied,
)
from crdkeeper.core.composites.deeds import CompositeWrite
from crdkeeper.core.composites.flapping import changed_by, overwritten_for_good
from crdkeeper.core.composites.inventory import Entry
from crdkeeper.core.composites.ownership import Composite, is_ours, release
from crdkeeper.core.composites.plan import Apply
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.templates.namespaces import Identity

_log = logging.getLogger(__name__)
_AT_ONCE: Final = 4
_OUTRUN: Final = 3
"""How often in a pass an object is looked at again, because it has changed: a rollout does that often."""


class Acting:
    """The requests of one pass: none begins once it is over. What does not succeed is in `failed`."""

    def __init__(
        self,
        client: Client,
        composite: Composite,
        gathering: Gathering,
        failures: Failures,
        over: Callable[[], bool],
        report: PassReport,
    ) -> None:
        """`client` is of the account that may write the objects."""
        self._client = client
        self._report = report
        self._flaps = failures.flaps
        self._changed: set[Identity] = set()
        """What was changed in this pass, because it is to be something else."""
        # What one account may not do, another one may.
        self._account = gathering.account
        self._composite = composite
        self._gathering = gathering
        self._failures = failures
        self._settled = failures.settled(composite.uid)
        self._over = over
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._outrun: Counter[Identity] = Counter()
        """How often others created or changed what was looked up in this pass, just before it was applied."""
        self.failed: dict[Identity, Verdict] = {}
        self.listed: Collection[Identity] = ()
        """What the composite had before the pass."""
        self.changer = ""
        """Who has changed the composite last."""

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
        applied = wanted.configuration["metadata"]["annotations"][APPLIED]
        key = self._account, applied, shape_digest(live) if live else ""
        rests = self._failures.rests(self._composite, identity, key)
        if rests is not None:
            self.failed[identity] = rests
            return
        cause = self._cause(wanted)
        paused = self._pause(cause, identity) if cause is not None else None
        if paused is not None:
            self._report.slowed = True
            self.failed[identity] = paused
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
                await self._send(wanted, cause)
            except (ApiError, Unreachable) as error:
                trouble: Trouble | None = error
                ours = identity in self._gathering.found.objects
                if wanted.recreate and ours and is_immutable(error):
                    trouble = await self._obstacle(wanted)
                if trouble is None:
                    await self._recreate(wanted, cause)
                else:
                    await self._fail(identity, key, trouble, secret=wanted.secret)
                return
        self._failures.end(self._composite, identity)

    def _pause(self, cause: Reason, identity: Identity) -> Verdict | None:
        if cause is reasons.CHANGING and self._changed and identity not in self._changed:
            # All changes of one pass count as one: the first wave would hold up those after it for ever.
            return None
        return self._flaps.pause(self._composite.uid, cause, identity, _now())

    async def _send(self, wanted: Apply, cause: Reason | None) -> None:
        identity, live, made = wanted.entry.identity, wanted.live, wanted.configuration
        try:
            applied = await self._request(wanted)
        except ApiError as error:
            if error.code != 409 or conflicts_of(error) or self._outrun[identity] >= _OUTRUN:
                raise
            # Somebody was faster: the object is looked at before anything else.
            self._outrun[identity] += 1
            self._gathering.forget(identity)
            return
        _log.info("%s: %s %s", self._composite.name, "created" if live is None else "applied", identity)
        self._report.wrote(CompositeWrite.CREATED if live is None else CompositeWrite.APPLIED, identity)
        self._gathering.wrote(applied)
        self._flaps.exists(self._composite.uid, identity)
        self._remember(wanted, cause, applied)
        if is_current(made, applied, FIELD_MANAGER):
            self._settled.pop(applied["metadata"]["uid"], None)
        else:
            self._settled[applied["metadata"]["uid"]] = settled_digest(made, applied, FIELD_MANAGER)
            self._forget_gone()

    def _forget_gone(self) -> None:
        """Others delete objects, too: what was settled is kept of those that exist."""
        found = self._gathering.found
        exist = (*found.objects.values(), *found.strangers.values())
        if len(self._settled) > len(exist) and not found.unreadable:
            for uid in self._settled.keys() - {each["metadata"]["uid"] for each in exist}:
                del self._settled[uid]

    async def _request(self, wanted: Apply) -> dict[str, Any]:
        live, kind = wanted.live, self._gathering.kind(wanted.entry.identity)
        try:
            return await apply_object(self._client, kind, wanted.configuration, live, force=wanted.force)
        except ApiError as error:
            fields = conflicts_of(error)
            if live is None or not fields or not all(was_applied(live, each) for each, _ in fields):
                raise
            # Others have changed only what was set before: it is put back.
            return await apply_object(self._client, kind, wanted.configuration, live, force=True)

    def _cause(self, wanted: Apply) -> Reason | None:
        """Why an object is written, if it is one that was written before."""
        live = wanted.live
        if live is None:
            identity = wanted.entry.identity
            recreated = self._flaps.is_recreated(self._composite.uid, identity)
            return reasons.VANISHING if identity in self.listed and not recreated else None
        if not is_ours(live, self._composite.uid):
            return None
        made = wanted.configuration
        # Admission may take the annotation off.
        same = same_configuration(made, live) or is_settled(made, self._settled.get(live["metadata"]["uid"]))
        return reasons.OVERWRITTEN if same else reasons.CHANGING

    def _remember(self, wanted: Apply, cause: Reason | None, applied: Mapping[str, Any] | None) -> None:
        """`applied` is None if the object was deleted, to be created again."""
        identity, first = wanted.entry.identity, not self._changed
        if cause is None:
            return
        if wanted.live is None:
            said = f"{identity} is deleted again and again."
        elif cause is reasons.CHANGING:
            self._changed.add(identity)
            if not first:
                return
            same = self._flaps.generation(self._composite.uid) in (None, self._composite.generation)
            said = changed_by(identity, wanted.configuration, wanted.live, "" if same else self.changer)
        elif applied is None:
            said = overwritten_for_good(identity, wanted.configuration, wanted.live)
        else:
            what, who = put_back(wanted.live, applied)
            said = f"{identity} ({what}) is changed again and again by {who}."
        self._flaps.wrote(self._composite, cause, identity, said, _now())

    async def _recreate(self, wanted: Apply, cause: Reason | None) -> None:
        identity = wanted.entry.identity
        # Also if there is no answer: it may be deleted. Nobody but us keeps it away then.
        self._flaps.recreates(self._composite.uid, identity)
        await self._remove(wanted.entry)
        if identity not in self.failed:
            self._remember(wanted, cause, None)

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
        if identity in self._gathering.glimpsed:
            await self._delete_glimpsed(entry, kind, live)
            return
        key = self._account, "remove", shape_digest(live)
        rests = self._failures.rests(self._composite, identity, key)
        if rests is not None:
            self.failed[identity] = rests
            return
        try:
            left: dict[str, Any] | None
            if entry.orphan:
                left = await patch_object(self._client, kind, identity, release(live, self._composite.uid))
            else:
                left = await delete_object(self._client, kind, live)
        except (ApiError, Unreachable) as error:
            await self._fail(identity, key, error)
            return
        self._removed(entry, live, left)

    async def _delete_glimpsed(self, entry: Entry, kind: ServedKind, live: Mapping[str, Any]) -> None:
        """Delete what a watch has shown, unless it is one to leave, or one that was refused before.

        If that does not succeed, for whatever reason, the object is read, and all else is as for any other: a
        refusal, too, is believed only from the second deletion, once for each object.
        """
        if not (entry.orphan or self._failures.knows(self._composite, entry.identity)):
            with suppress(ApiError, Unreachable):
                self._removed(entry, live, await delete_object(self._client, kind, live))
                return
        self._gathering.forget(entry.identity)

    def _removed(self, entry: Entry, live: Mapping[str, Any], left: Mapping[str, Any] | None) -> None:
        identity = entry.identity
        _log.info("%s: %s %s", self._composite.name, "released" if entry.orphan else "deleted", identity)
        self._report.wrote(CompositeWrite.RELEASED if entry.orphan else CompositeWrite.DELETED, identity)
        self._failures.end(self._composite, identity)
        self._settled.pop(live["metadata"]["uid"], None)
        self._gathering.removed(identity, left)

    async def _fail(self, identity: Identity, key: object, error: Trouble, *, secret: bool = False) -> None:
        verdict = await self._gathering.refusal(identity, error, secret=secret)
        self._failures.add(self._composite, identity, key, verdict)
        self.failed[identity] = verdict
        log = _log.info if verdict.reason is reasons.FAILED else _log.warning
        log("%s: %s", self._composite.name, verdict.message)


def _now() -> float:
    return asyncio.get_running_loop().time()
