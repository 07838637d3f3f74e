"""The entry by which API servers ask about changes: added, kept and taken off, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.probes.changewebhook import JudgingReply
from crdkeeper.cluster.resources.changewebhook import COLLECTION, NAME
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

    def has(self, *policies: Any) -> None:
        """Replace the policies that are stored."""
        self.objects[POLICIES] = {"items": [*policies]}

    @property
    def token(self) -> str:
        """The token in the entry; empty without one."""
        found = self.objects[PATH].get("webhooks") or [{"clientConfig": {"service": {"path": ""}}}]
        return str(found[0]["clientConfig"]["service"]["path"]).removeprefix("/changes/")

    async def request(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        """An applied configuration is what is read from then on."""
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
