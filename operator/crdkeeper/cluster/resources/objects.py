"""The objects of one resource: metadata-only pages, and the patch that rewrites an object."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson

from crdkeeper.api.meta import FIELD_MANAGER
from crdkeeper.apiserver.objects.continuation import at_latest
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES, PageSize, bounded_page
from crdkeeper.cluster.transport.client import (
    MERGE_PATCH,
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    Answer,
    ApiError,
    Client,
    TooLarge,
    Unreachable,
)
from crdkeeper.cluster.transport.deadlines import within
from crdkeeper.cluster.transport.hunglists import hung, refuse_hanging
from crdkeeper.core.migration.evidence import ObjectRef, concerns

PAGE = 500
_FIRST_SECONDS: Final = 35.0
"""For one object: an API server gives a conversion webhook half a minute, and says then which one it was."""
_HANGING_SECONDS: Final = 25.0
"""A failure that takes so long was one of those."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. `continue_token` is empty on the last one."""

    items: Sequence[Mapping[str, Any]]
    continue_token: str
    remaining: int
    resource_version: str


def pages_of(most_objects: int) -> PageSize:
    """The pages of one list: with so many objects, or with fewer where their owners made them large."""
    return PageSize(most_objects, most_objects, METADATA_BYTES // 2, METADATA_BYTES)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A resource at one served version, in all namespaces."""

    group: str
    version: str
    resource: str

    @property
    def secret(self) -> bool:
        """Whether its objects are Secrets."""
        return not self.group and self.resource == "secrets"

    @property
    def base(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str, name: str) -> str:
        """The path of one object, percent-encoded."""
        return f"{self.collection(namespace)}/{quote(name, safe='')}"

    def collection(self, namespace: str = "") -> str:
        """The path of all objects, or of those of one namespace."""
        space = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        return f"{self.base}{space}/{self.resource}"

    async def now(self, client: Client) -> str:
        """A resourceVersion that is as new as the last write, by a consistent read.

        Raises ApiError and Unreachable. While a conversion webhook hangs, what was said of it.
        """
        await refuse_hanging(client, self.collection())
        path, began = f"{self.collection()}?limit=1", asyncio.get_running_loop().time()
        try:
            answer = client.request("GET", path, accept=METADATA_ONLY_LIST, once=True)
            return str((await within(_FIRST_SECONDS, answer))["metadata"]["resourceVersion"])
        except (ApiError, Unreachable) as error:
            if asyncio.get_running_loop().time() >= began + _HANGING_SECONDS:
                hung(client, self.collection(), str(error))
                raise
        # What fails at once may pass as soon.
        return (await self.page(client, None, pages_of(1))).resource_version

    async def page(self, client: Client, token: str | None, size: PageSize, namespace: str = "") -> Page:
        """A page of metadata, of one namespace or of all, by a consistent read (never resourceVersion=0).

        `size` is kept from page to page of a list. If a continue token has expired (410), the one that the
        server offers instead is used, which continues at the same key with current data: no object that
        existed all the time is skipped. Raises ApiError, 410 only if the server offers no token; Unreachable.
        """
        return await self._page(client, self.collection(namespace), token, size, METADATA_ONLY_LIST)

    async def latest_page(self, client: Client, token: str, size: PageSize) -> Page:
        """Like `page`, with the objects as they are now, if the API server continues its list like that.

        With an old token, it shows what was written since as it was before.
        """
        latest = at_latest(token)
        if latest is not None:
            try:
                return await self.page(client, latest, size)
            except ApiError as error:
                if error.code not in (400, 410):
                    raise
        return await self.page(client, token, size)

    async def whole_page(self, client: Client, token: str | None, size: PageSize) -> Page:
        """A page of whole objects; otherwise like `page`."""
        return await self._page(client, self.collection(""), token, size, "application/json")

    async def _page(self, client: Client, path: str, token: str | None, size: PageSize, accept: str) -> Page:
        try:
            body = await bounded_page(client, path, token or "", size, accept=accept)
        except TooLarge:
            # API servers store no object that is so large that there is no room for it alone.
            alone = PageSize(1, 1, METADATA_BYTES)
            body = await bounded_page(client, path, token or "", alone, accept=accept)
        items = body.get("items") or ()
        if size.limit < size.most_objects:
            # To measure a page takes a copy of it; usual ones need none.
            size.fit(items)
        metadata = body["metadata"]
        return Page(
            items=items,
            continue_token=metadata.get("continue", ""),
            remaining=int(metadata.get("remainingItemCount") or 0),
            resource_version=metadata.get("resourceVersion", ""),
        )

    async def rewrite(self, client: Client, ref: ObjectRef, *, dry_run: bool = False) -> Answer:
        """Send the merge patch that changes nothing but makes the server encode the object again.

        Raises Unreachable; also if a success is not about the object.
        """
        metadata = b'"resourceVersion":' + orjson.dumps(ref.resource_version)
        if ref.managed_fields is not None:
            metadata += b',"managedFields":' + ref.managed_fields
        query = f"?fieldManager={FIELD_MANAGER}" + ("&dryRun=All" if dry_run else "")
        path = self.path(ref.namespace, ref.name)
        answer = await client.send_lean(
            "PATCH",
            path + query,
            content=b'{"metadata":{' + metadata + b"}}",
            content_type=MERGE_PATCH,
            accept=METADATA_ONLY,
        )
        if answer.code < 300 and not concerns(answer.json(), ref.namespace, ref.name, ref.uid):
            client.distrust()
            raise Unreachable(f"PATCH {path}: the response is for another object")
        return answer

    async def metadata(self, client: Client, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object's current metadata; None if it is gone. Raises ApiError or Unreachable."""
        path = self.path(namespace, name)
        try:
            body = await client.request("GET", path, accept=METADATA_ONLY)
        except ApiError as error:
            # Without its name in the answer, it is the resource that does not exist, or not yet.
            if error.code == 404 and (error.body.get("details") or {}).get("name") == name:
                return None
            raise
        if not concerns(body, namespace, name):
            client.distrust()
            raise Unreachable(f"GET {path}: the response is for another object")
        found: Mapping[str, Any] = body["metadata"]
        return found

    async def size(self, client: Client, namespace: str, name: str) -> int:
        """Size of an object as JSON in bytes; 0 if it is gone."""
        answer = await client.send("GET", self.path(namespace, name))
        return len(answer.content) if answer.code == 200 else 0
