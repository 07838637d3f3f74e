"""Changes of CRDs are judged beside conversions, which never wait for them."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.core.conversion.bundle import digest, packed
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.webhook import server
from crdkeeper.webhook.changes import judging
from crdkeeper.webhook.changes.worker import RawPage
from crdkeeper.webhook.http.types import HttpLimits
from crdkeeper.webhook.rules.rulebook import RuleBook, Served
from crdkeeper.webhook.server import WebhookOptions, WebhookProcess
from tests.certificates import Authority
from tests.cluster.harness import eventually
from tests.controlplane.ports import Ports
from tests.unit.core.changes.builders import (
    GROUP,
    NAME,
    definition,
    deletion,
    policy,
    review,
    widget,
    without,
)
from tests.unit.webhook.changes.workerscene import LONG, patient
from tests.unit.webhook.peers import PATIENT

ENDLESS = 3600.0
"""Seconds that no test takes, however often it waits for LONG."""
TOKEN = "t"
CONVERSIONS = 80
AUTHORITY = Authority()
Json = dict[str, Any]


class Policies:
    """A policy that judges all changes, of objects that never come."""

    def __init__(self) -> None:
        self.content = json.dumps([policy("Deny", protection={"deletion": "Deny"}).to_object()]).encode()
        self.digest, self.token, self.address = "d", TOKEN, WebhookAddress()
        self.judging = self.protecting = True
        self.asked = asyncio.Event()

    def admits(self, token: str) -> bool:
        return token == TOKEN

    async def fetch(self, collection: str, token: str, seconds: float) -> RawPage:
        self.asked.set()
        await asyncio.sleep(ENDLESS)
        return RawPage(b"")

    async def report(self, name: str, seconds: float) -> RawPage:
        return RawPage(b"")

    async def run(self, changed: Callable[[], None]) -> None:
        changed()
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


def rules() -> RuleBook:
    """Rules for widgets that are the same at v1 and v2."""
    crd = definition()
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2", "storage": False})
    spec = VersionConversionSpec.model_validate(
        {"resource": {"group": GROUP, "resource": "widgets"}, "hub": "v1", "spokes": [{"version": "v2"}]}
    )
    bundle = packed(spec, schemas_of(crd))
    made = compile_conversion(spec, schemas_of(crd))
    assert isinstance(made, Conversion)
    return RuleBook((), {NAME: Served(made, digest(bundle), bundle)})


class Rules(RuleBook):
    """Rules without files."""

    async def run(self, loaded: Callable[[], None]) -> None:
        loaded()
        await asyncio.Event().wait()


class Process:
    """A webhook that converts widgets and judges changes of CRDs."""

    def __init__(self, directory: Path) -> None:
        issued = AUTHORITY.issue()
        self._ports = Ports()
        options = WebhookOptions(
            directory / "tls.crt",
            directory / "tls.key",
            host="127.0.0.1",
            port=self._ports.take(),
            probe_port=self._ports.take(),
            drain_seconds=0.0,
        )
        options.certificate.write_bytes(issued.certificate)
        options.key.write_bytes(issued.key)
        self.url = f"https://127.0.0.1:{options.port}"
        self._trusts = verifying(ca_data=AUTHORITY.pem.decode())
        self.policies = Policies()
        self.webhook = WebhookProcess(options, Rules((), rules().conversions), self.policies)
        self._stop = asyncio.Event()
        self._running = asyncio.create_task(self.webhook.run(self._stop))

    @property
    def worker(self) -> int:
        """The process id of the worker for changes."""
        assert self.webhook._judging is not None
        process = self.webhook._judging._changes.worker._process
        assert process is not None
        return process.pid

    async def post(self, session: aiohttp.ClientSession, path: str, body: bytes) -> tuple[int, bytes]:
        async with session.post(self.url + path, data=body, ssl=self._trusts) as response:
            return response.status, await response.read()

    async def close(self) -> None:
        self._stop.set()
        async with asyncio.timeout(LONG):
            await self._running
        self._ports.close()


@pytest.fixture
async def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    # Changes stay under judgement for as long as a test takes.
    monkeypatch.setattr(judging, "SECONDS", ENDLESS)
    monkeypatch.setattr(server, "HttpLimits", partial(HttpLimits, **PATIENT))
    patient(monkeypatch)
    process = Process(tmp_path)

    async def listens() -> bool:
        return process.webhook._listening

    await eventually(listens)
    yield process
    await process.close()


def conversion(number: int, size: int = 10) -> bytes:
    obj = widget(number, note="x" * size)
    request = {"uid": str(number), "desiredAPIVersion": f"{GROUP}/v2", "objects": [obj]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    return json.dumps(body).encode()


def large(megabytes: int) -> bytes:
    """A change of a CRD with that much text in it."""
    old = definition(annotations={"text": "x" * (megabytes << 20)})
    read = json.loads(review(old, definition(without("note"))))
    read["request"]["uid"] = str(uuid4())
    return json.dumps(read, separators=(",", ":")).encode()


def unserved() -> Json:
    """The CRD without a served version."""
    crd = definition()
    crd["spec"]["versions"][0]["served"] = False
    return crd


@pytest.mark.parametrize("megabytes", [0, 3])
async def test_conversions_do_not_wait_for_changes(process: Process, megabytes: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def change(megabytes: int) -> tuple[int, bytes]:
            return await process.post(session, f"/changes/{TOKEN}", large(megabytes))

        first = asyncio.create_task(change(0))
        await asyncio.wait_for(process.policies.asked.wait(), LONG)
        os.kill(process.worker, signal.SIGSTOP)
        try:
            changes = [first, *(asyncio.create_task(change(megabytes)) for _ in range(40))]
            # More than may wait are answered at once: those changes pass.
            turned_away = 0

            async def full() -> bool:
                nonlocal turned_away
                turned_away = sum(each.done() for each in changes)
                return turned_away >= 20

            await eventually(full, otherwise=lambda: str(turned_away))
            for number in range(CONVERSIONS):
                size = 4 << 20 if number % 40 == 0 else 10
                path = f"/convert/{NAME}"
                status, body = await process.post(session, path, conversion(number, size))
                assert status == 200
                converted = json.loads(body)["response"]["convertedObjects"]
                assert [each["apiVersion"] for each in converted] == [f"{GROUP}/v2"]
            waiting = [each for each in changes if not each.done()]
            assert first in waiting
            if not megabytes:
                assert len(waiting) >= 16
            for each in changes:
                if each not in waiting:
                    status, body = each.result()
                    # 503 if there was no room for the body: API servers let the change pass then, too.
                    assert status == 200 or (megabytes and status == 503)
                    assert status == 503 or json.loads(body)["response"]["allowed"] is True
        finally:
            os.kill(process.worker, signal.SIGCONT)
            for each in changes:
                each.cancel()
            await asyncio.gather(*changes, return_exceptions=True)


@asynccontextmanager
async def occupied(process: Process, *bodies: bytes) -> AsyncIterator[aiohttp.ClientSession]:
    """The worker for changes stands still over these, and has answered none of them at the end."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        changes = [asyncio.create_task(process.post(session, f"/changes/{TOKEN}", each)) for each in bodies]
        await asyncio.wait_for(process.policies.asked.wait(), LONG)
        os.kill(process.worker, signal.SIGSTOP)
        try:
            yield session
            assert not any(each.done() for each in changes)
        finally:
            os.kill(process.worker, signal.SIGCONT)
            for each in changes:
                each.cancel()
            await asyncio.gather(*changes, return_exceptions=True)


async def test_deletions_do_not_wait_for_changes(process: Process) -> None:
    # What users write into a CRD does not make a deletion of a change.
    labelled = definition(labels={"operation": "DELETE"})
    forged = json.loads(review(labelled, definition(without("note"))))
    forged["request"]["operation"] = "UPDATE"
    request = {key: forged["request"].pop(key) for key in ("uid", "operation")}
    forged["request"] = request | forged["request"]
    bodies = [large(0)] * 5 + [json.dumps(forged, separators=(",", ":")).encode()]
    async with occupied(process, *bodies) as session:
        several = [process.post(session, f"/changes/{TOKEN}", deletion(definition())) for _ in range(40)]
        for status, body in await asyncio.wait_for(asyncio.gather(*several), LONG):
            assert status == 200
            said = json.loads(body)["response"]
            assert not said["allowed"]
            assert "DefinitionPolicy p protects it" in said["status"]["message"]


async def test_the_last_served_version_does_not_wait_for_changes(process: Process) -> None:
    async with occupied(process, *[large(0)] * 5) as session:
        change = review(definition(), unserved())
        several = [process.post(session, f"/changes/{TOKEN}", change) for _ in range(20)]
        for status, body in await asyncio.wait_for(asyncio.gather(*several), LONG):
            assert status == 200
            said = json.loads(body)["response"]
            assert "no version would be served" in said["status"]["message"]


async def test_who_cannot_decide_it_leaves_it_to_the_examination(process: Process) -> None:
    assert process.webhook._judging is not None
    # All room is taken.
    process.webhook._judging._decisions.held = 8 << 20
    async with aiohttp.ClientSession() as session:
        status, body = await process.post(session, f"/changes/{TOKEN}", review(definition(), unserved()))
    assert status == 200
    assert "no version would be served" in json.loads(body)["response"]["status"]["message"]


async def test_only_examinations_give_way_to_conversions(process: Process) -> None:
    async with aiohttp.ClientSession() as session:
        path = f"/changes/{TOKEN}"
        await process.post(session, path, deletion(definition()))
        change = asyncio.create_task(process.post(session, path, large(0)))
        await asyncio.wait_for(process.policies.asked.wait(), LONG)
        assert process.webhook._judging is not None
        decisions = process.webhook._judging._decisions.worker._process
        assert decisions is not None
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, decisions.pid) == own
        assert os.getpriority(os.PRIO_PROCESS, process.worker) == min(19, own + 5)
        change.cancel()
        await asyncio.gather(change, return_exceptions=True)


async def test_without_policies_that_judge_changes_a_protected_api_waits_for_none(process: Process) -> None:
    """And the worker for changes, which nobody needs then, may end at any time."""
    assert process.webhook._judging is not None
    worker = process.webhook._judging._changes.worker

    async def started() -> bool:
        return worker._process is not None

    await eventually(started)
    process.policies.judging = False
    await worker.close()
    async with aiohttp.ClientSession() as session:
        path = f"/changes/{TOKEN}"
        status, body = await process.post(session, path, review(definition(), unserved()))
    assert status == 200
    assert "no version would be served" in json.loads(body)["response"]["status"]["message"]
    assert worker._process is None


async def test_policies_that_are_too_large_are_no_answer(process: Process) -> None:
    """The operator asks the same way, and tells of it."""
    one = process.policies.content.removeprefix(b"[").removesuffix(b"]")
    process.policies.content = b"[" + b",".join([one] * (17 << 20 >> 6)) + b"]"
    async with aiohttp.ClientSession() as session:
        answer = await process.post(session, f"/changes/{TOKEN}", deletion(definition()))
    assert answer == (
        503,
        b"the DefinitionPolicies that judge changes or protect CRDs have more than 16 MiB\n",
    )
