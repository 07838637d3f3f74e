"""Connections of the general client that are known to be in step: one answer for each request.

aiohttp takes a whole answer that a server sends on an idle connection for the one to the next request on it.
"""

from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client import ClientTimeout
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace


class InStepConnector(aiohttp.TCPConnector):
    """Gives up connections on which the server spoke unasked, instead of using them again."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[ResponseHandler] = WeakSet()
        self._distrusted: WeakSet[ResponseHandler] = WeakSet()

    def distrust(self) -> None:
        """Use no connection again that there is now: one of them gave the answer to another request."""
        self._distrusted.update(self._used)

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: ClientTimeout,  # noqa: ASYNC109 (the signature is aiohttp's)
    ) -> Connection:
        """A connection for one request: an idle one or a new one.

        Raises as aiohttp's connector; ClientConnectionError too if the server speaks first on a new one.
        """
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None:
                return connection
            used = protocol in self._used
            if not protocol.should_close and protocol not in self._distrusted:
                self._used.add(protocol)
                return connection
            connection.close()
            if not used:
                raise aiohttp.ClientConnectionError("the server sends data before a request")
