"""Lists that are read page by page."""

from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import Unreachable
from crdkeeper.cluster.transport.pages import names_in, pages
from tests.unit.cluster.transport.localserver import client_of, json

WIDGETS = "/apis/example.com/v1/widgets"


def page(*names: str, then: str = "") -> dict[str, Any]:
    return {"metadata": {"continue": then}, "items": [{"metadata": {"name": each}} for each in names]}


async def test_the_pages_of_a_list_are_read_to_the_end(tmp_path: Path) -> None:
    async with client_of(tmp_path, json(page("a", "b", then="x/y")), json(page("c"))) as (server, client):
        assert await names_in(client, WIDGETS) == ["a", "b", "c"]
    assert [path.partition("limit=100")[2] for _, path in server.seen] == ["", "&continue=x%2Fy"]


async def test_a_list_of_nothing_may_be_null(tmp_path: Path) -> None:
    async with client_of(tmp_path, json({"metadata": {}, "items": None})) as (_, client):
        assert [each["items"] async for each in pages(client, f"{WIDGETS}?limit=1")] == [[]]


@pytest.mark.parametrize(
    "answer",
    [{}, {"metadata": {}}, {"items": []}, {"metadata": {}, "items": {}}, {"metadata": [], "items": []}],
)
async def test_what_is_no_list_is_not_the_api_servers_answer(tmp_path: Path, answer: dict[str, Any]) -> None:
    async with client_of(tmp_path, json(answer)) as (_, client):
        with pytest.raises(Unreachable, match="is not a list"):
            await names_in(client, WIDGETS)
