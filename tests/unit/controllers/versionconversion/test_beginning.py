"""When the webhook's certificate is issued: only once something needs it."""

import asyncio
from typing import Any, cast

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.versionconversion import servingcertificate
from crdkeeper.controllers.versionconversion.beginning import run_conversions
from crdkeeper.core.conversion.target import WebhookAddress
from tests import virtualtime
from tests.unit.builders import policy
from tests.unit.controllers.fakeapi import FakeApi


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
        context = Context(
            client=cast(Any, FakeApi()),
            state=state,
            metrics=OperatorMetrics(),
            identity="me",
            namespace="crdkeeper-system",
            webhook=WebhookAddress("crdkeeper-system", "crdkeeper-webhook"),
            at_once=1,
            settle_seconds=1.0,
        )
        running = asyncio.create_task(run_conversions(context))
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
