"""Connections of the general client: one answer for each request, and no writes once they are forbidden.

If a server sends a whole answer on an idle connection, aiohttp would take it for the answer to the next
request. And it would keep a connection for as long as it is used, so that all lists would go to one server.
"""

from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import aiohttp
from aiohttp.client import ClientTimeout
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from crdkeeper.cluster.transport.fence import Fence, Fenced

REQUESTS_PER_CONNECTION: Final = 100
"""A load balancer chooses a server for each connection. This client's requests are few and large beside a
migration's writes (`http1`): a page of a list takes a server longer than a handshake.
"""


class InStepConnector(aiohttp.TCPConnector):
    """Closes connections on which the server spoke unasked, instead of using them again, and those that were
    used often.
    """

    def __init__(self, fence: Fence | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._fence = fence or Fence()
        self._used: WeakKeyDictionary[ResponseHandler, int] = WeakKeyDictionary()
        """How many requests each connection has carried."""
        self._distrusted: WeakSet[ResponseHandler] = WeakSet()
        self._distrusts = 0

    def distrust(self) -> None:
        """Stop using all current connections, those that are being made after their first request."""
        self._distrusts += 1
        self._distrusted.update(self._used)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 (the signature is aiohttp's)
    ) -> Connection:
        """A connection for one request: an idle one or a new one.

        Raises what aiohttp's connector raises; ClientConnectionError also if the server speaks first on a new
        one; Fenced if the request may not be sent any more.
        """
        while True:
            distrusts = self._distrusts
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None:
                return connection
            used = self._used.get(protocol, 0)
            in_step = not protocol.should_close and protocol not in self._distrusted
            if in_step and used < REQUESTS_PER_CONNECTION:
                self._used[protocol] = used + 1
                if distrusts != self._distrusts:
                    self._distrusted.add(protocol)
                try:
                    # Only now: to connect may have taken long.
                    self._fence.check(req.method)
                except Fenced:
                    connection.release()
                    raise
                return connection
            connection.close()
            if not used:
                raise aiohttp.ClientConnectionError("the server sends data before a request")
