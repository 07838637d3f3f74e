"""Changes of CRDs in a worker process: in time, one after another, and whatever happens to it."""

import asyncio
import json
import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from crdkeeper.core.conversion.review import BadReview
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.webhook.changes import worker
from crdkeeper.webhook.changes.worker import ChangeWorker, Crowded, RawPage
from tests.unit.core.changes.builders import (
    ADDRESS,
    DROPPED,
    FIELDS,
    MOVED,
    bundle,
    converted,
    definition,
    deletion,
    policy,
    review,
    widget,
    without,
)
from tests.unit.webhook.changes.workerscene import CHANGE, LONG, POLICIES, none, page, run


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


@pytest.mark.parametrize(
    ("address", "refused"),
    [(ADDRESS, True), (WebhookAddress("former", "crdkeeper-webhook"), False), (WebhookAddress(), False)],
)
def test_rules_count_where_this_webhook_converts(address: WebhookAddress, refused: bool) -> None:
    old, new = converted(), converted(storage="v2")

    async def fetch(_: str, __: str, ___: float) -> RawPage:
        return page(widget(1, host="a", note="x"))

    async def play(worker: ChangeWorker) -> None:
        said = (await worker.examine(review(old, new), POLICIES, LONG))["response"]
        lost = "1 of 1 Widget objects would lose spec.note with the next write"
        assert said["allowed"] is not refused
        assert any(each.startswith(lost) for each in said["warnings"]) is refused

    run(play, fetch, rules=bundle(MOVED, DROPPED, old=old), address=address)


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


def test_policies_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of them take longer to read than to decide by."""
    protecting = json.dumps([policy("Allow", protection={"deletion": "Deny"}).to_object()]).encode()
    told: list[int] = []
    dumps = json.dumps

    def written(said: Any) -> str:
        if "policies" in said:
            told.append(said["policies"])
        return dumps(said)

    async def play(worker: ChangeWorker) -> None:
        async def allowed(policies: bytes) -> bool:
            said = await worker.examine(deletion(definition()), policies, LONG)
            return bool(said["response"]["allowed"])

        assert [await allowed(each) for each in (protecting, protecting, b"[]", b"[]", protecting)] == [
            False,
            False,
            True,
            True,
            False,
        ]
        assert told == [len(protecting), 0, 2, 0, len(protecting)]
        await worker.close()
        # Another process knows none of them.
        assert not await allowed(protecting)

    monkeypatch.setattr(worker, "json", SimpleNamespace(dumps=written, loads=json.loads))
    run(play)


def test_nothing_of_what_is_deleted_is_read() -> None:
    async def fetch(collection: str, token: str, seconds: float) -> RawPage:
        raise AssertionError("it was read")

    async def play(worker: ChangeWorker) -> None:
        said = await worker.examine(deletion(definition()), POLICIES, LONG)
        assert said["response"] == {"uid": "7", "allowed": True}

    run(play, fetch)


def test_an_update_that_takes_the_api_away_is_refused() -> None:
    policies = json.dumps([policy("Warn", protection={"deletion": "Deny"}).to_object()]).encode()
    unserved = definition()
    unserved["spec"]["versions"][0]["served"] = False

    async def play(worker: ChangeWorker) -> None:
        said = (await worker.examine(review(definition(), unserved), policies, LONG))["response"]
        assert "no version would be served" in said["status"]["message"]
        said = (await worker.examine(review(unserved, unserved), policies, LONG))["response"]
        assert said["allowed"]

    run(play)


def test_a_deletion_that_is_not_decided_in_time_passes_with_a_warning() -> None:
    """The globs of all these take longer to compile than there is time."""
    slow = [
        policy(
            "Allow",
            f"p{number}",
            protection={"deletion": "Deny"},
            groups=[f"{number}-{glob}" + "?*[!x]" * 40 for glob in range(64)],
        ).to_object()
        for number in range(600)
    ]

    async def play(worker: ChangeWorker) -> None:
        body, policies = deletion(definition()), json.dumps(slow).encode()
        await worker.examine(body, b"[]", LONG)
        with pytest.raises(Crowded):
            await worker.examine(body, policies, LONG)
        # It goes on.
        assert (await worker.examine(body, b"[]", LONG))["response"]["allowed"]

    run(play)


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
