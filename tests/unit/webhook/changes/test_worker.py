"""Changes of CRDs in a worker process: in time, one after another, and whatever happens to it."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crdkeeper.core.conversion.review import BadReview
from crdkeeper.webhook.changes import worker
from crdkeeper.webhook.changes.worker import ChangeWorker, Crowded, Fetch, RawPage, Report
from tests.unit.core.changes.builders import FIELDS, definition, policy, review, widget, without

POLICIES = json.dumps([policy("Deny").to_object()]).encode()
CHANGE = review(definition(), definition(without("note")))
LONG = 60.0
"""Seconds that a busy machine may take; nothing waits for them."""


def page(*objects: Any, left: int = 0) -> RawPage:
    metadata = {"continue": "more" if left else "", "remainingItemCount": left}
    body = {"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": metadata, "items": objects}
    return RawPage(json.dumps(body).encode())


async def none(_: str, __: str, ___: float) -> RawPage:
    return page()


async def unknown(_: str, __: float) -> RawPage:
    return RawPage(b"")


@asynccontextmanager
async def working(
    fetch: Fetch = none, report: Report = unknown, rules: bytes = b""
) -> AsyncIterator[ChangeWorker]:
    worker = ChangeWorker(fetch, report, lambda name: rules if name == "widgets.example.com" else b"")
    try:
        yield worker
    finally:
        await worker.close()


def run(
    play: Callable[[ChangeWorker], Any],
    fetch: Fetch = none,
    report: Report = unknown,
    rules: bytes = b"",
) -> None:
    async def main() -> None:
        async with working(fetch, report, rules) as worker:
            await play(worker)

    asyncio.run(main())


def test_pages_are_judged_one_after_another() -> None:
    asked: list[tuple[str, str]] = []

    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        asked.append((collection, token))
        return page(widget(2, note="x")) if token else page(widget(1, size=1), left=1)

    async def play(worker: ChangeWorker) -> None:
        said = (await worker.examine(CHANGE, POLICIES, LONG))["response"]
        assert said["uid"] == "7"
        assert said["allowed"] is False
        assert said["warnings"][0].startswith("1 of 2 Widget objects would lose spec.note")
        assert asked == [("/apis/example.com/v1/widgets", ""), ("/apis/example.com/v1/widgets", "more")]

    run(play, fetch)


REPORT = json.dumps(
    {
        "metadata": {"ownerReferences": [{"uid": "u1"}]},
        "status": {"census": {"takenAt": "2026-11-23T15:40:00Z", "objects": 4_000}},
    }
).encode()


@pytest.mark.parametrize(
    ("content", "told"),
    [(REPORT, True), (b"", False), (b"{", False), (b"[" * 100_000, False), (b'{"metadata": 7}', False)],
)
def test_the_report_is_read_when_a_list_ends_early(content: bytes, told: bool) -> None:
    asked: list[str] = []

    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        return RawPage(b"", "the API server did not list more in time")

    async def report(name: str, seconds: float) -> RawPage:
        await asyncio.sleep(0.1)  # the list has failed by then
        asked.append(name)
        return RawPage(content, "" if content else "crdkeeper-webhook may not")

    async def play(worker: ChangeWorker) -> None:
        change = review(definition(uid="u1"), definition(without("note")))
        said = (await worker.examine(change, POLICIES, LONG))["response"]
        assert said["allowed"] is True
        assert any("did not list more in time" in each for each in said["warnings"])
        assert any("there were 4,000 at 2026" in each for each in said["warnings"]) is told
        assert any(each.endswith("is not known: crdkeeper-webhook may not") for each in said["warnings"]) is (
            not content
        )
        assert asked == ["widgets.example.com"]

    run(play, fetch, report)


@pytest.mark.parametrize(
    ("body", "policies"),
    [
        (CHANGE, b"[]"),
        (review(definition(), definition(labels={"a": "b"})), POLICIES),
        (review(None, definition()), POLICIES),
        (review(definition(), definition({**FIELDS, "extra": {"type": "string"}})), POLICIES),
    ],
    ids=["nobody judges", "the same spec", "new", "harmless"],
)
def test_no_object_is_read_in_vain(body: bytes, policies: bytes) -> None:
    async def play(worker: ChangeWorker) -> None:
        said = await worker.examine(body, policies, LONG)
        assert said["response"] == {"uid": "7", "allowed": True}

    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        return RawPage(b"", "it was read")

    run(play, fetch)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"metadata":{}, "items": 7}', b'{"metadata":{}, "items": [7]}', b"[" * 100_000],
)
def test_an_odd_page_lets_the_change_pass(content: bytes) -> None:
    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        return RawPage(content, "the objects cannot be listed (HTTP 500)")

    async def play(worker: ChangeWorker) -> None:
        for _ in range(2):  # the worker goes on
            said = (await worker.examine(CHANGE, POLICIES, LONG))["response"]
            assert said["allowed"] is True
            assert "no live object was examined: " in said["warnings"][-1]

    run(play, fetch)


@pytest.mark.parametrize("versions", [7, None, [], [7], [{"name": "v1"}], {"a": []}])
def test_what_is_no_definition_harms_nobody(versions: Any) -> None:
    odd = definition()
    odd["spec"]["versions"] = versions

    async def play(worker: ChangeWorker) -> None:
        for old, new in ((odd, definition()), (definition(), odd), (None, odd)):
            try:
                said = await worker.examine(review(old, new), POLICIES, LONG)
            except BadReview:
                continue
            assert said["response"]["allowed"] is True
        said = await worker.examine(review(definition(), definition()), POLICIES, LONG)
        assert said["response"]["allowed"] is True

    run(play)


def test_a_list_that_does_not_come_leaves_what_is_known() -> None:
    """The CRDs are compared by then, however long that takes; the last round leaves time for a list."""
    came = asyncio.Event()

    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        came.set()
        await asyncio.sleep(LONG)
        return page()

    async def play(worker: ChangeWorker) -> None:
        for seconds in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0):
            try:
                said = (await worker.examine(CHANGE, POLICIES, seconds))["response"]
            except Crowded:
                continue
            if came.is_set() and any("field-removed" in each for each in said.get("warnings", ())):
                break
        assert came.is_set()
        assert said["allowed"] is True
        assert any("field-removed" in each for each in said["warnings"])

    run(play, fetch)


def test_a_killed_worker_is_replaced() -> None:
    killed = 0

    async def play(worker: ChangeWorker) -> None:
        async def fetch(collection: str, token: str, seconds: float) -> RawPage:
            nonlocal killed
            assert worker._process is not None
            os.kill(worker._process.pid, signal.SIGKILL)
            killed += 1
            return page()

        worker.fetch = fetch
        for _ in range(3):
            # Nothing may be known by then, and then an API server lets the change pass.
            try:
                said = await worker.examine(CHANGE, POLICIES, LONG)
            except Crowded:
                continue
            assert said["response"]["allowed"] is True
        assert killed == 3
        worker.fetch = none
        said = await worker.examine(CHANGE, POLICIES, LONG)
        assert said["response"]["warnings"]

    run(play)


def test_one_change_after_another() -> None:
    async def play(worker: ChangeWorker) -> None:
        answers = await asyncio.gather(*(worker.examine(CHANGE, POLICIES, LONG) for _ in range(12)))
        assert all(each["response"]["warnings"] for each in answers)

    run(play)


def test_too_many_changes_are_turned_away() -> None:
    go_on = asyncio.Event()

    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        await go_on.wait()
        return page()

    async def play(worker: ChangeWorker) -> None:
        asked = [asyncio.create_task(worker.examine(CHANGE, POLICIES, LONG)) for _ in range(40)]
        done, _ = await asyncio.wait(asked, timeout=LONG, return_when=asyncio.FIRST_COMPLETED)
        assert all(isinstance(each.exception(), Crowded) for each in done)
        go_on.set()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(each, Crowded) for each in results) == len(done) >= 20
        assert sum(isinstance(each, dict) for each in results) == 40 - len(done)

    run(play, fetch)


def test_a_schema_made_to_be_slow_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker itself gives up: were it killed, the next change would wait for another one."""
    monkeypatch.setattr(
        worker, "_OVERTIME_SECONDS", LONG
    )  # on a busy machine, the process may not run at all
    slow = {"type": "string", "pattern": "(" + "a{1,900}" * 20 + ")*b"}
    fields = {**FIELDS, **{f"f{each}": slow for each in range(50)}}
    objects = [widget(each, **{f"f{n}": "a" * 5_000 for n in range(50)}) for each in range(20)]

    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        return page(*objects)

    async def play(worker: ChangeWorker) -> None:
        await worker.start()
        plain = {f"f{each}": {"type": "string"} for each in range(50)}
        with_it = review(definition({**FIELDS, **plain}), definition(fields))
        process = worker._process
        for _ in range(3):
            try:
                said = await worker.examine(with_it, POLICIES, 3.0)
            except Crowded:
                continue
            assert said["response"]["uid"] == "7"
        await worker.examine(review(definition(), definition()), POLICIES, LONG)
        assert worker._process is process

    run(play, fetch)
