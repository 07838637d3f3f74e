"""One operator process: what it does when a task of its work ends."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from crdkeeper import process
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.controllers.definitionreport.controller import DefinitionReports
from crdkeeper.core.conversion.target import WebhookAddress
from tests.unit.cluster.transport.localserver import json, kubeconfig, serving

LEASE = {"metadata": {"resourceVersion": "1"}, "spec": {}, "items": []}


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kopf's part, which here only waits for its end."""

    async def operator(*, stop_flag: asyncio.Event, ready_flag: asyncio.Event, **_: Any) -> None:
        ready_flag.set()
        await stop_flag.wait()

    monkeypatch.setattr("kopf.operator", operator)


@pytest.mark.parametrize("end", [ConfigurationError("no token"), None], ids=["an error", "a return"])
async def test_a_task_that_ends_ends_the_process(
    tmp_path: Path,
    watches: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    end: Exception | None,
) -> None:
    async def run(_: object) -> None:
        if end is not None:
            raise end

    monkeypatch.setattr(DefinitionReports, "run", run)
    seen: list[tuple[bool, str]] = []
    broke = process.Health.broke

    def noted(health: process.Health, what: str) -> None:
        broke(health, what)
        seen.append(health.ready())

    monkeypatch.setattr(process.Health, "broke", noted)
    async with serving(json(LEASE)) as server:
        options = process.OperatorOptions(
            Connection(kubeconfig(tmp_path, server.url)),
            namespace="crdkeeper-system",
            identity="me",
            webhook=WebhookAddress("crdkeeper-system", "crdkeeper-webhook"),
            host="127.0.0.1",
            port=0,
        )
        with caplog.at_level(logging.ERROR):
            assert await asyncio.wait_for(process.run_operator(options), 30.0) == 1
    ((ready, says),) = seen
    assert not ready
    assert says.startswith("reports: ")
    assert "reports: " in caplog.text
