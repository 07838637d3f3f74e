"""The policies and the token that the webhook knows of a cluster, in virtual time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import orjson
import pytest

from crdkeeper.cluster.resources.changewebhook import NAME, wanted_entry
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.webhook.changes.clusterpolicies import ClusterPolicies
from tests import virtualtime
from tests.unit.builders import policy

POLICIES = "/apis/crdkeeper.dev/v1alpha1/definitionpolicies"
TOKEN = "a" * 48
ENTRY = wanted_entry(
    WebhookAddress(url="https://w"), "", TOKEN, "crdkeeper-system", judging=False, protecting=True
)
CONFIGURATION = {"metadata": {"name": NAME, "resourceVersion": "1"}, "webhooks": [ENTRY]}
DENY = {"deletion": "Deny"}
FORBIDDEN = ApiError(403, {"message": "forbidden"})
UNKNOWN = ApiError(404, {"message": "the server could not find the requested resource"})
Json = dict[str, Any]


def stored(name: str, version: int = 1, **spec: Any) -> Json:
    found = policy(name, **spec).to_object()
    found["metadata"]["resourceVersion"] = str(version)
    return found


class Cluster:
    """An API server with policies and the entry, at the level of the client's requests."""

    def __init__(self, *policies: Json) -> None:
        self.policies = list(policies)
        self.away: Exception | None = None
        self.tells: asyncio.Queue[Json | Exception] = asyncio.Queue()
        self.breaks: asyncio.Queue[Json | Exception] = asyncio.Queue()
        """The watch of the entry."""

    async def request(self, method: str, path: str) -> Json:
        if self.away is not None:
            raise self.away
        items = self.policies if path.startswith(POLICIES) else [CONFIGURATION]
        return {"metadata": {"resourceVersion": "5"}, "items": items}

    async def lines(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        if self.away is not None:
            raise self.away
        while True:
            told = await (self.tells if path.startswith(POLICIES) else self.breaks).get()
            if isinstance(told, Exception):
                raise told
            yield orjson.dumps(told)

    def restart(self, away: Exception) -> None:
        """Break the watches; then answer all requests so."""
        self.away = away
        for each in (self.tells, self.breaks):
            each.put_nowait(Unreachable("it restarts"))

    def play(self, story: Callable[[ClusterPolicies, list[str]], Coroutine[Any, Any, None]]) -> None:
        """Follow this while the story is told; it gets what was told of changes."""

        async def main() -> None:
            policies, told = ClusterPolicies(Connection()), list[str]()
            policies._client = cast(Client, self)
            running = asyncio.create_task(policies.run(lambda: told.append("changed")))
            await asyncio.sleep(1.0)
            try:
                await story(policies, told)
                assert not running.done()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        virtualtime.run(main())


def names(policies: ClusterPolicies) -> list[str]:
    return [each["metadata"]["name"] for each in json.loads(policies.content or b"[]")]


def test_those_that_judge_or_protect_are_known() -> None:
    cluster = Cluster(
        stored("idle"), stored("judging", changes="Warn"), stored("protecting", protection=DENY)
    )

    async def story(policies: ClusterPolicies, _: list[str]) -> None:
        assert names(policies) == ["judging", "protecting"]
        assert (policies.judging, policies.protecting) == (True, True)
        assert policies.admits(TOKEN)
        gone = {"type": "DELETED", "object": cluster.policies[1]}
        cluster.tells.put_nowait(gone)
        await asyncio.sleep(1.0)
        assert names(policies) == ["protecting"]
        assert (policies.judging, policies.protecting) == (False, True)
        cluster.tells.put_nowait({"type": "MODIFIED", "object": stored("protecting", 9)})
        await asyncio.sleep(1.0)
        assert (policies.content, policies.protecting) == (b"", False)

    cluster.play(story)


def test_a_new_status_is_no_news() -> None:
    """The operator writes one whenever a CRD comes or goes."""
    cluster = Cluster(stored("p", protection=DENY))

    async def story(policies: ClusterPolicies, told: list[str]) -> None:
        before = policies.content
        assert told == ["changed"]
        found = stored("p", 9, protection=DENY)
        found["status"] = {"protected": 7}
        cluster.tells.put_nowait({"type": "MODIFIED", "object": found})
        await asyncio.sleep(1.0)
        assert told == ["changed"]
        assert policies.content is before

    cluster.play(story)


@pytest.mark.parametrize("answer", [FORBIDDEN, UNKNOWN], ids=["403", "404"])
def test_an_api_server_that_starts_takes_nothing_away(answer: ApiError) -> None:
    """It knows neither rights nor kinds yet, and that is when deletions would pass."""
    cluster = Cluster(stored("p", protection=DENY))

    async def story(policies: ClusterPolicies, _: list[str]) -> None:
        cluster.restart(answer)
        for _second in range(25):
            await asyncio.sleep(1.0)
            assert names(policies) == ["p"]
            assert policies.admits(TOKEN)
        cluster.away = None
        await asyncio.sleep(60.0)
        assert names(policies) == ["p"]
        # Later ones do not count together with those before.
        cluster.restart(answer)
        await asyncio.sleep(25.0)
        assert names(policies) == ["p"]
        assert policies.admits(TOKEN)

    cluster.play(story)


@pytest.mark.parametrize("answer", [FORBIDDEN, UNKNOWN], ids=["403", "404"])
def test_rights_and_kinds_that_stay_away_are_gone(answer: ApiError) -> None:
    cluster = Cluster(stored("p", protection=DENY))

    async def story(policies: ClusterPolicies, told: list[str]) -> None:
        cluster.restart(answer)
        await asyncio.sleep(60.0)
        assert names(policies) == []
        assert not policies.admits(TOKEN)
        assert told == ["changed", "changed"]
        cluster.away = None
        await asyncio.sleep(60.0)
        assert names(policies) == ["p"]

    cluster.play(story)


def test_each_start_of_an_api_server_has_its_time() -> None:
    """It crashes, and is away for longer than policies are kept that one says are gone."""
    cluster = Cluster(stored("p", protection=DENY))

    async def story(policies: ClusterPolicies, _: list[str]) -> None:
        cluster.restart(UNKNOWN)
        for away in (Unreachable("no"), FORBIDDEN, Unreachable("no"), UNKNOWN):
            await asyncio.sleep(5.0)
            assert names(policies) == ["p"]
            assert policies.admits(TOKEN)
            cluster.away = away
            await asyncio.sleep(60.0 if isinstance(away, Unreachable) else 15.0)
        assert names(policies) == ["p"]
        assert policies.admits(TOKEN)
        await asyncio.sleep(60.0)
        assert names(policies) == []

    cluster.play(story)


def test_an_api_server_that_is_away_takes_nothing_away() -> None:
    cluster = Cluster(stored("p", protection=DENY))

    async def story(policies: ClusterPolicies, _: list[str]) -> None:
        cluster.restart(Unreachable("no"))
        await asyncio.sleep(3_600.0)
        assert names(policies) == ["p"]

    cluster.play(story)


def test_what_cannot_be_read_takes_no_protection_away() -> None:
    """After a downgrade: the API server goes on to protect by the policy, and so does the webhook."""
    newer, odd = stored("newer", protection=DENY), stored("odd")
    newer["spec"]["changes"], odd["spec"]["protection"] = "Tomorrow", {"deletion": "Perhaps"}
    newer["status"] = {"protected": "all"}
    cluster = Cluster(newer, odd)

    async def story(policies: ClusterPolicies, _: list[str]) -> None:
        assert names(policies) == ["newer"]
        assert (policies.judging, policies.protecting) == (False, True)

    cluster.play(story)
