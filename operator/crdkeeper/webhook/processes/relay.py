"""A serving process' way to the keeper: the keeper's state comes in, requests that it must answer go out."""

import asyncio
import hmac
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from crdkeeper.core.conversion.review import BadReview, Reply
from crdkeeper.webhook.certificate import PortCertificate
from crdkeeper.webhook.changes.judging import SECONDS, unexamined
from crdkeeper.webhook.conversion.worker import Busy, WorkerFailed, WorkerRules, reply_of
from crdkeeper.webhook.http.types import Body, Response
from crdkeeper.webhook.processes import messages as say
from crdkeeper.webhook.processes.channel import Channel
from crdkeeper.webhook.rules.clusterrules import compiled
from crdkeeper.webhook.rules.rulebook import Served

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 3.0
_GRACE_SECONDS: Final = 0.2
"""The keeper answers in time, unless it is dead; API servers wait for two seconds."""
_CONVERT_SECONDS: Final = 28.0
"""More than the worker takes, less than API servers wait."""
_MOST_ASKED: Final = 100
_AGAIN: Final = "again"
"""What this process tells itself: the name of rules to be compiled again."""
_AGAIN_SECONDS: Final = 30.0

Answer = tuple[dict[str, Any], bytes]


@dataclass(slots=True)
class _Question:
    """It is there until the keeper has answered, also if nobody waits for that: it takes up memory there."""

    bytes: int
    answer: asyncio.Future[Answer]


class Relay:
    """What this process knows from the keeper, which may be replaced by another one at any time."""

    def __init__(self, certificate: PortCertificate, most_bytes: int) -> None:
        """At most so many bytes are on their way to the keeper, or there."""
        self.conversions: dict[str, Served] = {}
        self.whole = asyncio.Event()
        """All that existed has been received and compiled, and there is a certificate."""
        self.uninstalled = asyncio.Event()
        self._certificate = certificate
        self._secured = False
        self._failed: dict[str, Answer] = {}
        """What the keeper has said last of rules that could not be compiled."""
        self._token = ""
        self._channel: Channel | None = None
        self._news: asyncio.Queue[Answer] = asyncio.Queue()
        self._most_bytes = most_bytes
        self._asked: dict[int, _Question] = {}
        self._numbers = count()
        self._serving = False

    def connect(self, end: socket.socket) -> None:
        """There is a keeper at the other end."""
        if self._channel is not None:
            self._channel.close()
        self._lost()
        self._channel = Channel(end, self._received, self._lost)
        self.tell_serving(self._serving)

    async def run(self) -> None:
        """Compile rules as they come, in the keeper's order, until cancelled."""
        whole = False
        while True:
            said, carried = await self._news.get()
            if _AGAIN in said:
                said, carried = self._failed.get(said[_AGAIN], ({}, b""))
            if say.RULES in said:
                await self._compile(said, carried)
            elif say.DROP in said:
                self._failed.pop(said[say.DROP], None)
                self.conversions.pop(said[say.DROP], None)
            elif say.CERTIFICATE in said:
                length = said[say.CERTIFICATE]
                self._certificate.use(carried[:length], carried[length:])
                self._secured = True
            elif say.TOKEN in said:
                self._token = said[say.TOKEN]
            elif say.ID in said:
                self._answered(said, carried)
            whole = whole or say.WHOLE in said
            if whole and self._secured:
                self.whole.set()

    async def _compile(self, said: dict[str, Any], bundle: bytes) -> None:
        name, digest = said[say.RULES], said[say.DIGEST]
        self._failed.pop(name, None)
        known = self.conversions.get(name)
        if known is None or known.digest != digest or known.bundle != bundle:
            try:
                made = await asyncio.to_thread(compiled, bundle)
            except Exception:
                # The keeper has compiled it, too; whatever is different here, the others serve. Memory or
                # threads may be short for a moment only, and the keeper says it once.
                _log.exception("%s: the rules that the keeper serves cannot be compiled", name)
                self._failed[name] = said, bundle
                again = ({_AGAIN: name}, b"")
                asyncio.get_running_loop().call_later(_AGAIN_SECONDS, self._news.put_nowait, again)
                return
            self.conversions[name] = Served(made.conversion, digest, bundle)

    def tell_serving(self, serving: bool) -> None:
        """Tell the keeper whether this process accepts connections."""
        self._serving = serving
        if self._channel is not None:
            self._channel.send({say.SERVING: serving})

    def tell_counted(self, counted: Callable[[], bytes]) -> None:
        """Tell the keeper, unless it does not listen."""
        if self._channel is not None and self._channel.idle:
            self._channel.send({say.COUNTED: True}, counted())

    async def look_again(self, name: str) -> None:
        """Have the keeper look for rules that API servers know earlier than it."""
        await self._ask({say.LOOK: name}, b"", _LOOK_SECONDS)

    def admits(self, token: str) -> bool:
        """Whether a request with this token comes from an API server."""
        return bool(self._token) and hmac.compare_digest(token.encode(), self._token.encode())

    async def answer(self, body: Body) -> Response:
        """The keeper's answer to an AdmissionReview: only one process judges changes of CRDs."""
        found = await self._ask({say.JUDGE: True}, bytes(body), SECONDS + _GRACE_SECONDS)
        if found is None or say.STATUS not in found[0]:
            return unexamined(body)
        said, answer = found
        return Response(answer, said[say.STATUS], said[say.HEADERS].encode("latin-1"))

    async def convert(self, rules: WorkerRules, body: Body, source: str) -> Reply:
        """See SlowConverter. Without the keeper, clients may ask again."""
        said = {say.CONVERT: len(rules.bundle), say.DIGEST: rules.digest, say.SOURCE: source}
        found = await self._ask(said, rules.bundle + body, _CONVERT_SECONDS)
        if found is None:
            raise Busy
        answer, content = found
        if say.BAD in answer:
            raise BadReview(answer[say.BAD])
        if say.FAILED in answer:
            raise WorkerFailed
        if say.REPLY not in answer:
            raise Busy
        return reply_of(answer[say.REPLY], content)

    async def _ask(self, said: dict[str, Any], carried: bytes, seconds: float) -> Answer | None:
        """None without an answer."""
        held = sum(each.bytes for each in self._asked.values())
        if self._channel is None or len(self._asked) >= _MOST_ASKED or held + len(carried) > self._most_bytes:
            return None
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._asked[number] = _Question(len(carried), answer)
        self._channel.send({**said, say.ID: number}, carried)
        try:
            await asyncio.wait({answer}, timeout=seconds)
            return answer.result() if answer.done() and not answer.cancelled() else None
        finally:
            if number in self._asked and self._channel is not None:
                self._channel.send({say.FORGET: number})

    def _received(self, said: dict[str, Any], carried: bytes) -> None:
        if say.LEAVE in said:
            self.uninstalled.set()
        elif say.ID in said and say.LOOK not in said:
            self._answered(said, carried)  # it need not wait for rules that are being compiled
        else:
            self._news.put_nowait((said, carried))

    def _answered(self, said: dict[str, Any], carried: bytes) -> None:
        question = self._asked.pop(said[say.ID], None)
        if question is not None and not question.answer.done():
            question.answer.set_result((said, carried))

    def _lost(self) -> None:
        self._channel = None
        for each in self._asked.values():
            each.answer.cancel()
        self._asked.clear()
