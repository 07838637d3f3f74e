"""Lists of composites whose size is up to tenants: no answer takes more memory than there is room for."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from orjson import dumps

from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import TooLarge
from crdkeeper.operations.rehearsal.source import pages
from tests.unit.cluster.transport.localserver import client_of

ENDPOINT = Endpoint("example.com", "v1", "widgets")
SMALL, LARGE = "x", "x" * 30_000


def widgets(*texts: str) -> Any:
    """The answer to a request for a page of objects with these texts."""

    async def answer(request: web.Request) -> web.Response:
        begin = int(request.query.get("continue", 0))
        end = begin + int(request.query["limit"])
        whole = "PartialObjectMetadataList" not in request.headers["Accept"]
        items = [
            {"metadata": {"name": f"w{each}"}, **({"text": text} if whole else {})}
            for each, text in enumerate(texts[begin:end], begin)
        ]
        more = {"continue": str(end)} if end < len(texts) else {}
        body = {"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": more, "items": items}
        return web.Response(body=dumps(body), content_type="application/json")

    return answer


@pytest.mark.parametrize(
    "texts",
    [[LARGE] * 60, [SMALL] * 200 + [LARGE] * 60, [SMALL, LARGE] * 100],
    ids=["large", "late", "mixed"],
)
async def test_pages_are_as_large_as_allowed(tmp_path: Path, texts: list[str]) -> None:
    async with client_of(tmp_path, widgets(*texts)) as (server, client):
        found, most = [], 0
        async for items in pages(client, ENDPOINT, page_bytes=64 << 10, most=128 << 10):
            found += [each["metadata"]["name"] for each in items]
            most = max(most, sum(len(each["text"]) for each in items))
        assert found == [f"w{each}" for each in range(len(texts))]
        assert 30_000 <= most <= 128 << 10
        assert len(server.requests) < 2 * len(texts)


@pytest.mark.parametrize("too_large", [{0}, {1}, {3}, {0, 1, 3}, set(range(4))], ids=str)
async def test_an_object_that_is_too_large_alone_is_named(tmp_path: Path, too_large: set[int]) -> None:
    texts = [LARGE if each in too_large else SMALL for each in range(4)]
    async with client_of(tmp_path, widgets(*texts)) as (server, client):
        found, unread = [], []

        def note(metadata: Any, why: str) -> None:
            assert "larger than" in why
            unread.append(metadata["name"])

        async for items in pages(client, ENDPOINT, page_bytes=1 << 10, most=10_000, unread=note):
            found += [each["metadata"]["name"] for each in items]
        assert unread == [f"w{each}" for each in sorted(too_large)]
        assert sorted(found + unread) == [f"w{each}" for each in range(4)]
        assert len(server.requests) < 20


async def test_a_list_ends_at_what_is_too_large_if_nobody_notes_it(tmp_path: Path) -> None:
    async with client_of(tmp_path, widgets(SMALL, LARGE)) as (server, client):
        with pytest.raises(TooLarge, match="larger than"):
            async for _ in pages(client, ENDPOINT, page_bytes=1 << 10, most=10_000):
                pass
        assert len(server.requests) < 10
