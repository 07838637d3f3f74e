"""Requests in the name of another account, by a token that somebody else gets and renews.

All accounts share connections, so their number is not that of accounts. These have no client certificate.
"""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import aiohttp

from crdkeeper.cluster.transport.client import Answer, Client


class TokenSource(ABC):
    """The tokens of one account."""

    @abstractmethod
    async def token(self) -> str:
        """One that has not expired. Raises NoCredentials."""

    @abstractmethod
    async def renew(self, refused: str) -> str:
        """Another one than that, which the API server did not accept. Raises NoCredentials."""


class TokenSession:
    """The connections of all accounts; opened when they are first needed."""

    def __init__(self, client: Client) -> None:
        """`client` says where the API server is, and when writes are forbidden."""
        self._client = client
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def client(self, source: TokenSource) -> "TokenClient":
        """A client for one account, which needs not be closed."""
        if self._session is None:
            self._session = self._client.connection.session(fence=self._client.fence, anonymous=True)
        return TokenClient(self._client, self._session, source)


class TokenClient(Client):
    """A client by the tokens of one account, over connections that others use, too."""

    def __init__(self, own: Client, session: aiohttp.ClientSession, source: TokenSource) -> None:
        super().__init__(own.connection)
        self.fence = own.fence
        # That they are returned is known from the composer's own requests: the guard holds from the first
        # request of an account on.
        self._ids = own._ids
        self._session = session
        self._source = source
        self._sent = ""

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
        """Like `Client.send`, but renews the token if it is not accepted any more; never answers 401.

        Raises NoCredentials besides.
        """
        while True:
            # Each time: a token that is still accepted for another request may not be for this one.
            token = await self._source.token()
            self._use(token)
            answer = await super().send(
                method, path, content=content, content_type=content_type, accept=accept, most=most
            )
            if answer.code != 401:
                return answer
            # Nothing was done, so a write can be sent again. `renew` ends this.
            await self._source.renew(token)

    def _use(self, token: str) -> None:
        if token != self._sent:
            self._sent = token
            self._headers_until = 0.0

    @property
    def _certified(self) -> bool:
        return False

    async def _authorization(self) -> str:
        return f"Bearer {self._sent}"
