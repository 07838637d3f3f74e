"""When the webhook's certificate is issued: only once something needs it."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.versionconversion import servingcertificate
from crdkeeper.controllers.versionconversion.beginning import run_conversions
from crdkeeper.core.conversion.target import WebhookAddress
from tests import virtualtime
from tests.unit.builders import policy
from tests.unit.controllers.fakeapi import FakeApi


def context_of(api: FakeApi, state: ClusterState) -> Context:
    return Context(
        client=cast(Any, api),
        state=state,
        metrics=OperatorMetrics(),
        identity="me",
        namespace="crdkeeper-system",
        webhook=WebhookAddress("crdkeeper-system", "crdkeeper-webhook"),
        at_once=1,
        settle_seconds=1.0,
    )


@pytest.mark.parametrize("first", ["the watch", "the need"])
def test_a_policy_needs_it_only_where_api_servers_are_to_ask(
    monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    issued: list[str] = []

    class Certificate:
        def __init__(self, *_: object, **__: object) -> None:
            self.wake = lambda: None

        async def run(self) -> None:
            issued.append("issued")
            await asyncio.Event().wait()

    monkeypatch.setattr(servingcertificate, "ServingCertificate", Certificate)

    async def main() -> None:
        state = ClusterState()
        state.trust.wanted = first == "the need"
        running = asyncio.create_task(run_conversions(context_of(FakeApi(), state)))
        await asyncio.sleep(1.0)
        assert bool(issued) is (first == "the need")
        for each in (policy("a", protection={"deletion": "Deny"}), policy("b", changes="Deny")):
            state.saw(DefinitionPolicy, each.metadata.name, each)
        await asyncio.sleep(1.0)
        assert bool(issued) is (first == "the need")
        state.trust.wanted = True
        state.trust_changed()
        await asyncio.sleep(1.0)
        assert issued
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    virtualtime.run(main())


def test_policies_learn_why_there_is_no_certificate_until_there_is_one() -> None:
    refused = "secrets is forbidden: quota exceeded"
    forbids = True

    class Api(FakeApi):
        async def request(self, method: str, path: str, *arguments: Any, **options: Any) -> dict[str, Any]:
            if forbids and method != "GET" and "/secrets" in path:
                raise ApiError(403, {"message": refused})
            return await super().request(method, path, *arguments, **options)

    async def main() -> None:
        nonlocal forbids
        state = ClusterState()
        state.trust.wanted = True
        running = asyncio.create_task(run_conversions(context_of(Api(), state)))
        await asyncio.sleep(10.0)
        assert state.trust.bundle is None
        assert refused in state.trust.problem
        forbids = False
        await asyncio.sleep(120.0)
        assert state.trust.bundle is not None
        assert refused not in state.trust.problem
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    virtualtime.run(main())
