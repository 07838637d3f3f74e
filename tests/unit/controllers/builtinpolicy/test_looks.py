"""How often API servers are asked: once for all policies, for metrics rarely while nobody encrypts."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Any, cast

import pytest

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.builtinpolicy import looks
from crdkeeper.controllers.builtinpolicy.looks import SharedLooks, looking
from crdkeeper.core.builtins.view import EncryptedBy, ServerAnswer, View, server_hash
from crdkeeper.core.migration.observation import ApiServerLease
from tests import virtualtime
from tests.unit.builders import lease
from tests.unit.controllers.fakeapi import FakeApi
from tests.unit.core.builtins.builders import builtin_policy, view


class Counted(SharedLooks):
    """Remembers what each look was about."""

    def __init__(self) -> None:
        self.asked: list[set[str]] = []
        super().__init__(self._count)

    async def _count(self, patterns: Collection[str]) -> View:
        self.asked.append(set(patterns))
        return view("a")


def of(name: str, *resources: str, generation: int = 1) -> BuiltinPolicy:
    policy = builtin_policy(name, resources=list(resources))
    policy.metadata.generation = generation
    return policy


A, B = of("a", "secrets"), of("b", "*.apps")


def test_policies_share_a_look() -> None:
    async def main() -> None:
        shared = Counted()
        await shared.view(A, [A, B], 10.0)
        await shared.view(B, [A, B], 10.0)
        for _ in range(5):
            await asyncio.sleep(2.0)
            await shared.view(A, [A, B], 10.0)
            await shared.view(B, [A, B], 10.0)
        assert shared.asked == [{"secrets", "*.apps"}]
        await asyncio.sleep(0.1)
        await shared.view(B, [A, B], 10.0)
        await shared.view(A, [A, B], 10.0)
        assert len(shared.asked) == 2

    virtualtime.run(main())


@pytest.mark.parametrize(
    ("policy", "others"),
    [
        (of("b", "*.apps"), [A]),
        (of("a", "secrets", generation=2), [A]),
    ],
    ids=["a resource that was not asked for", "a new generation"],
)
def test_a_view_that_is_not_enough_is_not_shared(
    policy: BuiltinPolicy, others: Sequence[BuiltinPolicy]
) -> None:
    async def main() -> None:
        shared = Counted()
        await shared.view(A, [A], 10.0)
        await asyncio.sleep(1.0)
        await shared.view(policy, others, 10.0)
        assert len(shared.asked) == 2
        await shared.view(policy, others, 10.0)
        assert len(shared.asked) == 2

    virtualtime.run(main())


def test_a_view_from_before_a_moment_is_not_used() -> None:
    async def main() -> None:
        shared = Counted()
        await shared.view(A, [], 10.0)
        await asyncio.sleep(3.0)
        await shared.view(A, [], 3.0)
        assert len(shared.asked) == 1
        await shared.view(A, [], 2.9)
        assert len(shared.asked) == 2

    virtualtime.run(main())


def test_a_policy_that_comes_again_is_looked_at_again() -> None:
    async def main() -> None:
        shared = Counted()
        await shared.view(A, [], 10.0)
        shared.forget("a")
        await asyncio.sleep(1.0)
        await shared.view(A, [], 10.0)
        assert len(shared.asked) == 2

    virtualtime.run(main())


class Servers:
    """API servers with these Leases and this configuration; remembers when their metrics were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leases: list[ApiServerLease] | None = [lease("a")]
        self.configuration: EncryptedBy | None = EncryptedBy("", "")
        self.reached = [[""]]
        """By look, the last one for all after it: the addresses to which the connections lead."""
        self.encrypting: dict[str, EncryptedBy] = {}
        """By address, instead of `configuration`."""
        self.read: list[float] = []
        monkeypatch.setattr(looks, "list_leases", self._leases)
        monkeypatch.setattr(looks, "list_builtin_versions", self._versions)
        monkeypatch.setattr(looks, "ask_all", self._ask)

    async def _leases(self, _: Client) -> list[ApiServerLease] | None:
        return self.leases

    async def _versions(self, _: Client) -> list[tuple[str, str]]:
        return [("", "v1")]

    async def _ask(self, *_: Any, metrics: bool) -> list[ServerAnswer]:
        if metrics:
            self.read.append(asyncio.get_running_loop().time())
        addresses = self.reached.pop(0) if len(self.reached) > 1 else self.reached[0]
        plain = EncryptedBy("", "")
        return [
            ServerAnswer(
                [],
                self.encrypting.get(each, self.configuration) if metrics else plain,
                address=each,
                has_metric=metrics,
            )
            for each in addresses
        ]

    async def watch(self, times: int) -> list[View]:
        """Look that many times, every 30 s."""
        look = looking(cast(Client, FakeApi()))
        views = []
        for _ in range(times):
            views.append(await look(["secrets"]))
            await asyncio.sleep(30.0)
        return views


def test_metrics_without_a_configuration_are_read_every_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers(monkeypatch)
    virtualtime.run(servers.watch(21))
    assert servers.read == [0.0, 300.0, 600.0]


@pytest.mark.parametrize("configuration", [EncryptedBy("sha256:1", "abc"), None])
def test_metrics_with_one_and_unread_ones_are_read_by_each_look(
    monkeypatch: pytest.MonkeyPatch, configuration: EncryptedBy | None
) -> None:
    servers = Servers(monkeypatch)
    servers.configuration = configuration
    virtualtime.run(servers.watch(4))
    assert servers.read == [0.0, 30.0, 60.0, 90.0]


def test_metrics_of_a_new_api_server_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers(monkeypatch)
    servers.reached = [["a:1"], ["a:1"], ["a:1", "b:1"]]

    async def main() -> None:
        watching = asyncio.create_task(servers.watch(4))
        await asyncio.sleep(45.0)
        servers.leases = [lease("a"), lease("b")]
        await watching

    virtualtime.run(main())
    assert servers.read == [0.0, 60.0]


def test_a_look_that_missed_an_api_server_is_followed_by_one_at_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A balancer may lead all connections to the server that does not encrypt."""
    servers = Servers(monkeypatch)
    servers.leases = [lease("a"), lease("b")]
    servers.encrypting = {"b:1": EncryptedBy(server_hash("b"), "x")}
    servers.reached = [["a:1"] * 8, ["a:1", "b:1"]]
    views = virtualtime.run(servers.watch(3))
    assert servers.read == [0.0, 30.0, 60.0]
    assert [each.unencrypted for each in views] == [False] * 3
    assert [each.configuration() for each in views[1:]] == ["none,x"] * 2


def test_that_nobody_encrypts_is_known_from_metrics_only(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers(monkeypatch)
    servers.leases = [lease("a"), lease("b")]
    servers.reached = [["a:1", "b:1"]]
    views = virtualtime.run(servers.watch(3))
    assert (servers.read, [each.unencrypted for each in views]) == ([0.0], [True] * 3)
