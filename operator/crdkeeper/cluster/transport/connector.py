"""Connections of the general client: one answer for each request, and no writes once they are forbidden.

If a server sends a whole answer on an idle connection, aiohttp would take it for the answer to the next
request.
"""

from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client import ClientTimeout
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from crdkeeper.cluster.transport.fence import Fence, Fenced


class InStepConnector(aiohttp.TCPConnector):
    """Closes connections on which the server spoke unasked, instead of using them again."""

    def __init__(self, fence: Fence | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._fence = fence or Fence()
        self._used: WeakSet[ResponseHandler] = WeakSet()
        self._distrusted: WeakSet[ResponseHandler] = WeakSet()

    def distrust(self) -> None:
        """Stop using all current connections: one of them returned the answer to another request."""
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
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None:
                return connection
            used = protocol in self._used
            if not protocol.should_close and protocol not in self._distrusted:
                self._used.add(protocol)
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
