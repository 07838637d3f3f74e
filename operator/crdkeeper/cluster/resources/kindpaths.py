"""At which path the API server serves the objects of a kind."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import quote

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, find
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.core.templates.kinds import group_of, is_api_version

_SECONDS: Final = 20.0
_KNOWN_SECONDS: Final = 60.0
_MISSING_SECONDS: Final = 5.0
"""How long an answer counts that does not have the kind."""
_FAILED_SECONDS: Final = 10.0
"""How long a failure counts: an API server that hangs does not hold up each composite."""

_MOST: Final = 1_000
"""Groups and versions that are remembered: a status can name any number that do not exist."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind at one version."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of one object, or of a collection."""
        base = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        space = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{base}{space}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")

    @property
    def group(self) -> str:
        """The API group."""
        return group_of(self.api_version)


class KindPaths:
    """Finds kinds by discovery, and remembers them for a while."""

    def __init__(self, client: Client, seen: Callable[[], Iterable[DefinitionFacts]] = tuple) -> None:
        """`seen` has the CRDs that are known."""
        self._client = client
        self._seen = seen
        self._known: OrderedDict[str, tuple[float, dict[str, ServedKind]]] = OrderedDict()
        """By group and version: in the loop's time since when, and the kinds."""
        self._failed: OrderedDict[str, tuple[float, ApiError | Unreachable | None]] = OrderedDict()
        """By group and version that could not be read: until when that is not tried again, and why."""

    async def find(self, api_version: str, kind: str) -> ServedKind | None:
        """The kind; None if it is not served. Raises ApiError and Unreachable."""
        if not is_api_version(api_version):
            return None
        since, kinds = self._known.get(api_version, (0.0, {}))
        age = asyncio.get_running_loop().time() - since if since else _KNOWN_SECONDS
        if age >= (_KNOWN_SECONDS if kind in kinds else _MISSING_SECONDS):
            try:
                kinds = await self._read_again(api_version)
            except (ApiError, Unreachable):
                # A kind that was served keeps its path.
                if kind not in kinds:
                    raise
        return kinds.get(kind)

    async def find_any(self, group: str, kind: str) -> ServedKind | None:
        """The kind at any version; None if none serves it. Raises ApiError and Unreachable."""
        if not group or not is_api_version(f"{group}/v1"):
            return None
        body = await within(_SECONDS, find(self._client, f"/apis/{group}"))
        for each in (body or {}).get("versions") or ():
            served = await self.find(str(each["groupVersion"]), kind)
            if served is not None:
                return served
        return None

    def has_definition(self, group: str, kind: str) -> bool:
        """Whether there is a CRD of the kind, served or not."""
        return any((each.group, each.kind) == (group, kind) for each in self._seen())

    def forget(self, api_version: str) -> None:
        """Ask again: a request for a path has failed with 404."""
        self._known.pop(api_version, None)

    async def _read_again(self, api_version: str) -> dict[str, ServedKind]:
        loop = asyncio.get_running_loop()
        until, error = self._failed.get(api_version, (0.0, None))
        if error is not None and loop.time() < until:
            raise error.with_traceback(None)
        try:
            kinds = await self._read(api_version)
        except (ApiError, Unreachable) as trouble:
            _put(self._failed, api_version, (loop.time() + _FAILED_SECONDS, trouble))
            raise
        self._failed.pop(api_version, None)
        return kinds

    async def _read(self, api_version: str) -> dict[str, ServedKind]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        body = await within(_SECONDS, find(self._client, path))
        kinds = {
            each["kind"]: ServedKind(api_version, each["kind"], each["name"], bool(each["namespaced"]))
            for each in (body or {}).get("resources") or ()
            # Subresources have kinds of their own: pods/eviction.
            if "/" not in each["name"] and "patch" in each.get("verbs", ())
        }
        _put(self._known, api_version, (asyncio.get_running_loop().time(), kinds))
        return kinds


def _put(known: OrderedDict[str, _T], api_version: str, value: _T) -> None:
    known[api_version] = value
    known.move_to_end(api_version)
    if len(known) > _MOST:
        known.popitem(last=False)
