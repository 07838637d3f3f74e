"""Who reads and writes the objects of composites: the composer itself, or the ServiceAccounts of revisions.

Nothing is shared between accounts but connections: what one may not do, another one may.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.serviceaccounts import Token, request_token
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.tokenclient import TokenSession, TokenSource
from crdkeeper.controllers.composite.refusing import NoToken, is_namespace_ending, opt_in
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.accounts import ServiceAccount
from crdkeeper.core.composites.plan import CompositePlan
from crdkeeper.core.diagnosis.verdict import Verdict

_log = logging.getLogger(__name__)
_MOST: Final = 1000
"""Accounts whose tokens are kept: those that were used last."""
_AT_ONCE: Final = 4
"""TokenRequests: API servers that do not answer them must not hold up composites without an account."""
_FAILED_SECONDS: Final = 5.0
"""How long a failure counts."""
_FRESH_SECONDS: Final = 10.0
"""A token that is not accepted, and is not older, is not replaced by another one."""
_SHARE: Final = 0.8
"""The part of its life after which a token is replaced."""


@dataclass(frozen=True, slots=True)
class Actor:
    """An account that requests are sent by."""

    client: Client
    rights: KnownRights


class TokensBusy(Exception):
    """As many tokens are being requested as may be at once."""


class Accounts:
    """Finds the actor of a composite. To be used as an async context manager."""

    def __init__(self, client: Client, rights: KnownRights) -> None:
        """Both are the composer's own."""
        self.own = Actor(client, rights)
        self._session = TokenSession(client)
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._known: OrderedDict[ServiceAccount, tuple[_Tokens, Actor]] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.__aexit__(kind, error, trace)

    async def find(self, account: ServiceAccount | None) -> Actor:
        """The actor for an account, with a token; for None, the composer itself.

        Raises NoToken; and TokensBusy if that should be asked for later.
        """
        if account is None:
            return self.own
        known = self._known.get(account)
        if known is None:
            tokens = _Tokens(account, self.own, self._places)
            client = self._session.client(tokens)
            known = tokens, Actor(client, KnownRights(client, account))
            self._known[account] = known
        self._known.move_to_end(account)
        while len(self._known) > _MOST:
            # Who still uses it keeps it until then.
            self._known.popitem(last=False)
        tokens, actor = known
        if tokens.needs_request and (tokens.requests or self._places.locked()):
            raise TokensBusy
        await tokens.token()
        return actor


class _Tokens(TokenSource):
    """The token of one account. Requested when it is needed: an account that nobody uses has none."""

    def __init__(self, account: ServiceAccount, own: Actor, places: asyncio.Semaphore) -> None:
        self._account = account
        self._own = own
        self._places = places
        self._turn = asyncio.Lock()
        self._token: Token | None = None
        self._since = 0.0
        self._failed: tuple[float, NoToken] | None = None
        """In the loop's time, until when a failure counts."""

    @property
    def needs_request(self) -> bool:
        """Whether there is no token until one has been requested."""
        return not self._is_young(1.0) and self._failure() is None

    @property
    def requests(self) -> bool:
        """Whether a token is being requested."""
        return self._turn.locked()

    async def token(self) -> str:
        """One that has not expired. Raises NoToken."""
        if self._token is not None and self._is_young(_SHARE if self._may_renew else 1.0):
            return self._token.value
        async with self._turn:
            if self._token is not None and self._is_young(_SHARE):
                return self._token.value
            try:
                return await self._request()
            except NoToken as error:
                if self._token is not None and self._is_young(1.0) and not error.gone:
                    return self._token.value
                self._token = None
                raise

    async def renew(self, refused: str) -> str:
        """Another one than that, which was not accepted. Raises NoToken."""
        async with self._turn:
            if self._token is not None and self._token.value != refused:
                return self._token.value
            young = self._token is not None and _now() - self._since < _FRESH_SECONDS
            self._token = None
            if young:
                said = f"The API server does not accept a new token of the ServiceAccount {self._account}."
                self._fail(NoToken(Verdict(reasons.FAILED, said)))
            return await self._request()

    @property
    def _may_renew(self) -> bool:
        """Whether another token can be requested at once: nobody waits for that while the old one is good."""
        return not self._turn.locked() and not self._places.locked() and self._failure() is None

    def _is_young(self, share: float) -> bool:
        return self._token is not None and _now() - self._since < share * self._token.seconds

    def _failure(self) -> NoToken | None:
        return self._failed[1] if self._failed is not None and _now() < self._failed[0] else None

    def _fail(self, error: NoToken) -> None:
        self._failed = _now() + _FAILED_SECONDS, error

    async def _request(self) -> str:
        failure = self._failure()
        if failure is not None:
            raise failure.with_traceback(None)
        account = self._account
        try:
            async with self._places:
                began = _now()
                token = await request_token(self._own.client, account.namespace, account.name)
        except (ApiError, Unreachable) as error:
            failure = await self._explained(error)
            self._fail(failure)
            raise failure from None
        self._token, self._since, self._failed = token, began, None
        return token.value

    async def _explained(self, error: ApiError | Unreachable) -> NoToken:
        account = self._account
        what = f"A token of the ServiceAccount {account} cannot be requested"
        if isinstance(error, Unreachable):
            return NoToken(Verdict(reasons.FAILED, f"{what}: {error}"))
        if error.code == 404:
            said = f"There is no ServiceAccount {account.name} in the namespace {account.namespace}."
            remedy = reasons.SERVICE_ACCOUNT_MISSING.remedy
            return NoToken(Verdict(reasons.SERVICE_ACCOUNT_MISSING, f"{said} {remedy}"), gone=True)
        said = f"{what}: {error.message}"
        if is_namespace_ending(error):
            return NoToken(Verdict(reasons.FAILED, said), ending=True)
        if error.code == 403:
            right = Right("create", "", "serviceaccounts", "token", account.name, account.namespace)
            if await self._own.rights.missing([right]):
                remedy = opt_in("", "serviceaccounts/token", ["create"], account.name)
                return NoToken(Verdict(reasons.RIGHT_MISSING, f"{said.rstrip('.')}. {remedy}"))
            return NoToken(Verdict(reasons.REFUSED, said))
        return NoToken(Verdict(reasons.FAILED, said))


def told_instead(planned: CompositePlan, without: NoToken) -> CompositePlan:
    """The plan of a deletion that says with a right that the composer lacks why it needs that."""
    said = "The composer's own rights count, because the account is gone"
    problems = {
        name: Verdict(each.reason, f"{each.message.rstrip('.')}. {said}: {without.verdict.message}")
        if each.reason is reasons.RIGHT_MISSING
        else each
        for name, each in planned.problems.items()
    }
    return replace(planned, problems=problems)


def _now() -> float:
    return asyncio.get_running_loop().time()
