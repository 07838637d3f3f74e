"""The shadow CRD of a rehearsal: created, awaited, used, and removed whatever happens."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import orjson

from crdkeeper.cluster.resources.definitions import DEFINITIONS_PATH, get_revision, list_definition_objects
from crdkeeper.cluster.transport.client import Answer as HttpAnswer
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.rehearsal.shadow import (
    GROUP,
    LABEL,
    MADE_BY,
    DryRun,
    answered,
    is_stale,
    shadow_definition,
    shadow_object,
)
from crdkeeper.operations.rehearsal.maker import has_ended, this_process

_SERVED_SECONDS = 60.0
"""How long all API servers may take to serve a shadow."""
_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE = 5.0
_REMOVALS = 6
_BUSY = frozenset((429, 500, 502, 503, 504))
_OF_THE_CRD = ("spec.versions", "spec.validation", "spec.subresources", "spec.preserveUnknownFields")
"""Errors in what a shadow has of its CRD. Those of what all versions share are not below spec.versions."""


class ShadowFailed(Exception):
    """The shadow cannot be used; the text says why, and what is left to do."""


class _NameTaken(Exception):
    """Another rehearsal has a shadow of the same kind."""


class Shadow:
    """A shadow CRD as an async context manager. Raises ShadowFailed, ApiError and Unreachable.

    Shadows left by killed rehearsals are removed first. Nothing is ever stored in it: all creations are dry
    runs.
    """

    def __init__(
        self,
        client: Client,
        document: Mapping[str, Any],
        *,
        judged_at: str = "",
        left: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`document` is a CRD as the API server accepts it: see core.rehearsal.shadow.shadow_definition.

        `left` gets what to do if the shadow could not be removed, also where nobody gets the ShadowFailed.
        """
        self._client = client
        self._document = document
        self._judged_at = judged_at
        self._left = left
        self.plural = f"r{secrets.token_hex(6)}"
        self.name = f"{self.plural}.{GROUP}"
        self.kind: str = document["spec"]["names"]["kind"]
        self._creation: asyncio.Future[Any] | None = None
        self._has_given_up = False
        """Whether the last answer was that the server is busy or broken, in spite of all waiting."""

    async def __aenter__(self) -> Self:
        await self._sweep()
        for last in (False, True):
            try:
                await self._make()
                return self
            except _NameTaken as error:
                if last:
                    raise ShadowFailed(str(error)) from None
                self._rename()
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _make(self) -> None:
        definition = shadow_definition(
            self._document, self.plural, self.kind, judged_at=self._judged_at, made_by=this_process()
        )
        # Wait for a creation that was sent, even when told to stop: otherwise it could be executed after the
        # removal.
        self._creation = asyncio.ensure_future(self._client.request("POST", DEFINITIONS_PATH, definition))
        try:
            await asyncio.shield(self._creation)
            await self._established()
        except BaseException as error:
            await self._remove()
            if isinstance(error, ApiError) and error.code == 422:
                raise ShadowFailed(_refused(error)) from None
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._remove()

    async def _sweep(self) -> None:
        """Remove leftovers, and use another kind if a running rehearsal has this one."""
        if self.kind in await remove_left_shadows(self._client):
            self._rename()

    def _rename(self) -> None:
        """Use another kind, and so another CRD. By default the kind is the real one: rules may require it."""
        self.plural = f"r{secrets.token_hex(6)}"
        self.name = f"{self.plural}.{GROUP}"
        self.kind = f"R{secrets.token_hex(6)}"

    async def _established(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SERVED_SECONDS
        while True:
            found = await self._client.request("GET", f"{DEFINITIONS_PATH}/{self.name}")
            conditions = {each["type"]: each for each in (found.get("status") or {}).get("conditions") or ()}
            named = conditions.get("NamesAccepted", {})
            if named.get("status") == "False":
                raise _NameTaken(f"the shadow {self.name} is not served: {named.get('message', '')}")
            if conditions.get("Established", {}).get("status") == "True":
                return
            if loop.time() > deadline:
                raise ShadowFailed(f"the shadow {self.name} is not established after {_SERVED_SECONDS:g} s")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _remove(self) -> None:
        """Remove the shadow, and wait for the end of that even when told to stop. Raises ShadowFailed."""
        removal = asyncio.create_task(self._removed())
        stopped: asyncio.CancelledError | None = None
        while not removal.done():
            try:
                await asyncio.wait([removal])
            except asyncio.CancelledError as error:
                stopped = error
        failed = removal.exception()
        if stopped is not None:
            raise stopped
        if failed is not None:
            raise failed

    async def _removed(self) -> None:
        if self._creation is not None:
            await asyncio.wait([self._creation])
            error = self._creation.exception()
            if isinstance(error, ApiError) and error.code < 500 and error.code != 409:
                return  # it was never created
        trouble = ""
        for attempt in range(_REMOVALS):
            try:
                answer = await self._client.send("DELETE", f"{DEFINITIONS_PATH}/{self.name}")
            except Unreachable as error:
                trouble = str(error)
            else:
                if _is_gone(answer):
                    return
                trouble = str(answer.json().get("message") or answer.code)
            await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
        what = (
            f"the shadow could not be removed: {trouble}. It does no harm, and a rehearsal some hours later "
            f"removes it. To remove it now: kubectl delete crd {self.name}"
        )
        self._left(what)
        raise ShadowFailed(what)

    async def judge(self, sent: Mapping[str, Any]) -> DryRun | None:
        """The API server's response to the creation of an object; None if its namespace is gone.

        Waits while the shadow is not served yet, and when the server says so; not once that was in vain for
        another object, as with an admission webhook that is down. Raises ShadowFailed if the shadow is gone,
        and Unreachable.
        """
        obj = shadow_object(dict(sent), self.kind)
        version = obj["apiVersion"].rpartition("/")[2]
        namespace = (obj.get("metadata") or {}).get("namespace")
        space = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
        path = f"/apis/{GROUP}/{version}{space}/{self.plural}?dryRun=All&fieldValidation=Ignore"
        content = orjson.dumps(obj)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SERVED_SECONDS
        pause = _PAUSE_SECONDS
        while True:
            answer: HttpAnswer | None = None
            try:
                answer = await self._client.send("POST", path, content=content)
            except Unreachable:
                if loop.time() >= deadline:
                    raise
            if answer is not None:
                body = answer.json()
                if answer.code == 404 and _is_of_namespace(body):
                    return None
                if answer.code == 404 and await get_revision(self._client, self.name) is None:
                    raise ShadowFailed(f"the shadow {self.name} was removed by another client")
                is_busy = answer.code in _BUSY
                waits = answer.code == 404 or (is_busy and not self._has_given_up)
                if not waits or loop.time() >= deadline:
                    self._has_given_up = is_busy
                    return await self._answer(answer, body)
            after = answer.retry_after if answer is not None else None
            await asyncio.sleep(min(after or pause, max(0.0, deadline - loop.time())))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _answer(self, answer: HttpAnswer, body: Mapping[str, Any]) -> DryRun:
        if answer.code == 404:
            raise ShadowFailed(f"the shadow {self.name} is not served after {_SERVED_SECONDS:g} s")
        return answered(answer.code, body)


def _refused(error: ApiError) -> str:
    """Why there can be no shadow, and what to do."""
    causes = (error.body.get("details") or {}).get("causes") or ()
    kept = any(str(each.get("field")).startswith(_OF_THE_CRD) for each in causes)
    why = "allows these schemas only to CRDs that have them already" if kept else "refuses a shadow"
    return f"the API server {why}; rehearse with --shadow never: {error.body.get('message')}"


def _is_gone(answer: HttpAnswer) -> bool:
    """Whether a DELETE has removed it."""
    return answer.code < 300 or answer.code == 404


def _is_of_namespace(body: Mapping[str, Any]) -> bool:
    return (body.get("details") or {}).get("kind") == "namespaces"


async def remove_left_shadows(client: Client) -> set[str]:
    """Remove the shadows of rehearsals that were killed; returns the kinds of those that stay.

    Raises ApiError and Unreachable.
    """
    taken = set()
    for each in await list_definition_objects(client, LABEL):
        if each["spec"]["group"] != GROUP:
            continue  # labelling a CRD of another group must not delete it
        made_by = str((each["metadata"].get("annotations") or {}).get(MADE_BY) or "")
        if is_stale(each, client.now()) or has_ended(made_by):
            answer = await client.send("DELETE", f"{DEFINITIONS_PATH}/{each['metadata']['name']}")
            if _is_gone(answer):
                continue
        taken.add(each["spec"]["names"]["kind"])
    return taken


async def try_definition(client: Client, definition: Mapping[str, Any], *, exists: bool) -> dict[str, Any]:
    """The CRD as the API server would store it, by a dry run. Raises ApiError: 422 describes the errors."""
    name = quote(definition["metadata"]["name"], safe="")
    if exists:
        return await client.request("PUT", f"{DEFINITIONS_PATH}/{name}?dryRun=All", definition)
    return await client.request("POST", f"{DEFINITIONS_PATH}?dryRun=All", definition)
