"""Finds the schemas that a Composition is compiled by: of the composite's kind, and of its resources' kinds.

Those of CRDs come from the CRDs, because the OpenAPI documents say less and follow a moment later; all others
from the API server's OpenAPI v3.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.composites import is_served
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.openapi import find_plural, openapi_document, openapi_documents
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.templates.kinds import TargetKind, group_of, kinds_of
from crdkeeper.core.templates.openapi import kinds_of_openapi

_MOST_DOCUMENTS: Final = 8
"""Resolved documents that are kept; the one of core/v1 takes some megabytes."""
_INDEX_SECONDS: Final = 5.0
"""How long the list of documents counts: many Compositions are compiled one after the other."""

_FAILED_SECONDS: Final = 20.0
"""How long a document, or a group, counts as one that cannot be read: an aggregated API server that hangs
must not hold up those who need nothing of it.
"""

_T = TypeVar("_T")

KindKey = tuple[str, str]
"""apiVersion and kind."""


@dataclass(slots=True)
class ServedKinds:
    """Where the kinds of a Composition are described."""

    crds: dict[KindKey, Mapping[str, Any]] = field(default_factory=dict)
    """The CRDs that serve these kinds."""
    documents: dict[KindKey, str] = field(default_factory=dict)
    """The paths of OpenAPI documents that may describe these kinds."""

    @property
    def key(self) -> object:
        """Differs if a schema may differ."""
        crds = {
            kind: (crd["metadata"]["uid"], crd["metadata"]["generation"]) for kind, crd in self.crds.items()
        }
        return crds, self.documents

    def belongs_to_definition(self, kind: KindKey) -> bool:
        """Whether a CompositeResourceDefinition has made the CRD of this kind."""
        crd = self.crds.get(kind)
        return crd is not None and DEFINITION_UID in (crd["metadata"].get("annotations") or {})


class TargetKinds:
    """Finds kinds, and reads their schemas. `seen` has the CRDs that are known; it may lack some."""

    def __init__(self, client: Client, seen: Callable[[], Iterable[DefinitionFacts]]) -> None:
        self._client = client
        self._seen = seen
        self._index: dict[str, str] = {}
        self._index_until = 0.0
        self._read: OrderedDict[str, dict[KindKey, TargetKind]] = OrderedDict()
        self._failed: dict[str, tuple[float, str]] = {}
        """By path of a document or group: until when it is not requested again, and why."""
        self._turn = asyncio.Lock()
        """Of resolving documents, which takes some tens of megabytes for a moment."""

    async def find(self, wanted: Iterable[KindKey]) -> ServedKinds:
        """Find these kinds; those that the API server does not serve are left out.

        Raises ApiError and Unreachable.
        """
        found = ServedKinds()
        crds: dict[str, Mapping[str, Any] | None] = {}
        for kind in sorted(set(wanted)):
            api_version = kind[0]
            name = await self._crd_of(*kind)
            if name and name not in crds:
                crds[name] = await get_definition_object(self._client, name)
            crd = crds.get(name)
            if crd is not None:
                if _serves(crd, *kind):
                    found.crds[kind] = crd
            elif path := (await self._documents()).get(api_version):
                found.documents[kind] = path
        return found

    async def read(self, served: ServedKinds) -> dict[KindKey, TargetKind]:
        """The schemas of these kinds. Raises ApiError, Unreachable, and UnreadableDefinition."""
        found: dict[KindKey, TargetKind] = {}
        for kind, crd in served.crds.items():
            if kind not in found:
                found |= await asyncio.to_thread(kinds_of, crd)
        for kind, path in served.documents.items():
            known = (await self._kinds_in(path)).get(kind)
            if known is not None:
                found[kind] = known
        return found

    async def _crd_of(self, api_version: str, kind: str) -> str:
        """The name that the kind's CRD has if it comes from one; empty if it cannot."""
        group = group_of(api_version)
        if "." not in group:
            return ""
        known = [each for each in self._seen() if (each.group, each.kind) == (group, kind)]
        if known:
            # Of several, only the first one created got the kind.
            return max(known, key=lambda each: each.established).name
        plural = await self._once_in_a_while(
            f"/apis/{api_version}", lambda: find_plural(self._client, api_version, kind)
        )
        return f"{plural}.{group}" if plural is not None else ""

    async def _documents(self) -> dict[str, str]:
        now = asyncio.get_running_loop().time()
        if now >= self._index_until:
            self._index = await openapi_documents(self._client)
            self._index_until = now + _INDEX_SECONDS
        return self._index

    async def _kinds_in(self, path: str) -> dict[KindKey, TargetKind]:
        if path not in self._read:
            document = await self._document(path)
            async with self._turn:
                self._read[path] = await asyncio.to_thread(kinds_of_openapi, document)
        known = self._read[path]
        self._read.move_to_end(path)
        while len(self._read) > _MOST_DOCUMENTS:
            self._read.popitem(last=False)
        return known

    async def _document(self, path: str) -> dict[str, Any]:
        return await self._once_in_a_while(path, lambda: openapi_document(self._client, path))

    async def _once_in_a_while(self, path: str, read: Callable[[], Awaitable[_T]]) -> _T:
        """What is at a path. Raises ApiError and Unreachable, at once if it has just failed."""
        loop = asyncio.get_running_loop()
        until, why = self._failed.get(path, (0.0, ""))
        if loop.time() < until:
            raise Unreachable(why)
        try:
            return await read()
        except (ApiError, Unreachable) as error:
            now = loop.time()
            self._failed = {key: each for key, each in self._failed.items() if each[0] > now}
            self._failed[path] = now + _FAILED_SECONDS, str(error)
            raise


def _serves(crd: Mapping[str, Any], api_version: str, kind: str) -> bool:
    spec = crd["spec"]
    return (
        is_served(crd)
        and "deletionTimestamp" not in crd["metadata"]
        and spec["names"]["kind"] == kind
        and any(
            f"{spec['group']}/{each['name']}" == api_version and each["served"] for each in spec["versions"]
        )
    )
