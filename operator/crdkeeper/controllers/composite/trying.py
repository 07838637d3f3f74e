"""Tries what a pass over a composite would do: each of its writes is a dry run, and nothing is stored.

The pass itself is the composer's, so what is forced, refused or recreated is decided as it always is. Later
requests of the pass read what was written as a dry run.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.core.composites.preview import TriedWrite
from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.templates.namespaces import Identity, identity_of

_ATTEMPTS: Final = 8
_PAUSE: Final = 1.0
"""Seconds after 429, if the API server says nothing else."""
_GONE: Final = Answer(
    404, dumps({"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})
)


class TrialClient(Client):
    """Sends each write as a dry run; those to the composite itself are not sent at all."""

    def __init__(self, client: Client, composite: Mapping[str, Any], *kinds: ServedKind) -> None:
        super().__init__(client.connection)
        self._client = client
        metadata = composite["metadata"]
        self._own = {each.path(metadata.get("namespace", ""), metadata["name"]) for each in kinds}
        self._composite = dict(composite)
        self._written: dict[str, Answer] = {}
        """By path: what is read from now on."""
        self.tried: dict[Identity, TriedWrite] = {}
        """What dry runs have answered."""

    async def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
    ) -> Answer:
        """Send once, as a dry run if it is a write. Raises Unreachable and TooLarge."""
        bare, _, query = path.partition("?")
        if method == "GET":
            known = self._written.get(bare)
            return known or await self._client.send(method, path, accept=accept, most=most)
        if bare.removesuffix("/status") in self._own:
            return self._to_composite(bare, loads(content or b"{}"))
        if self._written.get(bare) is _GONE and method == "PATCH":
            # To be created again. Whether that is possible was asked before it was to be deleted.
            answer = _created(loads(content or b"{}"))
        else:
            before: Mapping[str, Any] | None = None
            if method in ("PATCH", "DELETE"):
                read = self._written.get(bare) or await self._patiently("GET", bare)
                if read.code >= 400 and read.code != 404:
                    # What a write changes cannot be told.
                    return read
                before = read.json() if read.code < 400 else None
            if method == "DELETE":
                # The API server reads no options from the query of a request with a body.
                content = dumps({**loads(content or b"{}"), "dryRun": ["All"]})
            mark = "" if "dryRun=" in query else f"dryRun=All{'&' if query else ''}"
            answer = await self._patiently(method, f"{bare}?{mark}{query}", content, content_type)
            if answer.code < 400:
                self._note_before(before)
        if answer.code < 400 and method == "DELETE":
            self._written[bare] = _GONE
            if before is not None:
                self._note_after(identity_of(before), None)
            return Answer(200, dumps({"kind": "Status", "status": "Success"}))
        if answer.code < 400 and method == "PATCH":
            self._written[bare] = answer
            value = answer.json()
            self._note_after(identity_of(value), value)
        return answer

    async def _patiently(
        self, method: str, path: str, content: bytes | None = None, content_type: str = "application/json"
    ) -> Answer:
        """Others come first: a preview is in no hurry."""
        for _ in range(_ATTEMPTS - 1):
            answer = await self._client.send(method, path, content=content, content_type=content_type)
            if answer.code != 429:
                return answer
            await asyncio.sleep(answer.retry_after or _PAUSE)
        return await self._client.send(method, path, content=content, content_type=content_type)

    def _note_before(self, value: Mapping[str, Any] | None) -> None:
        identity = identity_of(value) if value is not None else None
        if identity is not None and identity not in self.tried:
            self.tried[identity] = TriedWrite(before=value)

    def _note_after(self, identity: Identity | None, value: Mapping[str, Any] | None) -> None:
        if identity is not None:
            self.tried.setdefault(identity, TriedWrite()).after = value

    def _to_composite(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Its finalizers and its status, as the pass goes on with them."""
        if path.endswith("/status"):
            self._composite["status"] = {**(self._composite.get("status") or {}), **body["status"]}
        else:
            own = body["metadata"]["finalizers"]
            self._composite["metadata"] = {**self._composite["metadata"], "finalizers": own}
        return Answer(200, dumps(self._composite))


def _created(value: dict[str, Any]) -> Answer:
    metadata = {**value["metadata"], "uid": str(uuid4()), "resourceVersion": ""}
    return Answer(201, dumps({**value, "metadata": metadata}))
