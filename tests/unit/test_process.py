"""One operator process: what it does when one of its tasks ends."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from crdkeeper import process
from crdkeeper.api.kinds import KINDS
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.cluster.transport.lease import Lease
from crdkeeper.controllers.definitionreport.controller import DefinitionReports
from crdkeeper.controllers.registry import CONTROLLERS
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.handlers import operator_settings
from tests.unit.builders import crd, policy
from tests.unit.cluster.transport.leasestore import LeaseStore
from tests.unit.cluster.transport.localserver import json, kubeconfig, serving
from tests.unit.scripting import apiserver as threads

LEASE = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": "me"}, "items": []}
CRDS = "customresourcedefinitions"


def group(name: str, version: str) -> dict[str, Any]:
    """What /apis says of a group."""
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


def resources(*plurals: str) -> dict[str, Any]:
    """What discovery says of a version of a group."""
    verbs = ["get", "list", "watch", "patch"]
    return {
        "resources": [
            {"name": each, "singularName": each, "kind": each, "namespaced": False, "verbs": verbs}
            for each in plurals
        ]
    }


ANSWERS = {
    "/api": {"versions": ["v1"]},
    "/api/v1": resources("namespaces", "events"),
    "/apis": {"groups": [group("apiextensions.k8s.io", "v1"), group("crdkeeper.dev", "v1alpha1")]},
    "/apis/apiextensions.k8s.io/v1": resources(CRDS),
    "/apis/crdkeeper.dev/v1alpha1": resources(*(each.plural for each in KINDS)),
}


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
        with caplog.at_level(logging.ERROR):
            assert await run_operator(tmp_path, server.url) == 1
    ((ready, says),) = seen
    assert not ready
    assert says.startswith("reports: ")
    assert "reports: " in caplog.text


@pytest.mark.parametrize(
    ("code", "cause"), [(401, "Ran out of valid credentials"), (403, "not for you"), (404, "not for you")]
)
async def test_a_refused_watch_ends_the_process_by_its_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, code: int, cause: str
) -> None:
    settings = operator_settings()
    settings.networking.error_backoffs = [0.01]  # Kopf's own retry of a 403 takes a minute
    monkeypatch.setattr("crdkeeper.process.operator_settings", lambda: settings)
    with threads.serving(refusing("storagemigrations", code)) as server, caplog.at_level(logging.INFO):
        assert await run_operator(tmp_path, server.url) == 1
    ended = [each for each in caplog.messages if each.startswith("The watches ended, exiting")]
    assert len(ended) == 1
    assert cause in ended[0]


async def test_nothing_is_written_once_leadership_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policies and reports have more to write than they write at a time; then the Lease is another's."""
    writes = Writes()
    hold = Lease.hold

    async def held(lease: Lease) -> None:
        try:
            await hold(lease)
        finally:
            writes.lost.set()

    monkeypatch.setattr(Lease, "hold", held)
    with threads.serving(busy(writes)) as server, caplog.at_level(logging.INFO):
        assert await run_operator(tmp_path, server.url, retry_period=0.05) == 1
    assert "Lost leadership" in caplog.text
    assert {"storagemigrations", "definitionreports"} <= {each for each, _ in writes.seen}
    assert [each for each, late in writes.seen if late] == []


async def test_a_signal_ends_it_while_the_kubeconfig_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exec plugin of it may never end."""

    async def load(_: Connection) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(Connection, "load", load)
    async with asyncio.timeout(30):
        assert await run_operator(tmp_path, "http://127.0.0.1:1") == 0


@pytest.mark.parametrize("holder", ["me", ""], ids=["renewing", "acquiring"])
async def test_a_lease_that_is_being_written_at_a_signal_is_released(
    tmp_path: Path, watches: None, holder: str
) -> None:
    """From the signal on, each write is stored late; whoever renews it has acquired it before."""
    store, before = LeaseStore(holder), 1 if holder else 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal before
        if "/leases/" not in request.path:
            return await json(LEASE)(request)
        if request.method == "PUT":
            before -= 1
            if before == -1:
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.5 if before < 0 else 0.0)
        return await store.handle(request)

    async with serving(slow) as server:
        assert await run_operator(tmp_path, server.url, retry_period=0.05) == 0
        await asyncio.sleep(1.0)
    assert store.spec["holderIdentity"] == ""


async def run_operator(directory: Path, url: str, **options: Any) -> int:
    """Its exit status, on that API server."""
    wanted = process.OperatorOptions(
        Connection(kubeconfig(directory, url)),
        namespace="crdkeeper-system",
        identity="me",
        controllers=CONTROLLERS,
        webhook=WebhookAddress("crdkeeper-system", "crdkeeper-webhook"),
        host="127.0.0.1",
        port=0,
        **options,
    )
    return await asyncio.wait_for(process.run_operator(wanted), 120.0)


def refusing(plural: str, code: int) -> threads.Answer:
    """An empty cluster whose watches say nothing, but those of `plural` are refused once the rest is open."""
    open_watches: set[str] = set()
    kinds = {each.plural for each in KINDS}

    def answer(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
        address = urlsplit(handler.path)
        found = ANSWERS.get(address.path, LEASE)
        last = address.path.rpartition("/")[2]
        if "watch=true" not in address.query:
            threads.answer(found)(handler, closing)
        elif last != plural:
            open_watches.add(last)
            threads.watch(stays=True)(handler, closing)
        else:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not ((kinds | {CRDS}) - {plural} <= open_watches):
                time.sleep(0.01)
            threads.refusal(code, "it is not for you")(handler, closing)

    return answer


@dataclass(slots=True)
class Writes:
    """What was written, beside the Lease and Events."""

    lost: threading.Event = field(default_factory=threading.Event)
    """Set once the process knows that it leads no more."""
    seen: list[tuple[str, bool]] = field(default_factory=list)
    """The plural, and whether it came after that."""


def busy(writes: Writes) -> threads.Answer:
    """A cluster of many outdated CRDs under a policy. It answers the first writes once the Lease is lost.

    That happens when no more writes come: all workers wait for their answers.
    """
    busy_workers = {"definitionreports": 8, "storagemigrations": 4}
    names = [f"widgets{number}.example.com" for number in range(60)]
    found: dict[str, Any] = {}
    for number, name in enumerate(names):
        made = crd(name=name, uid=name)
        made["spec"]["names"] = {"plural": f"widgets{number}", "kind": f"Widget{number}"}
        found[f"/apis/apiextensions.k8s.io/v1/{CRDS}/{name}"] = made
    ours = "/apis/crdkeeper.dev/v1alpha1"
    found[f"/apis/apiextensions.k8s.io/v1/{CRDS}"] = {**LEASE, "items": list(found.values())}
    governing = {**policy().to_object(), "apiVersion": "crdkeeper.dev/v1alpha1", "kind": "DefinitionPolicy"}
    found[f"{ours}/definitionpolicies"] = {**LEASE, "items": [governing]}

    def answer(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
        address = urlsplit(handler.path)
        plural = address.path.removeprefix(f"{ours}/").partition("/")[0]
        if "/leases/" in address.path:
            counts = Counter(each for each, _ in writes.seen)
            waiting = all(counts[each] >= number for each, number in busy_workers.items())
            holder = {"holderIdentity": "other" if waiting else "me"}
            threads.answer({**LEASE, "spec": holder})(handler, closing)
        elif handler.command in ("POST", "PATCH") and plural in {each.plural for each in KINDS}:
            writes.seen.append((plural, writes.lost.is_set()))
            writes.lost.wait(60)
            threads.refusal(409)(handler, closing)
        elif "watch=true" in address.query:
            threads.watch(stays=True)(handler, closing)
        else:
            threads.answer(found.get(address.path, ANSWERS.get(address.path, LEASE)))(handler, closing)

    return answer
