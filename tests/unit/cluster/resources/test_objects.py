"""Pages, patches and reads of single objects."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.resources import objects
from crdkeeper.cluster.resources.objects import PAGE, Endpoint, pages_of
from crdkeeper.cluster.transport.client import (
    MERGE_PATCH,
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    ApiError,
    Unreachable,
)
from crdkeeper.cluster.transport.deadlines import TooSlow
from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.migration.evidence import ObjectRef
from tests.unit.cluster.transport.localserver import client_of, failure, json, page, silent

WIDGETS = Endpoint("example.com", "v2", "widgets")
SECRETS = Endpoint("", "v1", "secrets")
BASE = "/apis/example.com/v2/widgets"


def listed(*names: str, continue_: str = "", remaining: int = 0) -> Any:
    metadata: dict[str, Any] = {"resourceVersion": "500"}
    if continue_:
        metadata |= {"continue": continue_, "remainingItemCount": remaining}
    return json({"metadata": metadata, "items": [{"metadata": {"name": each}} for each in names]})


def expired(**metadata: str) -> Any:
    message = "The provided continue parameter is too old to display a consistent list result."
    return failure(410, "Expired", message, metadata=metadata)


def partial(**metadata: str) -> dict[str, Any]:
    """The metadata of a/w1 as the API server sends it."""
    known = {"namespace": "a", "name": "w1", "uid": "u1"}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": known | metadata}


@pytest.mark.parametrize(
    ("endpoint", "namespace", "name", "path"),
    [
        (WIDGETS, "a", "w1", "/apis/example.com/v2/namespaces/a/widgets/w1"),
        (WIDGETS, "", "w1", "/apis/example.com/v2/widgets/w1"),
        (SECRETS, "a", "s1", "/api/v1/namespaces/a/secrets/s1"),
        (Endpoint("rbac.authorization.k8s.io", "v1", "clusterroles"), "", "system:x/y", None),
    ],
)
def test_paths(endpoint: Endpoint, namespace: str, name: str, path: str | None) -> None:
    expected = path or "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Ax%2Fy"
    assert endpoint.path(namespace, name) == expected


async def test_pages(tmp_path: Path) -> None:
    async with client_of(tmp_path, listed("a", "b", continue_="t/1=", remaining=9), listed("c")) as (
        server,
        client,
    ):
        two = pages_of(2)
        first = await WIDGETS.page(client, None, two)
        last = await WIDGETS.page(client, first.continue_token, two)
    assert [each["metadata"]["name"] for each in first.items] == ["a", "b"]
    assert (first.continue_token, first.remaining, first.resource_version) == ("t/1=", 9, "500")
    assert (last.continue_token, last.remaining) == ("", 0)
    assert [each.raw_path for each in server.requests] == [
        f"{BASE}?limit=2",
        f"{BASE}?limit=2&continue=t%2F1%3D",
    ]
    assert server.requests[0].headers["Accept"] == METADATA_ONLY_LIST


async def test_an_empty_list_may_come_without_items(tmp_path: Path) -> None:
    async with client_of(tmp_path, json({"metadata": {"resourceVersion": "5"}, "items": None})) as (
        _,
        client,
    ):
        found = await WIDGETS.page(client, None, pages_of(PAGE))
    assert (list(found.items), found.resource_version) == ([], "5")


async def test_an_expired_list_goes_on_where_the_server_offers(tmp_path: Path) -> None:
    async with client_of(tmp_path, expired(**{"continue": "new"}), listed("c")) as (server, client):
        found = await WIDGETS.page(client, "old", pages_of(PAGE))
    assert [each["metadata"]["name"] for each in found.items] == ["c"]
    assert [each.query.get("continue") for each in server.requests] == ["old", "new"]


@pytest.mark.parametrize(
    ("answers", "count"),
    [([expired()], 1), ([expired(**{"continue": "new"}), expired(**{"continue": "newer"})], 2)],
    ids=["nothing offered", "expired again"],
)
async def test_an_expired_list_that_cannot_go_on_is_told(
    tmp_path: Path, answers: list[Any], count: int
) -> None:
    async with client_of(tmp_path, *answers) as (server, client):
        with pytest.raises(ApiError) as raised:
            await WIDGETS.page(client, "old", pages_of(PAGE))
    assert raised.value.code == 410
    assert len(server.requests) == count


TOKEN = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Nywic3RhcnQiOiJhXHUwMDAwIn0"
LATEST = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9"


@pytest.mark.parametrize(
    ("token", "answers", "sent"),
    [
        (TOKEN, [listed("c")], [LATEST]),
        ("opaque", [listed("c")], ["opaque"]),
        (TOKEN, [failure(400, "BadRequest", "continue key is not valid"), listed("c")], [LATEST, TOKEN]),
        (TOKEN, [expired(), expired(**{"continue": "new"}), listed("c")], [LATEST, TOKEN, "new"]),
    ],
    ids=["as they are", "another token", "refused", "expired"],
)
async def test_a_list_that_goes_on_with_objects_as_they_are(
    tmp_path: Path, token: str, answers: list[Any], sent: list[str]
) -> None:
    async with client_of(tmp_path, *answers) as (server, client):
        found = await WIDGETS.latest_page(client, token, pages_of(PAGE))
    assert [each["metadata"]["name"] for each in found.items] == ["c"]
    assert [each.query.get("continue") for each in server.requests] == sent
    assert {each.query.get("limit") for each in server.requests} == {"500"}


async def test_another_error_of_such_a_list_is_told(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(403, "Forbidden", "No.")) as (server, client):
        with pytest.raises(ApiError, match="403"):
            await WIDGETS.latest_page(client, TOKEN, pages_of(PAGE))
    assert len(server.requests) == 1


async def test_another_error_is_no_expired_list(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(403, "Forbidden", "No.", metadata={"continue": "x"})) as (
        server,
        client,
    ):
        with pytest.raises(ApiError, match="403"):
            await WIDGETS.page(client, "old", pages_of(PAGE))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fields", "dry_run"), [(None, False), ([{"manager": "kubectl"}], False), (None, True)]
)
async def test_a_rewriting_patch(tmp_path: Path, fields: list[dict[str, Any]] | None, dry_run: bool) -> None:
    ref = ObjectRef("a", "w1", "100", None if fields is None else dumps(fields))
    rewritten = partial(resourceVersion="101")
    async with client_of(tmp_path, json(rewritten)) as (server, client):
        answer = await WIDGETS.rewrite(client, ref, dry_run=dry_run)
    assert answer.json() == rewritten
    (request,) = server.requests
    assert (request.method, request.path) == ("PATCH", WIDGETS.path("a", "w1"))
    assert request.headers["Content-Type"] == MERGE_PATCH
    assert request.headers["Accept"] == METADATA_ONLY
    assert request.query.get("dryRun") == ("All" if dry_run else None)
    metadata: dict[str, Any] = {"resourceVersion": "100"}
    if fields is not None:
        metadata["managedFields"] = fields
    assert server.bodies == [{"metadata": metadata}]


async def test_fields_far_down_are_written_as_they_were_read(tmp_path: Path) -> None:
    fields = loads('[{"fieldsV1":' + '{"f:a":' * 300 + "{}" + "}" * 300 + "}]")
    async with client_of(tmp_path, json(partial())) as (server, client):
        await WIDGETS.rewrite(client, ObjectRef("a", "w1", "100", dumps(fields)))
    (body,) = server.bodies
    assert dumps(body["metadata"]["managedFields"]) == dumps(fields)


async def test_a_rewriting_patch_is_sent_once(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(503, "ServiceUnavailable", headers={"Retry-After": "7"})) as (
        server,
        client,
    ):
        answer = await WIDGETS.rewrite(client, ObjectRef("a", "w1", "100"))
    assert (answer.code, answer.retry_after) == (503, 7.0)
    assert len(server.requests) == 1


async def test_a_look_at_one_object(tmp_path: Path) -> None:
    async with client_of(tmp_path, json(partial())) as (server, client):
        assert await WIDGETS.metadata(client, "a", "w1") == partial()["metadata"]
    assert server.requests[0].headers["Accept"] == METADATA_ONLY


async def test_an_object_is_gone(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(404, "NotFound", "not found", details={"name": "w1"})) as (
        _,
        client,
    ):
        assert await WIDGETS.metadata(client, "a", "w1") is None


async def test_an_object_of_a_resource_that_is_not_served_is_not_gone(tmp_path: Path) -> None:
    async with client_of(tmp_path, page("404 page not found", 404)) as (_, client):
        with pytest.raises(ApiError, match="404"):
            await WIDGETS.metadata(client, "a", "w1")


@pytest.mark.parametrize(
    ("answer", "size"), [(json({"a": 1}), 7), (failure(404, "NotFound"), 0)], ids=["there", "gone"]
)
async def test_the_size_of_an_object(tmp_path: Path, answer: Any, size: int) -> None:
    async with client_of(tmp_path, answer) as (_, client):
        assert await WIDGETS.size(client, "a", "w1") == size


@pytest.mark.parametrize(
    "other",
    [
        partial(name="w2"),
        partial(namespace="b"),
        partial(namespace=""),
        partial(uid="u2"),
        partial() | {"kind": "Status"},
        partial() | {"metadata": None},
        {"message": "hello"},
    ],
    ids=["name", "namespace", "no namespace", "uid", "kind", "no metadata", "something else"],
)
async def test_an_answer_about_another_object_proves_nothing(tmp_path: Path, other: dict[str, Any]) -> None:
    answers = [json(partial()), json(other), json(partial())]
    async with client_of(tmp_path, *answers) as (server, client):
        ref = ObjectRef("a", "w1", "100", uid="u1")
        await WIDGETS.rewrite(client, ref)
        with pytest.raises(Unreachable, match="the response is for another object"):
            await WIDGETS.rewrite(client, ref)
        await WIDGETS.rewrite(client, ref)
    assert len(server.connections) == 2


async def test_an_object_whose_uid_is_not_known_may_have_any(tmp_path: Path) -> None:
    async with client_of(tmp_path, json(partial(uid="u2"))) as (_, client):
        assert (await WIDGETS.rewrite(client, ObjectRef("a", "w1", "100"))).code == 200


@pytest.mark.parametrize("other", [partial(name="w2"), partial(namespace="b"), {"metadata": {"name": "w1"}}])
async def test_a_look_at_another_object_shows_nothing(tmp_path: Path, other: dict[str, Any]) -> None:
    async with client_of(tmp_path, json(other)) as (_, client):
        with pytest.raises(Unreachable, match="the response is for another object"):
            await WIDGETS.metadata(client, "a", "w1")


async def test_a_namespace_cannot_change_the_path() -> None:
    assert WIDGETS.path("a/../b\r\nX: y", "w1") == (
        "/apis/example.com/v2/namespaces/a%2F..%2Fb%0D%0AX%3A%20y/widgets/w1"
    )


async def test_the_present_is_not_asked_for_again_while_it_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_FIRST_SECONDS", 1.0)
    monkeypatch.setattr(objects, "_HANGING_SECONDS", 0.5)
    end = asyncio.Event()
    not_ready = failure(429, "TooManyRequests", "storage is (re)initializing")
    async with client_of(tmp_path, silent(end), not_ready, listed("w1")) as (server, client):
        for _ in range(2):
            with pytest.raises(TooSlow, match="no answer within 1 seconds"):
                await WIDGETS.now(client)
        monkeypatch.undo()
        assert await WIDGETS.now(client) == "500"
        end.set()
    look = f"{BASE}?limit=1&fieldSelector=metadata.name%21%3D."
    assert [path for _, path in server.seen] == [f"{BASE}?limit=1", look, look, f"{BASE}?limit=1"]


async def test_the_webhook_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_HANGING_SECONDS", 0.0)
    not_ready = failure(429, "TooManyRequests", "storage is (re)initializing")
    late = failure(500, "", "conversion webhook for example.com/v1 failed: deadline exceeded")
    async with client_of(tmp_path, late, not_ready) as (server, client):
        with pytest.raises(ApiError, match="deadline exceeded"):
            await WIDGETS.now(client)
        with pytest.raises(TooSlow, match="deadline exceeded"):
            await WIDGETS.now(client)
    assert len(server.seen) == 2


async def test_a_failure_that_passes_does_not_hang(tmp_path: Path) -> None:
    async with client_of(tmp_path, failure(503), failure(503), listed("w1")) as (_, client):
        assert await WIDGETS.now(client) == "500"
        assert client.hung_lists == {}
