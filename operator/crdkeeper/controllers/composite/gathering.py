"""Reads what exists of one composite: its objects by their label, and others by name."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from crdkeeper.cluster.resources.composed import get_object, list_of_composite
from crdkeeper.cluster.resources.kindpaths import KindPaths, ServedKind
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
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
    ) -> None:
        self._client = client
        self._served = served
        self._composite = composite
        self._share = share
        self._rights = rights
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._looked: set[Identity] = set()
        self.found = FoundObjects(settled=settled)

    def kind(self, identity: Identity) -> ServedKind:
        """Where the objects of a kind are, which was found."""
        return self._kinds[identity[:2]]

    async def refusal(self, identity: Identity, error: ApiError | Unreachable) -> Verdict:
        """What to say of a request for an object."""
        return await refusal(self._rights, self.kind(identity), str(identity), error)

    async def read(self, kinds: Iterable[KindKey], *, any_version: bool = False) -> None:
        """Read the composite's objects of these kinds, unless they were read; of versions, by the first.

        `any_version`: or by another one that is served, for what only has to be kept or removed.
        """
        wanted: dict[tuple[str, str], str] = {}
        for api_version, kind in kinds:
            key = group_of(api_version), kind
            if key not in self._kinds and key not in self.found.unreadable:
                wanted.setdefault(key, api_version)
        async with asyncio.TaskGroup() as group:
            for (_, kind), api_version in wanted.items():
                group.create_task(self._read(api_version, kind, any_version=any_version))

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
        found.absent.discard(identity)
        found.objects.pop(identity, None)
        found.strangers.pop(identity, None)
        ours = is_ours(live, self._composite.uid)
        (found.objects if ours else found.strangers)[identity] = live

    def forget(self, identity: Identity) -> None:
        """An object has to be looked up again."""
        self.found.objects.pop(identity, None)
        self.found.strangers.pop(identity, None)
        self.found.absent.discard(identity)

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

    async def _read(self, api_version: str, kind: str, *, any_version: bool) -> None:
        served = await self._find(api_version, kind, any_version=any_version)
        if served is None:
            return
        space = self._composite.namespace
        async with self._places:
            try:
                objects = await list_of_composite(
                    self._client, served, space, self._composite.uid, self._keeps
                )
            except (ApiError, Unreachable) as error:
                await self._failed(served, f"{kind} of {api_version}", error)
                return
        for each in objects:
            self.took(each)

    def _keeps(self, value: dict[str, Any]) -> bool:
        # A label alone says nothing: whoever may write the object can set it.
        if not is_ours(value, self._composite.uid):
            return False
        self._share.add(value)
        return True

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
        read, live = await self._get(served, identity)
        if not read:
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
        _, live = await self._get(served, identity)
        if live is not None:
            self.found.external[identity] = live

    async def _get(self, served: ServedKind, identity: Identity) -> tuple[bool, dict[str, Any] | None]:
        """Whether it could be read, and the object; None if there is none."""
        async with self._places:
            try:
                live = await get_object(self._client, served, identity.namespace, identity.name)
                if live is not None:
                    self._share.add(live)
            except (ApiError, Unreachable) as error:
                await self._failed(served, str(identity), error)
                return False, None
        return True, live

    async def _failed(self, served: ServedKind, what: str, error: ApiError | Unreachable) -> None:
        if isinstance(error, ApiError) and error.code == 404:
            self._served.forget(served.api_version)
        verdict = await refusal(self._rights, served, what, error)
        self.found.unreadable[served.group, served.kind] = verdict
