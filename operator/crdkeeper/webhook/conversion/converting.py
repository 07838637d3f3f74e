"""Answers a ConversionReview: the event loop converts small ones immediately, a worker all others.

What users write determines how long a conversion takes, so there is a limit: a slow conversion is aborted and
passed to the worker, and for a while, requests of that size go there directly.
"""

import logging
import time
from collections.abc import Coroutine
from typing import Any, Final

from crdkeeper.core.conversion.bundle import RULES_HEADER
from crdkeeper.core.conversion.notes import PREFIX
from crdkeeper.core.conversion.review import BadReview, Reply, answered
from crdkeeper.webhook.conversion.worker import Busy, SlowConverter, WorkerFailed
from crdkeeper.webhook.http.types import JSON, LATER, TEXT, Body, Response
from crdkeeper.webhook.metrics import WebhookMetrics
from crdkeeper.webhook.rules.rulebook import Served, ServedConversions
from crdkeeper.webhook.timelimit import OutOfTime, TimeLimit

_log = logging.getLogger(__name__)

_SMALL_BYTES: Final = 64 << 10
"""Usually converted within 5 ms."""
_AT_ONCE_SECONDS: Final = 0.025
"""How long a request may delay others."""
_SLOW_SECONDS: Final = 10.0
"""How long requests at least as large as a slow one go to the worker."""
_PACKED: Final = f".{PREFIX}".encode()
"""Part of the names of labels with notes, which are compressed and may be far larger than they look."""
_RULES_HEADER: Final = RULES_HEADER.encode()


class Converting:
    """Answers ConversionReviews by the rules that are served."""

    def __init__(self, rules: ServedConversions, metrics: WebhookMetrics, slowly: SlowConverter) -> None:
        """What would delay others is converted by `slowly`."""
        self._rules = rules
        self._metrics = metrics
        self._limit = TimeLimit()
        self._slowly = slowly
        self._slow: dict[str, tuple[int, float]] = {}
        """For each CRD, the size of the smallest slow request, and until when it counts."""

    def answer(self, name: str, body: Body, source: str) -> Response | Coroutine[Any, Any, Response]:
        """The answer to a request from that address for the CRD with that name."""
        served = self._rules.conversions.get(name)
        if served is None or len(body) > _SMALL_BYTES or _PACKED in body or self._is_slow(name, len(body)):
            return self._answer_later(name, body, source)
        start = time.monotonic()
        try:
            reply = self._limit.run(_AT_ONCE_SECONDS, answered, body, served.conversion)
        except BadReview as error:
            return self.refused(name, 400, f"not a ConversionReview: {error}")
        except OutOfTime:
            size = min(len(body), self._slow.get(name, (len(body), 0.0))[0])
            self._slow[name] = size, start + _SLOW_SECONDS
            return self._answer_later(name, body, source)
        return self._replied(name, served, reply, start)

    def _is_slow(self, name: str, size: int) -> bool:
        if name not in self._slow:
            return False
        smallest, until = self._slow[name]
        if time.monotonic() > until:
            del self._slow[name]
            return False
        return size >= smallest

    async def _answer_later(self, name: str, body: Body, source: str) -> Response:
        served = self._rules.conversions.get(name)
        if served is None:
            await self._rules.look_again(name)
            served = self._rules.conversions.get(name)
        if served is None:
            return self.refused("", 404, f"no rules for {name[:300]}")
        start = time.monotonic()
        try:
            reply = await self._slowly.convert(served, body, source)
        except BadReview as error:
            return self.refused(name, 400, f"not a ConversionReview: {error}")
        except Busy:
            return self.refused(name, 503, "too many large requests at once", TEXT + LATER)
        except WorkerFailed:
            return self.refused(name, 500, "the conversion took too long or used too much memory")
        return self._replied(name, served, reply, start)

    def _replied(self, name: str, served: Served, reply: Reply, start: float) -> Response:
        seconds = time.monotonic() - start
        self._metrics.answered(name, seconds, reply.objects, reply.tally, failed=bool(reply.error))
        if reply.error:
            _log.warning("%s: %s", name, reply.error)
        return Response(
            reply.content, headers=b"%s%s: %s\r\n" % (JSON, _RULES_HEADER, served.digest.encode())
        )

    def refused(self, name: str, status: int, message: str, headers: bytes = TEXT) -> Response:
        """The answer to a request that is not a conversion, or for which there are no rules."""
        self._metrics.refused(name)
        return Response(f"{message}\n".encode(), status, headers)
