"""A worker for changes of CRDs, what it is asked, and the lists that it gets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.webhook.changes.worker import ChangeWorker, Fetch, RawPage, Report
from tests.unit.core.changes.builders import ADDRESS, definition, policy, review, without

POLICIES = json.dumps([policy("Deny").to_object()]).encode()
CHANGE = review(definition(), definition(without("note")))
LONG = 60.0
"""Seconds that a busy machine may take; nothing waits for them."""
_PATIENT = (
    "from crdkeeper.webhook.changes import workerprocess as w; "
    f"w._PROTECTION_SECONDS = w._RULES_SECONDS = w._COMPARE_SECONDS = w._COMPILE_SECONDS = {LONG}; w.main()"
)


def page(*objects: Any, left: int = 0) -> RawPage:
    metadata = {"continue": "more" if left else "", "remainingItemCount": left}
    body = {"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": metadata, "items": objects}
    return RawPage(json.dumps(body).encode())


async def none(_: str, __: str, ___: float) -> RawPage:
    return page()


async def unknown(_: str, __: float) -> RawPage:
    return RawPage(b"")


def patient(patch: pytest.MonkeyPatch) -> None:
    """Have workers take all of a change's time for what has 0.6 s of it: they may be stopped that long."""
    start = asyncio.create_subprocess_exec

    async def started(program: str, *arguments: str, **named: Any) -> asyncio.subprocess.Process:
        if arguments[:2] == ("-m", "crdkeeper.webhook.changes.workerprocess"):
            arguments = ("-c", _PATIENT, *arguments[2:])
        return await start(program, *arguments, **named)

    patch.setattr(asyncio, "create_subprocess_exec", started)


@asynccontextmanager
async def working(
    fetch: Fetch = none, report: Report = unknown, rules: bytes = b"", address: WebhookAddress = ADDRESS
) -> AsyncIterator[ChangeWorker]:
    worker = ChangeWorker(
        fetch, report, lambda name: rules if name == "widgets.example.com" else b"", lambda: address
    )
    with pytest.MonkeyPatch.context() as patch:
        patient(patch)
        try:
            yield worker
        finally:
            await worker.close()


def run(
    play: Callable[[ChangeWorker], Any],
    fetch: Fetch = none,
    report: Report = unknown,
    rules: bytes = b"",
    address: WebhookAddress = ADDRESS,
) -> None:
    async def main() -> None:
        async with working(fetch, report, rules, address) as worker:
            await play(worker)

    asyncio.run(main())
