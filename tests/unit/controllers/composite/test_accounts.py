"""Tokens of ServiceAccounts, in virtual time: requested when needed, renewed, and never for others."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import pytest

from crdkeeper.cluster.transport.client import Answer, ApiError, Client, Unreachable
from crdkeeper.cluster.transport.requestids import RequestIds
from crdkeeper.controllers.composite.accounts import _MOST, Accounts, TokensBusy
from crdkeeper.controllers.composite.refusing import NoToken
from crdkeeper.controllers.rights import KnownRights
from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.accounts import ServiceAccount
from tests import virtualtime

ENDING: Final = {
    "reason": "Forbidden",
    "message": "unable to create new content in namespace shop because it is being terminated",
    "details": {"causes": [{"reason": "NamespaceTerminating"}]},
}
PATH: Final = "/api/v1/namespaces/shop/configmaps"


class Headers(dict[str, str]):
    """Of an answer."""


class Response:
    """The answer to a request by a token."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers = Headers()
        self.content = self

    async def __aenter__(self) -> "Response":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def iter_any(self) -> Any:
        yield b"{}"


class Server:
    """An API server that gives tokens, and the session by which they are used."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.used: list[str] = []
        self.refused: set[str] = set()
        self.error: Exception | None = None
        self.hangs = False
        self.seconds = 3600.0
        self.allowed = True
        self.sessions = 0
        self.host = "https://example.com"
        self.connection = self
        self.renewals = 0
        self.fence = None
        self._ids = RequestIds()

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=asyncio.get_running_loop().time())

    async def send(self, *_: Any, **__: Any) -> Answer:
        raise AssertionError("nothing is sent with the composer's own rights")

    async def request_token(self, path: str) -> dict[str, Any]:
        self.requested.append(path)
        if self.hangs:
            await asyncio.sleep(3600.0)
        if self.error is not None:
            raise self.error
        until = self.now() + timedelta(seconds=self.seconds)
        token = f"token-{len(self.requested)}"
        return {"status": {"token": token, "expirationTimestamp": until.isoformat()}}

    async def request_right(self, body: Any) -> dict[str, Any]:
        of = body["spec"]["resourceAttributes"]
        assert (of["resource"], of["subresource"], of["verb"]) == ("serviceaccounts", "token", "create")
        return {"status": {"allowed": self.allowed}}

    async def own(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        return await (self.request_token(path) if path.endswith("/token") else self.request_right(body))

    def session(self, *, fence: Any, anonymous: bool) -> "Server":
        assert anonymous
        self.sessions += 1
        return self

    async def close(self) -> None:
        self.sessions -= 1

    def request(self, method: str, path: Any, *rest: Any, headers: Any = None, **more: Any) -> Any:
        if headers is None:
            return self.own(method, path, *rest, **more)
        scheme, _, token = headers["Authorization"].partition(" ")
        assert scheme == "Bearer"
        self.used.append(token)
        return Response(401 if token in self.refused else 200)


def play(people: Callable[[Server, Accounts], Awaitable[None]]) -> None:
    """People use the accounts."""

    async def main() -> None:
        # Virtual time begins at 0, which for some caches is long ago.
        await asyncio.sleep(1000.0)
        server = Server()
        client = cast(Client, server)
        async with Accounts(client, KnownRights(client)) as accounts:
            await people(server, accounts)
        assert server.sessions == 0

    virtualtime.run(main())


BUILDER: Final = ServiceAccount("shop", "builder")


def test_a_token_is_renewed_before_it_ends() -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        assert (await accounts.find(None)).client is cast(Client, server)
        actor = await accounts.find(BUILDER)
        assert server.requested == ["/api/v1/namespaces/shop/serviceaccounts/builder/token"]
        for _ in range(40):
            assert await accounts.find(BUILDER) is actor
            await actor.client.send("GET", PATH)
            await asyncio.sleep(100.0)
        assert server.used[0] == "token-1" and server.used[-1] == "token-2"
        assert len(server.requested) == 2
        server.error = ApiError(500, {"message": "broken"})
        await asyncio.sleep(2000.0)
        # The old one is good for some minutes more.
        await actor.client.send("GET", PATH)
        assert server.used[-1] == "token-2"
        await asyncio.sleep(1000.0)
        with pytest.raises(NoToken, match="broken"):
            await actor.client.send("GET", PATH)
        server.error = None
        await asyncio.sleep(6.0)
        await actor.client.send("PATCH", PATH)

    play(people)


def test_a_token_that_is_not_accepted_is_replaced_once() -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        actor = await accounts.find(BUILDER)
        await actor.client.send("PATCH", PATH)
        await asyncio.sleep(60.0)
        server.refused = {"token-1"}
        answer = await actor.client.send("PATCH", PATH)
        assert (answer.code, server.used) == (200, ["token-1", "token-1", "token-2"])
        await asyncio.sleep(60.0)
        server.refused = {f"token-{each}" for each in range(10)}
        with pytest.raises(NoToken, match="does not accept a new token") as raised:
            await actor.client.request("GET", PATH)
        assert raised.value.verdict.reason is reasons.FAILED and not raised.value.gone
        assert len(server.requested) == 3
        # Not the composer's own credentials, whatever happens.
        assert set(server.used) <= server.refused

    play(people)


@pytest.mark.parametrize(
    ("error", "allowed", "reason", "gone", "ending"),
    [
        (ApiError(404, {"message": "not found"}), True, reasons.SERVICE_ACCOUNT_MISSING, True, False),
        (ApiError(403, ENDING), True, reasons.FAILED, True, True),
        (ApiError(403, {"message": "not you"}), False, reasons.RIGHT_MISSING, False, False),
        (ApiError(403, {"message": "a webhook says no"}), True, reasons.REFUSED, False, False),
        (ApiError(429, {"message": "slow down"}), True, reasons.FAILED, False, False),
        (Unreachable("cut"), True, reasons.FAILED, False, False),
    ],
    ids=str,
)
def test_why_there_is_no_token(
    error: Exception, allowed: bool, reason: Any, gone: bool, ending: bool
) -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        server.error, server.allowed = error, allowed
        for _ in range(3):
            with pytest.raises(NoToken) as raised:
                await accounts.find(BUILDER)
        found = raised.value
        assert (found.verdict.reason, found.gone, found.ending) == (reason, gone, ending)
        assert "builder" in found.verdict.message
        # Many composites ask for the same.
        assert len(server.requested) == 1
        server.error = None
        await asyncio.sleep(6.0)
        await accounts.find(BUILDER)

    play(people)


def test_an_account_that_is_gone_is_not_acted_for_by_an_old_token() -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        actor = await accounts.find(BUILDER)
        await asyncio.sleep(60.0)
        server.refused, server.error = {"token-1"}, ApiError(404, {"message": "not found"})
        with pytest.raises(NoToken) as raised:
            await actor.client.request("GET", PATH)
        assert raised.value.gone and server.used == ["token-1"]
        with pytest.raises(NoToken):
            await accounts.find(BUILDER)
        assert server.used == ["token-1"]

    play(people)


def test_requests_that_hang_hold_up_few() -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        server.hangs = True

        async def find(number: int) -> str:
            try:
                await accounts.find(ServiceAccount("shop", f"a{number % 50}"))
            except TokensBusy:
                return "busy"
            except NoToken as error:
                return str(error)
            return ""

        began = asyncio.get_running_loop().time()
        found = await asyncio.gather(*(find(each) for each in range(100)))
        assert found.count("busy") == 96 and sum("within 10 seconds" in each for each in found) == 4
        assert asyncio.get_running_loop().time() - began <= 10.0
        assert (await accounts.find(None)).rights.account is None

    play(people)


def test_a_token_that_is_still_good_is_used_while_others_cannot_be_requested() -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        actor = await accounts.find(BUILDER)
        await asyncio.sleep(3000.0)
        server.hangs = True

        async def use() -> float:
            began = asyncio.get_running_loop().time()
            await (await accounts.find(BUILDER)).client.send("GET", PATH)
            return asyncio.get_running_loop().time() - began

        # One tries, until its request is given up. Others use the token meanwhile, and while that counts.
        waited = [asyncio.create_task(use()) for _ in range(20)]
        assert sorted(await asyncio.gather(*waited)) == [*[0.0] * 19, pytest.approx(10.0)]
        assert await use() == 0.0
        # Nor does it wait for those of other accounts.
        others = [ServiceAccount("shop", f"a{each}") for each in range(4)]
        finding = [asyncio.create_task(accounts.find(each)) for each in others]
        await asyncio.sleep(9.0)
        assert await use() == 0.0 and set(server.used) == {"token-1"}
        await asyncio.gather(*finding, return_exceptions=True)
        server.hangs = False
        await asyncio.sleep(6.0)
        assert await accounts.find(BUILDER) is actor
        await use()
        assert server.used[-1] == f"token-{len(server.requested)}" != "token-1"

    play(people)


def test_accounts_are_bounded_and_share_one_session() -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        actors = [
            await accounts.find(ServiceAccount(f"space{each}", "builder")) for each in range(_MOST + 500)
        ]
        assert server.sessions == 1 and len(accounts._known) == _MOST
        # What has dropped out is asked for again, and what is used stays.
        await accounts.find(ServiceAccount("space0", "builder"))
        assert len(server.requested) == _MOST + 501
        assert await accounts.find(ServiceAccount(f"space{_MOST + 499}", "builder")) is actors[-1]
        # What one may not do says nothing of others.
        assert len({id(each.rights) for each in actors}) == len(actors)

    play(people)


def test_a_token_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def people(server: Server, accounts: Accounts) -> None:
        await accounts.find(BUILDER)
        (tokens, _), *_ = accounts._known.values()
        assert tokens._token is not None and "token-1" not in repr(tokens._token)

        async def odd(path: str) -> dict[str, Any]:
            return {"status": {"token": "sec\nret", "expirationTimestamp": "never"}}

        server.request_token = odd  # type: ignore[method-assign]
        with pytest.raises(NoToken) as raised:
            await accounts.find(ServiceAccount("shop", "other"))
        assert "sec" not in str(raised.value)

    caplog.set_level(0)
    play(people)
    assert "token-1" not in caplog.text and "sec\nret" not in caplog.text
