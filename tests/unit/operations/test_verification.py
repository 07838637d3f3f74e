"""Rules tried on live objects: each counts once, at however many versions it may be stored."""

import asyncio
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from crdkeeper.api.versionconversion import ConversionVerification
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.conversion.verification import Fault, ObjectOutcome, Trial
from crdkeeper.operations import verification
from crdkeeper.operations.verification import Outdated, Unlistable, judge_live
from tests.unit.builders import definition

NAMES = [f"{space}/{name}" for space in ("a", "a-b", "a.b", "b") for name in ("x", "x-y", "y")]
"""In etcd's order: namespace, a slash, and name as one string."""
WEBHOOK = "conversion webhook for example.com/v1, Kind=Widget failed: refused"
GONE = ApiError(500, {"message": WEBHOOK})


@dataclass
class Lists:
    """An API server that lists Widgets at v1 and v2 in pages, as configured for each page."""

    names: dict[str, list[str]]
    fails: dict[str, int] = field(default_factory=dict)
    """By version, the page from which on its list fails."""
    how: ApiError = GONE
    asked: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        assert method == "GET"
        version = path.split("/")[3]
        query = dict(each.split("=") for each in path.partition("?")[2].split("&"))
        start, limit = int(query.get("continue", 0)), int(query["limit"])
        self.asked.append(version)
        if start // limit >= self.fails.get(version, 1000):
            raise self.how
        names = sorted(self.names[version])
        end = start + limit
        token = {"continue": str(end)} if end < len(names) else {}
        return {"metadata": token, "items": [widget(version, each) for each in names[start:end]]}


def widget(version: str, name: str) -> dict[str, Any]:
    space, _, name = name.rpartition("/")
    metadata = {"namespace": space, "name": name} if space else {"name": name}
    return {"apiVersion": f"example.com/{version}", "metadata": metadata}


class Judge:
    """Replaces a Trial: finds a test's results for some objects, at some version."""

    def __init__(self, **found: set[str]) -> None:
        self.found = found
        self.seen: list[str] = []

    def judge(self, value: Mapping[str, Any]) -> ObjectOutcome:
        version = value["apiVersion"].rpartition("/")[2]
        name = f"{version}:{value['metadata']['namespace']}/{value['metadata']['name']}"
        self.seen.append(name)

        def of(what: str) -> list[Fault]:
            return [Fault(version, "v3", what)] if name in self.found.get(what, ()) else []

        def at(what: str) -> frozenset[str]:
            return frozenset(("v3",)) if of(what) else frozenset()

        return ObjectOutcome(1, at("aside"), at("lossy"), of("fault"), of("unmatched"))


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_PAGE", 5)


async def judged(
    lists: Lists, judge: Judge | None = None, *, stored: tuple[str, ...] = ("v1", "v2")
) -> tuple[ConversionVerification, str]:
    found = ConversionVerification()
    trial = cast(Trial, judge or Judge())
    facts = definition(stored=stored)
    unseen = await judge_live(cast(Client, lists), facts, trial, found, lambda: True)
    return found, unseen


@pytest.mark.parametrize("stored", [("v1",), ("v1", "v2")])
async def test_an_object_counts_once_and_is_tried_at_each_version(stored: tuple[str, ...]) -> None:
    judge = Judge()
    found, unseen = await judged(Lists({"v1": NAMES, "v2": NAMES}), judge, stored=stored)
    assert (found.objects, unseen) == (len(NAMES), "")
    assert sorted(judge.seen) == sorted(f"{version}:{name}" for version in stored for name in NAMES)


async def test_what_is_wrong_with_an_object_counts_once_and_is_named_for_each_version() -> None:
    of = {f"{version}:a-b/x" for version in ("v1", "v2")}
    judge = Judge(fault=of, unmatched=of, aside=of, lossy={"v2:a-b/x", "v1:b/y"})
    found, _ = await judged(Lists({"v1": NAMES, "v2": NAMES}), judge)
    assert (found.failed, found.unmatched, found.kept_aside, found.lossy) == (1, 1, 1, 2)
    assert [(each.name, each.from_version) for each in found.failures] == [("x", "v1"), ("x", "v2")]
    assert len(found.unmatched_objects) == 2


async def test_objects_that_one_list_alone_has_count() -> None:
    """They were created, or deleted, between two pages."""
    found, _ = await judged(Lists({"v1": NAMES[:4] + NAMES[6:], "v2": NAMES[2:]}))
    assert found.objects == len(NAMES)


class Widget(dict[str, Any]):
    """An object of which a test sees whether it is in memory."""


@dataclass
class LargeLists(Lists):
    """Counts the objects in memory while a page is requested."""

    made: list[weakref.ref[Widget]] = field(default_factory=list)
    most: int = 0

    async def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        self.most = max(self.most, sum(each() is not None for each in self.made))
        body = await super().request(method, path, **options)
        body["items"] = [Widget(each) for each in body["items"]]
        self.made += map(weakref.ref, body["items"])
        return body


async def test_there_is_one_page_of_each_list_in_memory() -> None:
    lists = LargeLists({"v1": NAMES[2:], "v2": NAMES[:3] + NAMES[5:]})
    found, _ = await judged(lists)
    assert (found.objects, len(lists.made)) == (len(NAMES), 20)
    # While one list gets a page, the other one has its own.
    assert lists.most <= 5


@pytest.mark.parametrize("page", [0, 1, 2])
async def test_a_list_that_fails_leaves_the_objects_of_the_other(page: int) -> None:
    found, unseen = await judged(Lists({"v1": NAMES, "v2": NAMES}, fails={"v1": page}))
    assert found.objects == len(NAMES)
    assert unseen == f"Listing at v1 fails: {WEBHOOK}."


async def test_no_list_that_works_is_an_error() -> None:
    with pytest.raises(Unlistable) as error:
        await judged(Lists({"v1": NAMES, "v2": NAMES}, fails={"v1": 0, "v2": 1}))
    assert error.value.error is GONE


@pytest.mark.parametrize("code", [500, 503, 504])
async def test_objects_that_an_api_server_cannot_show_for_a_moment_are_not_left_out(code: int) -> None:
    passing = ApiError(code, {"message": "the server is currently unable to handle the request"})
    with pytest.raises(Unlistable) as error:
        await judged(Lists({"v1": NAMES, "v2": NAMES}, fails={"v1": 1}, how=passing))
    assert error.value.error is passing


async def test_a_version_that_was_removed_leaves_the_objects_of_the_other() -> None:
    removed = ApiError(
        500, {"message": "request to convert CR from an invalid group/version: example.com/v0"}
    )
    found, _ = await judged(Lists({"v1": NAMES, "v2": NAMES}, fails={"v1": 1}, how=removed))
    assert found.objects == len(NAMES)


async def test_pages_are_asked_for_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never more than a page of each version is held, however many objects there are."""
    lists = Lists({"v1": NAMES, "v2": NAMES})
    batches: list[int] = []

    async def to_thread(work: Any, batch: Any, *rest: Any) -> None:
        batches.append(len(batch))
        work(batch, *rest)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    found, _ = await judged(lists)
    assert lists.asked == ["v1", "v2"] * 3
    assert (found.objects, max(batches)) == (len(NAMES), 5)


async def test_rules_that_nobody_wants_any_more_are_not_tried_further() -> None:
    lists = Lists({"v1": NAMES, "v2": NAMES})
    facts = definition()
    with pytest.raises(Outdated):
        await judge_live(
            cast(Client, lists), facts, cast(Trial, Judge()), ConversionVerification(), lambda: False
        )
    assert lists.asked == ["v1", "v2"]
