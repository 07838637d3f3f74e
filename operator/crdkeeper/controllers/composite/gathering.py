"""Reads what exists of one composite: its objects where their label is known to be, and others by name."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from crdkeeper.cluster.resources.composed import get_composed, list_of_composite
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.composite.placing import Place, Whereabouts
from crdkeeper.controllers.composite.refusing import refusal
from crdkeeper.controllers.composite.room import Share
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.inventory import KindKey
from crdkeeper.core.composites.ownership import Composite, is_ours
from crdkeeper.core.composites.plan import FoundObjects
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.kinds import group_of
from crdkeeper.core.templates.namespaces import Identity, identity_of

_AT_ONCE: Final = 4


class Gathering:
    """What is known of one composite during one pass."""

    def __init__(
        self,
        client: Client,
        served: KindPaths,
        composite: Composite,
        settled: Mapping[str, str],
        share: Share,
        rights: KnownRights,
        where: Whereabouts | None = None,
    ) -> None:
        """`client` and `rights` are of the account that may read the objects.

        `where` are the objects with the composite's label; without it they are listed.
        """
        self._client = client
        self._served = served
        self._composite = composite
        self._share = share
        self._rights = rights
        self._where = where
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._looked: set[Identity] = set()
        self._unneeded: Collection[Identity] = ()
        self.account = rights.account
        self.found = FoundObjects(settled=settled)
        self.external: dict[tuple[ServedKind, Identity], str] = {}
        """What externalRefs name, with its resourceVersion; empty if there is no such object."""
        self.glimpsed: set[Identity] = set()
        """Those objects of which only the identity, the state and the controller are known, by a watch."""
        self.listed: Collection[Identity] | None = None
        """Those in the status, if others may be left out for want of room; None if all are needed."""
        self.left_out = False
        """Whether some were."""

    def kind(self, identity: Identity) -> ServedKind:
        """Where the objects of a kind are, which was found."""
        return self._kinds[identity[:2]]

    async def refusal(
        self, identity: Identity, error: ApiError | Unreachable, *, secret: bool = False
    ) -> Verdict:
        """What to say of a request for an object."""
        return await self._refusal(self.kind(identity), str(identity), error, secret=secret)

    async def read(self, kinds: Iterable[KindKey], *, any_version: bool = False, named: bool = False) -> None:
        """Read the composite's objects of these kinds, unless they were read; of versions, by the first.

        `any_version`: or by another one that is served, for what only has to be kept or removed; and all
        that are known to have the composite's label. `named`: they are looked up by their names, so others
        with the label are not searched for.
        """
        wanted: dict[tuple[str, str], str] = {}
        others: Collection[KindKey] = ()
        if any_version and self._where is not None:
            others = self._where.kinds_of(self._composite.uid, self._composite.namespace)
        for api_version, kind in (*kinds, *others):
            key = group_of(api_version), kind
            if key not in self._kinds and key not in self.found.unreadable:
                wanted.setdefault(key, api_version)
        async with asyncio.TaskGroup() as group:
            for (_, kind), api_version in wanted.items():
                group.create_task(self._read(api_version, kind, any_version=any_version, named=named))

    async def read_to_delete(self, kinds: Iterable[KindKey], listed: Collection[Identity]) -> None:
        """Read the composite's objects of these kinds at any version, but those listed only where necessary.

        To delete exactly the state that a watch has shown needs no more than that: if it is not what exists,
        the API server refuses. What an account may not read, it is not told.
        """
        self._unneeded = listed if self.account is None else ()
        await self.read(kinds, any_version=True)
        self._unneeded = ()

    async def read_glimpsed(self) -> None:
        """Read by name what only a watch has shown: the status says more about it."""
        glimpsed = [*self.glimpsed]
        for each in glimpsed:
            self.forget(each)
        await self.look(glimpsed)

    def unseen(self, kinds: Iterable[KindKey]) -> Verdict | None:
        """Why there may be objects of these kinds that were not found; None if there cannot be."""
        for api_version, kind in kinds:
            verdict = self.found.hides(group_of(api_version), kind)
            if verdict is not None:
                return verdict
        return None

    async def look(self, identities: Iterable[Identity]) -> None:
        """Read objects by name."""
        async with asyncio.TaskGroup() as group:
            for each in identities:
                group.create_task(self._look(each))

    async def look_external(self, wanted: Mapping[Identity, str]) -> bool:
        """Read those that externalRefs name, at these versions; whether there was one that is new."""
        new = {key: each for key, each in wanted.items() if key not in self._looked}
        self._looked |= new.keys()
        async with asyncio.TaskGroup() as group:
            for identity, api_version in new.items():
                group.create_task(self._look_external(identity, api_version))
        return bool(new)

    def took(self, live: Mapping[str, Any]) -> None:
        """An object is as it was answered."""
        identity = identity_of(live)
        if identity is None:
            return
        found = self.found
        self.glimpsed.discard(identity)
        found.absent.discard(identity)
        found.objects.pop(identity, None)
        found.strangers.pop(identity, None)
        ours = is_ours(live, self._composite.uid)
        (found.objects if ours else found.strangers)[identity] = live

    def wrote(self, live: Mapping[str, Any]) -> None:
        """An object was written, and answered like this."""
        self.took(live)
        identity = identity_of(live)
        if identity is not None and self._where is not None:
            self._where.wrote(self.account, self.kind(identity), live)

    def forget(self, identity: Identity) -> None:
        """An object has to be looked up again."""
        self.glimpsed.discard(identity)
        self.found.objects.pop(identity, None)
        self.found.strangers.pop(identity, None)
        self.found.absent.discard(identity)

    def removed(self, identity: Identity, left: Mapping[str, Any] | None) -> None:
        """An object was deleted or released; `left` is the answer if it may exist still.

        Only one that says neither has to be looked up again: deletions can be slow, and passes end.
        """
        self.forget(identity)
        if left is None:
            self.found.absent.add(identity)
        elif "deletionTimestamp" in left["metadata"] or not is_ours(left, self._composite.uid):
            self.took(left)

    async def _find(self, api_version: str, kind: str, *, any_version: bool = False) -> ServedKind | None:
        """The kind; if it cannot be used, says why."""
        key = group_of(api_version), kind
        known = self._kinds.get(key)
        if known is not None:
            return known
        try:
            served = await self._served.find(api_version, kind)
            if served is None and any_version:
                served = await self._served.find_any(*key)
        except (ApiError, Unreachable) as error:
            self.found.unreadable[key] = Verdict(reasons.FAILED, f"{kind} of {api_version}: {error}")
            return None
        if served is None:
            said = f"{kind} of {api_version} is not served. {reasons.KIND_MISSING.remedy}"
            # What has a CRD still has its objects.
            gone = not self._served.has_definition(*key)
            self.found.unreadable[key] = Verdict(reasons.KIND_MISSING if gone else reasons.FAILED, said)
            return None
        self._kinds[key] = served
        return served

    async def _read(self, api_version: str, kind: str, *, any_version: bool, named: bool) -> None:
        async with self._places:
            served = await self._find(api_version, kind, any_version=any_version)
            if served is None:
                return
            try:
                places = await self._find_places(served, named=named)
            except (ApiError, Unreachable) as error:
                await self._failed(served, f"{kind} of {api_version}", error)
                return
        async with asyncio.TaskGroup() as group:
            for each in places:
                group.create_task(self._read_at(served, each))

    async def _find_places(self, served: ServedKind, *, named: bool) -> Collection[Place]:
        """Where objects with the composite's label are, unless they are read by this."""
        space, uid = self._composite.namespace, self._composite.uid
        if self._where is not None:
            if named and not self._where.are_watched(served):
                return ()
            places = await self._where.find(self._client, self.account, served, space, uid)
            if places is not None:
                return places
        of = self._client, served, space, uid
        for each in await list_of_composite(*of, self._keeps, self._share.large):
            self.took(each)
        return ()

    def _glimpse(self, served: ServedKind, place: Place) -> bool:
        """Whether it is enough what a watch has shown of an object."""
        identity = Identity(served.group, served.kind, *place)
        if self._where is None or identity not in self._unneeded:
            return False
        version = self._where.plain(served, self._composite.uid, place)
        if version is None:
            return False
        metadata: dict[str, Any] = {
            "name": identity.name,
            "uid": version[0],
            "resourceVersion": version[1],
            "ownerReferences": [{"uid": self._composite.uid, "controller": True}],
        }
        if identity.namespace:
            metadata["namespace"] = identity.namespace
        self.took({"apiVersion": served.api_version, "kind": served.kind, "metadata": metadata})
        self.glimpsed.add(identity)
        return True

    async def _read_at(self, served: ServedKind, place: Place) -> None:
        if self._glimpse(served, place):
            return
        async with self._places:
            if (served.group, served.kind) in self.found.unreadable:
                return
            try:
                live = await get_composed(self._client, served, *place, self._share.large)
                if live is not None and self._keeps(live):
                    self.took(live)
            except (ApiError, Unreachable) as error:
                await self._failed(served, f"{served.kind} {place[1]}", error)

    def _keeps(self, value: dict[str, Any]) -> bool:
        # A label alone says nothing: whoever may write the object can set it.
        if not is_ours(value, self._composite.uid):
            return False
        if self.listed is None or identity_of(value) in self.listed:
            self._share.add(value)
            return True
        # Whoever creates it can do the same. What the Composition has is looked up by its name.
        kept = self._share.add_doubtful(value)
        self.left_out |= not kept
        return kept

    async def _look(self, identity: Identity) -> None:
        served = self._kinds.get(identity[:2])
        if served is None:
            said = f"{identity} was not looked up."
            self.found.unreadable.setdefault(identity[:2], Verdict(reasons.FAILED, said))
            return
        if served.namespaced != bool(identity.namespace):
            # By this name there is none: a request would be for another object.
            self.found.absent.add(identity)
            return
        async with self._places:
            if identity[:2] in self.found.unreadable:
                # One request has said it for all of them.
                return
            try:
                live = await self._get(served, identity)
            except (ApiError, Unreachable) as error:
                await self._failed(served, str(identity), error)
                return
        if live is None:
            self.found.absent.add(identity)
        else:
            self.took(live)
        if not self.found.knows(identity):
            # Not by this name.
            self.found.absent.add(identity)

    async def _look_external(self, identity: Identity, api_version: str) -> None:
        served = await self._find(api_version, identity.kind)
        if served is None:
            return
        async with self._places:
            if identity[:2] in self.found.unreadable:
                return
            try:
                live = await self._get(served, identity)
            except Unreachable as error:
                await self._failed(served, str(identity), error)
                return
            except ApiError as error:
                # Of others of the kind it says nothing: they may be in another namespace.
                self._forget_path(served, error)
                space = identity.namespace
                verdict = await self._refusal(served, str(identity), error, at=space, only_read=True)
                self.found.unread[identity] = verdict
                return
        version = (live["metadata"].get("resourceVersion") or "") if live is not None else ""
        self.external[served, identity] = str(version)
        if live is not None:
            self.found.external[identity] = live

    async def _get(self, served: ServedKind, identity: Identity) -> dict[str, Any] | None:
        """The object; None if there is none. Raises ApiError and Unreachable."""
        live = await get_composed(self._client, served, identity.namespace, identity.name, self._share.large)
        if live is not None:
            self._share.add(live)
        return live

    async def _failed(self, served: ServedKind, what: str, error: ApiError | Unreachable) -> None:
        self._forget_path(served, error)
        self.found.unreadable[served.group, served.kind] = await self._refusal(served, what, error)

    def _forget_path(self, served: ServedKind, error: ApiError | Unreachable) -> None:
        if isinstance(error, ApiError) and error.code == 404:
            self._served.forget(served.api_version)

    async def _refusal(
        self,
        served: ServedKind,
        what: str,
        error: ApiError | Unreachable,
        *,
        at: str | None = None,
        **more: bool,
    ) -> Verdict:
        """`at` is a namespace, if it is not the composite's."""
        space = (self._composite.namespace if at is None else at) if served.namespaced else ""
        return await refusal(self._rights, served, what, error, namespace=space, **more)
