"""Watches that fail, of definitions, CRDs and composites: what changes meanwhile is not missed."""

import asyncio
import threading
from functools import partial

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.authoring import Author, Definition
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

WATCHES = r"[?&]watch=true"
MISSED = "{}: {}"
REST_SECONDS = 17.0
"""After a state that passes, such as a CRD that is not established yet, the composer looks once more."""
REFUSALS = 1
"""Of each watch, before it may begin again: pauses grow with each."""


def error_event(code: int, reason: str) -> bytes:
    """The event with which an API server ends a watch."""
    return (
        b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"a fault of the test","reason":"%s","code":%d}}' % (reason.encode(), code)
    )


EXPIRED = error_event(410, "Expired")
FAULTS: dict[str, tuple[bytes, int]] = {
    # How the watches end, and how the API server answers the next ones.
    "dropped": (b"", 200),
    "dropped, then not reached": (b"", 0),
    "dropped, then 429": (b"", 429),
    "dropped, then 500": (b"", 500),
    "dropped, then 503": (b"", 503),
    "410": (EXPIRED, 200),
    "410, then 503": (EXPIRED, 503),
}


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose watches fail."""
    return proxied_author


def fault(plural: str, code: int) -> Fault:
    pattern = rf"/{plural}\?.*watch=true"
    return Fault("GET", pattern, code, 1 if code == 429 else 0, times=REFUSALS)


@pytest.mark.timeout(600)
async def test_what_changes_while_watches_fail_is_not_missed(
    author: Author, proxy: FaultProxy, proxied: Operator, group: str
) -> None:
    changed, counted = (Definition(group, each) for each in ("change", "count"))
    # Another one each time: what is edited again and again is put back after a pause.
    all_edited = [Definition(group, f"edit{number}") for number in range(len(FAULTS))]
    for each in (changed, counted, *all_edited):
        await author.apply(each)
    for each in (changed, counted, *all_edited):
        await author.ready(each)
    watched = ("compositeresourcedefinitions", "customresourcedefinitions", counted.plural)

    async def all_watch() -> bool:
        return all(proxy.has_watch(rf"/{plural}\?") for plural in watched)

    # From then on it looks at them only because of an event, or after minutes.
    await asyncio.sleep(REST_SECONDS)
    log, pid = proxied.log_size(), proxied.pid
    for number, (name, edited) in enumerate(zip(FAULTS, all_edited, strict=True)):
        event, code = FAULTS[name]
        await eventually(all_watch, otherwise=partial(MISSED.format, name, "not all is watched before"))
        faults = [fault(plural, code) for plural in watched if code != 200]
        proxy.faults.extend(faults)
        proxy.end_watches(WATCHES, event)

        async def refused(faults: list[Fault] = faults) -> bool:
            return all(each.met for each in faults)

        await eventually(refused, otherwise=partial(MISSED.format, name, "nobody watches again"))
        await author.apply(changed, f"field{number}", breakingChanges="Allow")
        names = {"spec": {"names": {"categories": ["other"]}}}
        await author.client.request("PATCH", edited.crd, names, content_type=MERGE_PATCH)
        await author.make_composites(counted, [f"a{number}"])

        async def noticed(number: int = number, edited: Definition = edited) -> bool:
            crd, definition = await author.get(edited.crd), await author.get(counted.path)
            return (
                await author.fields(changed) == [f"field{number}"]
                and crd["spec"]["names"]["categories"] == ["composite"]
                and definition["status"]["composites"] == number + 1
            )

        await eventually(noticed, otherwise=partial(MISSED.format, name, "a change was missed"))

        async def resumed(faults: list[Fault] = faults) -> bool:
            refusals = all(each.met == REFUSALS for each in faults)
            return refusals and proxy.has_watch(rf"/{counted.plural}\?")

        await eventually(resumed, otherwise=partial(MISSED.format, name, "a watch was not begun again"))
        proxy.faults.clear()
    assert proxied.pid == pid and proxied.running, "it was the same process all the time"
    assert "Traceback" not in proxied.log_since(log)
    for composite in await author.names(counted):
        await author.delete(f"{counted.objects}/{composite}")


async def test_a_crd_deleted_while_no_watch_hears_of_it_is_made_again(
    author: Author, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    before = await author.get(thing.crd)
    await asyncio.sleep(REST_SECONDS)
    # The list that follows a watch that expired does not say what is missing in it.
    deleted = threading.Event()
    listing = Fault("GET", r"/customresourcedefinitions\?(?!.*watch=true)", held=deleted)
    watch = r"/customresourcedefinitions\?"

    async def watched() -> bool:
        return proxy.has_watch(watch)

    await eventually(watched)
    proxy.faults.append(listing)
    assert proxy.end_watches(watch, EXPIRED) == 1

    async def listed() -> bool:
        return listing.met > 0

    try:
        await eventually(listed)
        await author.delete(thing.crd)

        async def without_it() -> bool:
            found = await author.get(thing.crd)
            return found is None or found["metadata"]["uid"] != before["metadata"]["uid"]

        await eventually(without_it)
    finally:
        deleted.set()

    async def made_again() -> bool:
        return await author.get(thing.crd) is not None

    await eventually(made_again, otherwise=lambda: "the CRD was not made again")
    await author.ready(thing)


async def test_a_watch_of_composites_that_fails_inside_goes_on(
    author: Author, proxy: FaultProxy, proxied: Operator, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    for number, (code, reason) in enumerate(
        ((500, "InternalError"), (429, "TooManyRequests"), (504, "Timeout"))
    ):
        pattern = rf"/{group}/v1/{thing.plural}\?"

        async def watched(pattern: str = pattern) -> bool:
            return proxy.has_watch(pattern)

        await eventually(watched)
        assert proxy.end_watches(pattern, error_event(code, reason)) == 1
        await author.make_composites(thing, [f"a{number}"])

        async def counted(number: int = number) -> bool:
            return bool((await author.get(thing.path))["status"]["composites"] == number + 1)

        await eventually(counted)
    assert proxied.running
    for each in await author.names(thing):
        await author.delete(f"{thing.objects}/{each}")
