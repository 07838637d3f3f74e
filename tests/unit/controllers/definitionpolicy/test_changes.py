"""The entry by which API servers ask about changes: added, kept and taken off, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.probes.changewebhook import JudgingReply
from crdkeeper.cluster.resources.changewebhook import COLLECTION, NAME, operations_of
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.definitionpolicy import changes
from crdkeeper.controllers.definitionpolicy.changes import BEGINNING, ChangeGuard
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from tests import virtualtime
from tests.unit.builders import policy
from tests.unit.controllers.fakeapi import OURS, FakeApi

POLICIES = f"{OURS}/definitionpolicies"
PATH = f"{COLLECTION}/{NAME}"
TOKEN = "a" * 48
ENTRY = {"name": "changes.crdkeeper.dev", "clientConfig": {"service": {"path": f"/changes/{TOKEN}"}}}
ADDRESS = WebhookAddress("crdkeeper", "crdkeeper-webhook")


class Api(FakeApi):
    """Has the configuration with the entry, and policies."""

    looks = 0
    """At the configuration."""

    def has(self, *policies: Any) -> None:
        """Replace the policies that are stored."""
        self.objects[POLICIES] = {"items": [*policies]}

    @property
    def token(self) -> str:
        """The token in the entry; empty without one."""
        found = self.objects[PATH].get("webhooks") or [{"clientConfig": {"service": {"path": ""}}}]
        return str(found[0]["clientConfig"]["service"]["path"]).removeprefix("/changes/")

    @property
    def operations(self) -> set[str]:
        """What API servers ask about."""
        return operations_of(self.objects[PATH])

    async def request(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        """An applied configuration is what is read from then on."""
        self.looks += method == "GET" and path == PATH
        answer = await super().request(method, path, body, **more)
        if method == "PATCH":
            self.objects[PATH] = {**answer, "metadata": self.objects[PATH]["metadata"]}
        return answer


@pytest.fixture(autouse=True)
def _no_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: Any) -> JudgingReply:
        return JudgingReply("", "there is none")

    monkeypatch.setattr(changes, "ask_about_change", silent)


def play(people: Callable[[ClusterState, Api, ChangeGuard], Awaitable[None]]) -> None:
    """The operator starts while the entry is there."""

    async def main() -> None:
        api, state = Api(), ClusterState()
        metadata = {"name": NAME, "uid": "1", "resourceVersion": "1"}
        api.objects[PATH] = {"metadata": metadata, "webhooks": [ENTRY]}
        api.has()
        guard = ChangeGuard(cast(Client, api), state, ADDRESS, "crdkeeper", lambda: None)
        running = asyncio.create_task(guard.run())
        try:
            await people(state, api, guard)
            assert not running.done()
        finally:
            running.cancel()

    virtualtime.run(main())


@pytest.mark.parametrize("first", ["the certificate", "a policy that wants no entry"])
def test_the_entry_stays_while_policies_are_not_all_heard_of(first: str) -> None:
    async def people(state: ClusterState, api: Api, guard: ChangeGuard) -> None:
        denying = policy("denying", changes="Deny")
        api.has(policy("p").to_object(), denying.to_object())
        state.trust.bundle = "PEM"
        if first == "the certificate":
            state.trust_changed()
        else:
            state.saw(DefinitionPolicy, "p", policy("p"))
        await asyncio.sleep(1.0)
        assert api.token == TOKEN
        state.saw(DefinitionPolicy, "denying", denying)
        await asyncio.sleep(1.0)
        assert api.token == TOKEN
        assert "there is none" in guard.trouble

    play(people)


def test_an_entry_that_no_policy_wants_is_taken_off_at_the_start() -> None:
    async def people(_: ClusterState, api: Api, guard: ChangeGuard) -> None:
        await asyncio.sleep(1.0)
        assert not api.token
        assert guard.trouble == BEGINNING
        await asyncio.sleep(1_000.0)
        assert api.requests == [("PATCH", PATH)]

    play(people)


@pytest.mark.parametrize(
    ("method", "path", "error"),
    [
        ("GET", PATH, Unreachable("no")),
        ("GET", POLICIES, ApiError(500, {"message": "no"})),
        ("PATCH", PATH, ApiError(409, {"message": "no"})),
        ("PATCH", PATH, ApiError(403, {"message": "no"})),
        ("PATCH", PATH, ApiError(503, {"message": "no"})),
    ],
)
def test_an_entry_that_could_not_be_taken_off_is_tried_again(
    method: str, path: str, error: Exception
) -> None:
    async def people(_: ClusterState, api: Api, guard: ChangeGuard) -> None:
        api.failures += [(method, path, error)] * 2
        await asyncio.sleep(1.0)
        assert api.token == TOKEN
        assert guard.trouble != BEGINNING
        await asyncio.sleep(10.0)
        assert not api.token
        assert guard.trouble == BEGINNING

    play(people)


def test_a_policy_that_cannot_be_read_keeps_the_entry() -> None:
    async def people(_: ClusterState, api: Api, guard: ChangeGuard) -> None:
        api.has({"metadata": {"name": "newer"}, "spec": {"changes": "Tomorrow"}})
        await asyncio.sleep(100.0)
        assert api.token == TOKEN
        assert "DefinitionPolicy" in guard.trouble
        api.has()
        await asyncio.sleep(100.0)
        assert not api.token

    play(people)


def test_an_api_server_that_does_not_know_the_kind_keeps_the_entry() -> None:
    async def people(_: ClusterState, api: Api, guard: ChangeGuard) -> None:
        api.failures += [("GET", POLICIES, ApiError(404, {"message": "no"}))] * 5
        await asyncio.sleep(10.0)
        assert not api.requests
        assert "know DefinitionPolicies" in guard.trouble
        await asyncio.sleep(10.0)
        assert not api.token
        assert guard.trouble == BEGINNING

    play(people)


@pytest.mark.parametrize("missing", ["the configuration", "the right to read it"])
def test_without_a_policy_nothing_is_missing(missing: str) -> None:
    async def people(_: ClusterState, api: Api, guard: ChangeGuard) -> None:
        if missing == "the configuration":
            del api.objects[PATH]
        else:
            api.failures.append(("GET", PATH, ApiError(403, {"message": "no"})))
        await asyncio.sleep(100.0)
        assert guard.trouble == BEGINNING
        assert not api.requests

    play(people)


DENY = {"deletion": "Deny"}
PROTECTING = policy("protecting", protection=DENY)


def test_deletions_are_asked_about_while_a_policy_protects() -> None:
    async def people(state: ClusterState, api: Api, guard: ChangeGuard) -> None:
        async def has(*policies: DefinitionPolicy) -> set[str]:
            api.has(*(each.to_object() for each in policies))
            for each in policies:
                state.saw(DefinitionPolicy, each.metadata.name, each)
            for name in state.of(DefinitionPolicy).keys() - {each.metadata.name for each in policies}:
                state.saw(DefinitionPolicy, name, None)
            await asyncio.sleep(2.0)
            return api.operations

        state.trust.bundle = "PEM"
        denying = policy("denying", changes="Deny")
        assert await has(policy("idle")) == set()
        assert await has(PROTECTING) == {"UPDATE", "DELETE"}
        assert await has(PROTECTING, denying) == {"CREATE", "UPDATE", "DELETE"}
        assert await has(denying) == {"CREATE", "UPDATE"}
        assert await has(PROTECTING) == {"UPDATE", "DELETE"}
        assert await has() == set()
        assert not api.token

    play(people)


def test_what_is_asked_about_stays_while_policies_are_not_all_heard_of() -> None:
    async def people(state: ClusterState, api: Api, guard: ChangeGuard) -> None:
        denying = policy("denying", changes="Deny")
        api.has(PROTECTING.to_object(), denying.to_object())
        state.trust.bundle = "PEM"
        for each in (denying, PROTECTING):
            state.saw(DefinitionPolicy, each.metadata.name, each)
        await asyncio.sleep(100.0)
        written = len(api.requests)
        # As another leader that has heard of one of them.
        for other in (denying, PROTECTING):
            state.saw(DefinitionPolicy, other.metadata.name, None)
            await asyncio.sleep(100.0)
            assert api.operations == {"CREATE", "UPDATE", "DELETE"}
            state.saw(DefinitionPolicy, other.metadata.name, other)
            await asyncio.sleep(100.0)
        assert len(api.requests) == written

    play(people)


@pytest.mark.parametrize(
    ("first", "before", "asked"),
    [
        (PROTECTING, policy("newer", changes="Deny"), {"CREATE", "UPDATE", "DELETE"}),
        (policy(changes="Deny"), policy("newer", protection=DENY), {"CREATE", "UPDATE", "DELETE"}),
        (policy(changes="Deny"), policy("newer"), {"CREATE", "UPDATE"}),
    ],
    ids=["judged", "protected", "neither"],
)
def test_what_a_policy_may_want_that_cannot_be_read_is_asked_about(
    first: DefinitionPolicy, before: DefinitionPolicy, asked: set[str]
) -> None:
    async def people(state: ClusterState, api: Api, guard: ChangeGuard) -> None:
        state.trust.bundle = "PEM"
        for each in (first, before):
            state.saw(DefinitionPolicy, each.metadata.name, each)
        await asyncio.sleep(2.0)
        assert api.operations == asked
        newer = {"metadata": {"name": "newer"}, "spec": {"changes": "Tomorrow"}}
        api.has(first.to_object(), newer)
        state.saw(DefinitionPolicy, "newer", None)
        await asyncio.sleep(100.0)
        assert api.operations == asked
        assert "there is none" in guard.trouble

    play(people)


@pytest.mark.parametrize("missing", ["the configuration", "the right to read it"])
def test_protection_does_without_the_webhook(missing: str) -> None:
    """It is looked for once a minute: somebody may apply manifests/changes later."""

    async def people(state: ClusterState, api: Api, guard: ChangeGuard) -> None:
        found = api.objects[PATH]
        if missing == "the configuration":
            del api.objects[PATH]
        else:
            api.failures += [("GET", PATH, ApiError(403, {"message": "no"}))] * 20
        state.saw(DefinitionPolicy, "protecting", PROTECTING)
        await asyncio.sleep(605.0)
        assert 10 <= api.looks <= 13
        assert not api.requests
        # Nobody pays for a certificate that nobody needs.
        assert not state.trust.wanted
        api.failures.clear()
        api.objects[PATH] = {**found, "webhooks": []}
        await asyncio.sleep(65.0)
        assert state.trust.wanted
        state.trust.bundle = "PEM"
        state.trust_changed()
        await asyncio.sleep(2.0)
        assert api.operations == {"UPDATE", "DELETE"}

    play(people)


def test_a_certificate_that_is_not_known_yet_is_no_result() -> None:
    issuing = "the webhook's certificate is being issued"

    async def people(state: ClusterState, _: Api, guard: ChangeGuard) -> None:
        state.saw(DefinitionPolicy, "p", policy(changes="Deny"))
        await asyncio.sleep(10.0)
        assert (guard.trouble, guard.looked) == (issuing, False)
        state.trust.bundle = "ca"
        await asyncio.sleep(10.0)
        assert guard.looked and guard.trouble.endswith("does not respond: there is none")
        # One that is lost later is a result.
        state.trust.bundle = None
        await asyncio.sleep(10.0)
        assert (guard.trouble, guard.looked) == (issuing, True)

    play(people)
