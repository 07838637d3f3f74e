"""Answers AdmissionReviews, whatever happens, in time: a change passes unless it is known to do harm."""

import asyncio
import logging
import re
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from crdkeeper.core.changes.review import response
from crdkeeper.core.conversion.review import BadReview
from crdkeeper.core.policy.selection import POLICIES_HEADER
from crdkeeper.webhook.changes.clusterpolicies import PolicySource
from crdkeeper.webhook.changes.worker import ChangeWorker, Crowded, Unable
from crdkeeper.webhook.http.types import JSON, Body, Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.rules.rulebook import RuleSource

_log = logging.getLogger(__name__)

SECONDS: Final = 1.5
"""API servers wait for two."""
_BODY_BYTES: Final = 8 << 20
"""Two CRDs, as large as etcd stores them, take half of it."""
HELD_BYTES: Final = 12 << 20
"""Of all changes that are not answered yet: conversions need the rest of the room for large bodies."""
_DECISIONS_BYTES: Final = 8 << 20
"""Of all that is decided by policies alone, in addition. Changes that are examined, too, have half of it."""
_MOST_DECISIONS: Final = 100
"""That wait at a time; each takes some milliseconds."""
_POLICIES_BYTES: Final = 16 << 20
"""Of all policies, without what does not decide. The worker has 128 MiB to read them."""
_AGAIN_SECONDS: Final = 10.0
_UID: Final = re.compile(rb'"uid":"([0-9a-f-]{36})"')
_HEAD_BYTES: Final = 400
"""The part of an AdmissionReview in which an API server puts the uid of the request."""
_OPERATION: Final = re.compile(rb'"operation":"([A-Z]+)"')
_OPERATION_BYTES: Final = 1024
"""The part in which it puts the operation, after a name of 253 bytes at most, and before what users write."""
CROWDED: Final = "crdkeeper had no time to examine this change"
_MANY: Final = (
    f"the DefinitionPolicies that judge changes or protect CRDs have more than {_POLICIES_BYTES >> 20} MiB"
)
_LARGE: Final = "crdkeeper does not examine changes of CRDs that large"


@dataclass(slots=True)
class _Queue:
    """What waits for a worker of its own."""

    worker: ChangeWorker
    most_bytes: int
    held: int = 0

    def has_half_for(self, body: bytes) -> bool:
        """Whether there is room for it in half of the bytes and of the places: the rest is for deletions."""
        small = 2 * (self.held + len(body)) <= self.most_bytes
        return small and 2 * self.worker.waiting < self.worker.most_waiting

    async def examine(self, body: bytes, policies: bytes, seconds: float) -> dict[str, Any]:
        """See ChangeWorker. Raises Crowded, too, if there is no room for the body."""
        if self.held + len(body) > self.most_bytes:
            raise Crowded
        self.held += len(body)
        try:
            return await self.worker.examine(body, policies, seconds)
        finally:
            self.held -= len(body)


class ChangeJudging:
    """Judges changes and deletions of CRDs by the policies of a source."""

    def __init__(self, policies: PolicySource, metrics: WebhookMetrics, rules: RuleSource) -> None:
        self.policies = policies
        self._metrics = metrics
        worker = partial(
            ChangeWorker, policies.fetch, policies.report, partial(_bundle, rules), lambda: policies.address
        )
        self._changes = _Queue(worker(), HELD_BYTES)
        self._decisions = _Queue(worker(most_waiting=_MOST_DECISIONS, decides=True), _DECISIONS_BYTES)
        """Whether a policy protects the CRD is decided without waiting for an examination, each of which may
        take all of its time."""
        self._news = asyncio.Event()

    def admits(self, token: str) -> bool:
        """Whether a request with this token comes from an API server."""
        return self.policies.admits(token)

    async def run(self) -> None:
        """Follow the policies until cancelled. Conversions go on whatever happens here."""
        try:
            while True:
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self.policies.run(self._news.set))
                        group.create_task(self._prepare())
                except Exception:
                    _log.exception("The policies for changes of CRDs cannot be followed")
                await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            for each in (self._changes, self._decisions):
                await each.worker.close()
            await self.policies.close()

    async def _prepare(self) -> None:
        """The first change need not wait for a worker; without policies, there is none."""
        while True:
            await self._news.wait()
            self._news.clear()
            # First the one for decisions: whoever starts that for changes waits for the examination in it.
            await self._have(self._decisions.worker, wanted=self.policies.protecting)
            await self._have(self._changes.worker, wanted=self.policies.judging)

    async def _have(self, worker: ChangeWorker, *, wanted: bool) -> None:
        try:
            await (worker.start() if wanted else worker.close())
        except OSError:
            _log.exception("No worker can be started before the first change")

    async def answer(self, body: Body) -> Response:
        """The answer to an AdmissionReview."""
        began = time.monotonic()
        # The policies may change while it is judged.
        headers = b"%s%s: %s\r\n" % (JSON, POLICIES_HEADER.encode(), self.policies.digest.encode())
        try:
            if len(body) > _BODY_BYTES:
                return self._unexamined(body, _LARGE, headers)
            if len(self.policies.content) > _POLICIES_BYTES:
                raise Unable(_MANY)
            review = await self._judged(bytes(body), began)
        except BadReview as error:
            self._metrics.judged("refused", time.monotonic() - began)
            return Response(f"not an AdmissionReview of a CRD: {error}\n".encode(errors="replace"), 400)
        except Crowded:
            return self._unexamined(body, CROWDED, headers)
        except Unable as error:
            self._metrics.judged("unexamined", time.monotonic() - began)
            return Response(f"{error}\n".encode(), 503)
        said = review["response"]
        passed = "warned" if said.get("warnings") else "allowed"
        self._metrics.judged(passed if said["allowed"] else "denied", time.monotonic() - began)
        return Response(orjson.dumps(review), headers=headers)

    async def _judged(self, body: bytes, began: float) -> dict[str, Any]:
        """The AdmissionReview to answer with. Raises BadReview, Crowded and Unable."""
        policies = self.policies.content or b"[]"
        operation = _OPERATION.search(body, 0, _OPERATION_BYTES)
        deletes = operation is not None and operation[1] == b"DELETE"
        if deletes or not self.policies.judging:
            return await self._decisions.examine(body, policies, SECONDS)
        if not (self.policies.protecting and self._decisions.has_half_for(body)):
            # Whoever examines a change decides that first.
            return await self._changes.examine(body, policies, SECONDS)
        deciding = asyncio.create_task(self._refusal(body, policies))
        try:
            await asyncio.wait({deciding}, timeout=SECONDS / 2)
            if deciding.done() and (refused := deciding.result()):
                return refused
            left = SECONDS - (time.monotonic() - began)
            try:
                if left <= 0:
                    raise Crowded
                return await self._changes.examine(body, policies, left)
            except Crowded:
                if refused := await deciding:
                    return refused
                raise
        finally:
            deciding.cancel()

    async def _refusal(self, body: bytes, policies: bytes) -> dict[str, Any] | None:
        """The answer that refuses a change of a protected CRD; None if none does, as far as is known."""
        try:
            decided = await self._decisions.examine(body, policies, SECONDS)
        except (BadReview, Crowded, Unable):
            return None
        return None if decided["response"]["allowed"] else decided

    def _unexamined(self, body: Body, why: str, headers: bytes) -> Response:
        """Let a change pass that was not read. (An API server does so without an answer: failurePolicy.)"""
        self._metrics.judged("unexamined", 0.0)
        return unexamined(body, why, headers)


def unexamined(body: Body, why: str = CROWDED, headers: bytes = JSON) -> Response:
    """The answer that lets a change pass which was not read."""
    found = _UID.search(body, 0, _HEAD_BYTES)
    if found is None:
        return Response(f"{why}\n".encode(), 503)
    return Response(orjson.dumps(response(found[1].decode(), [why])), headers=headers)


def _bundle(rules: RuleSource, name: str) -> bytes:
    """The rules that are served for a CRD; empty if there are none."""
    found = rules.conversions.get(name)
    return found.bundle if found is not None else b""
