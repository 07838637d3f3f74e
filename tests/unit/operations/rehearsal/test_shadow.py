"""The shadow is created and removed whatever happens; see also tests/cluster/rehearsal/test_rehearse.py."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.rehearsal.shadow import GROUP
from crdkeeper.operations.rehearsal import shadow as module
from crdkeeper.operations.rehearsal.shadow import Shadow, ShadowFailed
from crdkeeper.operations.rehearsal.source import pages
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json, page, silent
from tests.unit.core.rehearsal.crds import TEXT, crd, version, widget

DEFINITION = crd(version(a=TEXT))
NONE = json({"items": [], "metadata": {}})
MADE = json({})
READY = json({"status": {"conditions": [{"type": "Established", "status": "True"}]}})
TAKEN = json({"status": {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "in use"}]}})
LEFT: dict[str, Any] = {
    "metadata": {"name": "left", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"group": GROUP, "names": {"kind": "Widget"}},
}
FOREIGN = {**LEFT, "spec": {**LEFT["spec"], "group": "example.com"}}
"""Somebody has put our label on it."""
ONLY_KEPT = "allows these schemas only to CRDs that have them already"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.0)


def methods(server: Any) -> list[str]:
    return [method for method, _ in server.seen]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([NONE, MADE, json({}), READY, MADE], ["GET", "POST", "GET", "GET", "DELETE"]),
        # A leftover one is removed first.
        ([json({"items": [LEFT], "metadata": {}}), MADE, MADE, READY, MADE],
            ["GET", "DELETE", "POST", "GET", "DELETE"]),
        ([json({"items": [FOREIGN], "metadata": {}}), MADE, READY, MADE], ["GET", "POST", "GET", "DELETE"]),
        # Another rehearsal has taken the kind meanwhile.
        ([NONE, MADE, TAKEN, MADE, MADE, READY, MADE],
            ["GET", "POST", "GET", "DELETE", "POST", "GET", "DELETE"]),
        # The removal is tried again.
        ([NONE, MADE, READY, failure(500), failure(429), failure(404)],
            ["GET", "POST", "GET", "DELETE", "DELETE", "DELETE"]),
    ],
)  # fmt: skip
async def test_made_and_removed(tmp_path: Path, answers: list[Handler], expected: list[str]) -> None:
    async with client_of(tmp_path, *answers) as (server, client):
        async with Shadow(client, DEFINITION):
            pass
        assert methods(server) == expected
        kinds = [body["spec"]["names"]["kind"] for body in server.bodies if body]
        assert kinds[0] == "Widget"
        assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize(("code", "is_free"), [(404, True), (403, False), (500, False)])
async def test_a_leftover_one_that_stays_keeps_its_kind(tmp_path: Path, code: int, is_free: bool) -> None:
    left = json({"items": [LEFT], "metadata": {}})
    async with client_of(tmp_path, left, failure(code), MADE, READY, MADE) as (server, client):
        async with Shadow(client, DEFINITION):
            pass
        assert methods(server) == ["GET", "DELETE", "POST", "GET", "DELETE"]
        (kind,) = [body["spec"]["names"]["kind"] for body in server.bodies if body]
    assert (kind == "Widget") is is_free


async def test_what_was_never_made_is_not_removed(tmp_path: Path) -> None:
    async with client_of(tmp_path, NONE, failure(403, "Forbidden", "no")) as (server, client):
        with pytest.raises(ApiError, match="no"):
            async with Shadow(client, DEFINITION):
                pass
        assert methods(server) == ["GET", "POST"]


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ("spec.versions[1].schema.openAPIV3Schema", ONLY_KEPT),
        ("spec.validation.openAPIV3Schema", ONLY_KEPT),
        ("spec.names.listKind", "refuses a shadow"),
        # A policy's cause names no field.
        (None, "refuses a shadow"),
    ],
)
async def test_what_has_no_shadow_can_be_rehearsed_without_one(
    tmp_path: Path, field: str | None, why: str
) -> None:
    causes = [{"field": field, "message": "bad"}] if field else [{"message": "bad"}]
    refused = failure(422, "Invalid", "it is bad", details={"causes": causes})
    async with client_of(tmp_path, NONE, refused) as (server, client):
        with pytest.raises(ShadowFailed, match=f"server {why}; rehearse with --shadow never: it is bad"):
            async with Shadow(client, DEFINITION):
                pass
        assert methods(server) == ["GET", "POST"]


async def test_what_cannot_be_removed_is_told_with_the_remedy(tmp_path: Path) -> None:
    async with client_of(tmp_path, NONE, MADE, READY, failure(403, "Forbidden", "never")) as (_, client):
        with pytest.raises(ShadowFailed, match=r"never\. .* kubectl delete crd r[0-9a-f]+\.rehearsal"):
            async with Shadow(client, DEFINITION):
                pass


@pytest.mark.parametrize(("last", "left"), [(MADE, 0), (failure(403, "Forbidden", "never"), 1)])
async def test_told_to_stop_while_it_is_removed_it_goes_on(tmp_path: Path, last: Handler, left: int) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def busy(request: web.Request) -> web.Response:
        begun.set()
        await end.wait()
        return await failure(500)(request)

    said: list[str] = []

    async def use(client: Client) -> None:
        async with Shadow(client, DEFINITION, left=said.append):
            pass

    async with client_of(tmp_path, NONE, MADE, READY, busy, last) as (server, client):
        using = asyncio.create_task(use(client))
        await begun.wait()
        for _ in range(2):
            using.cancel()
            await asyncio.sleep(0)
        end.set()
        with pytest.raises(asyncio.CancelledError):
            await using
        assert methods(server).count("DELETE") == (6 if left else 2)
    assert [text.partition(". ")[0] for text in said] == ["the shadow could not be removed: never"] * left


@pytest.mark.parametrize("in_use", [False, True])
async def test_what_is_left_when_told_to_stop_is_told(tmp_path: Path, in_use: bool) -> None:
    said: list[str] = []
    begun, end = asyncio.Event(), asyncio.Event()

    async def not_ready(request: web.Request) -> web.Response:
        begun.set()
        return await silent(end)(request)

    async def use(client: Client) -> None:
        async with Shadow(client, DEFINITION, left=said.append):
            begun.set()
            await end.wait()

    answers = [NONE, MADE, READY if in_use else not_ready, failure(403, "Forbidden", "never")]
    async with client_of(tmp_path, *answers) as (_, client):
        using = asyncio.create_task(use(client))
        await begun.wait()
        using.cancel()
        with pytest.raises(ShadowFailed) as failed:
            await using
        end.set()
    assert said == [str(failed.value)]
    assert "kubectl delete crd r" in said[0]


async def test_an_error_in_the_middle_removes_it(tmp_path: Path) -> None:
    async with client_of(tmp_path, NONE, MADE, READY, MADE) as (server, client):
        with pytest.raises(ZeroDivisionError):
            async with Shadow(client, DEFINITION):
                raise ZeroDivisionError
        assert methods(server)[-1] == "DELETE"


async def test_it_waits_as_the_server_asks_and_then_has_its_answer(tmp_path: Path) -> None:
    causes = {"causes": [{"reason": "FieldValueRequired", "field": "spec.a", "message": "Required value"}]}
    answers = [failure(429), page("404 page not found", 404), json({"metadata": {"uid": "1"}}), failure(503)]
    last = failure(422, "Invalid", "is invalid", details=causes)
    async with client_of(tmp_path, NONE, MADE, READY, *answers, last, MADE) as (server, client):
        async with Shadow(client, DEFINITION) as shadow:
            answer = await shadow.judge(widget({}))
        assert answer is not None
        assert (answer.code, answer.causes) == (422, [("spec.a", "Required value")])
        sent = next(body for body in reversed(server.bodies) if body)
        assert (sent["apiVersion"], sent["kind"]) == ("rehearsal.crdkeeper.dev/v1", "Widget")


async def test_what_is_never_served_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SERVED_SECONDS", 0.0)
    gone = [page("404 page not found", 404), json({"metadata": {"uid": "1"}}), MADE]
    async with client_of(tmp_path, NONE, MADE, READY, *gone) as (_, client):
        with pytest.raises(ShadowFailed, match="is not served after"):
            async with Shadow(client, DEFINITION) as shadow:
                await shadow.judge(widget({}))


async def test_what_was_waited_for_in_vain_is_not_waited_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SERVED_SECONDS", 0.05)
    later: list[Handler] = []

    async def down(request: web.Request) -> web.Response:
        if request.method == "DELETE":
            return await MADE(request)
        answer = later.pop(0) if later else failure(503, headers={"Retry-After": "300"})
        return await answer(request)

    async with (
        client_of(tmp_path, NONE, MADE, READY, down) as (server, client),
        asyncio.timeout(60.0),
        Shadow(client, DEFINITION) as shadow,
    ):

        async def code() -> int:
            answer = await shadow.judge(widget({}))
            assert answer is not None
            return answer.code

        assert await code() == 503
        asked = len(server.seen)
        assert await code() == 503
        assert len(server.seen) == asked + 1
        # Once something else is answered, it is worth waiting again.
        monkeypatch.setattr(module, "_SERVED_SECONDS", 60.0)
        later += [json({}, 201), failure(503), json({}, 201)]
        assert [await code() for _ in range(2)] == [201, 201]


async def test_pages_of_objects_go_on_after_an_expired_token(tmp_path: Path) -> None:
    def listed(*names: str, token: str = "") -> Handler:
        items = [{"metadata": {"name": each}, "spec": {}} for each in names]
        return json(
            {
                "apiVersion": "example.com/v1",
                "kind": "WidgetList",
                "metadata": {"continue": token},
                "items": items,
            }
        )

    expired = failure(410, "Expired", "too old", metadata={"continue": "b/"})
    answers = [listed("x", token="a/"), expired, listed("y", token="c"), listed()]
    async with client_of(tmp_path, *answers) as (server, client):
        found = [
            each async for page in pages(client, Endpoint("example.com", "v1", "widgets")) for each in page
        ]
    assert [(each["apiVersion"], each["kind"]) for each in found] == 2 * [("example.com/v1", "Widget")]
    assert [each["metadata"]["name"] for each in found] == ["x", "y"]
    tokens = [path.partition("&continue=")[2] for _, path in server.seen]
    assert tokens == ["", "a%2F", "b%2F", "c"]
