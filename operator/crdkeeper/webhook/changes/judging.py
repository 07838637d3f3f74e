"""Answers AdmissionReviews, whatever happens, in time: a change passes unless it is known to do harm."""

import asyncio
import logging
import re
import time
from dataclasses import dataclass
from functools import partial
from typing import Final

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
"""Of all that is decided by policies alone, in addition."""
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


class ChangeJudging:
    """Judges changes and deletions of CRDs by the policies of a source."""

    def __init__(self, policies: PolicySource, metrics: WebhookMetrics, rules: RuleSource) -> None:
        self.policies = policies
        self._metrics = metrics
        worker = partial(
            ChangeWorker, policies.fetch, policies.report, partial(_bundle, rules), lambda: policies.address
        )
        self._changes = _Queue(worker(), HELD_BYTES)
        self._decisions = _Queue(worker(most_waiting=_MOST_DECISIONS), _DECISIONS_BYTES)
        """What only needs to know whether a policy protects the CRD waits for no change, each of which may
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
            for worker, wanted in (
                (self._changes.worker, self.policies.judging),
                (self._decisions.worker, self.policies.protecting),
            ):
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
            operation = _OPERATION.search(body, 0, _OPERATION_BYTES)
            deletes = operation is not None and operation[1] == b"DELETE"
            queue = self._changes if self.policies.judging and not deletes else self._decisions
            if queue.held + len(body) > queue.most_bytes:
                raise Crowded
            queue.held += len(body)
            try:
                review = await queue.worker.examine(bytes(body), self.policies.content or b"[]", SECONDS)
            finally:
                queue.held -= len(body)
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
