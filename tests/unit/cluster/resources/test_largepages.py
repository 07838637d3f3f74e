"""Pages of objects that tenants make as large as they can."""

import pytest

from crdkeeper.cluster.resources.objects import PAGE, Endpoint, Page, pages_of
from crdkeeper.cluster.transport import boundedpages
from crdkeeper.cluster.transport.boundedpages import METADATA_BYTES
from crdkeeper.cluster.transport.client import TooLarge
from tests.unit.cluster.largeobjects import KIB, MIB, LargeObjects

WIDGETS = Endpoint("example.com", "v2", "widgets")


async def names_of(client: LargeObjects) -> list[str]:
    size = pages_of(PAGE)

    async def list_page(token: str | None) -> Page:
        return await WIDGETS.page(client, token, size)

    return await client.listed(list_page)


async def test_usual_objects_come_in_full_pages_that_nobody_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundedpages, "length", None)
    client = LargeObjects(*[3 * KIB] * 1_700)
    assert await names_of(client) == [f"w{number}" for number in range(1_700)]
    assert client.limits == [PAGE] * 4


async def test_pages_of_large_objects_are_small_and_grow_again() -> None:
    client = LargeObjects(*[KIB] * 600, *[200 * KIB] * 400, *[KIB] * 2_000)
    assert await names_of(client) == [f"w{number}" for number in range(3_000)]
    assert client.largest <= METADATA_BYTES
    assert client.limits[0] == client.limits[-1] == PAGE
    # Few answers are thrown away.
    assert len(client.limits) - len(client.answers) <= 10


async def test_one_object_that_is_larger_than_a_page_comes_alone() -> None:
    client = LargeObjects(*[KIB] * 10, 9 * MIB, *[KIB] * 10, 9 * MIB, 9 * MIB)
    assert await names_of(client) == [f"w{number}" for number in range(23)]
    assert client.largest <= METADATA_BYTES
    assert len([size for _, size in client.answers if size > METADATA_BYTES]) == 3


async def test_one_object_without_any_room_is_told() -> None:
    with pytest.raises(TooLarge):
        await names_of(LargeObjects(KIB, 257 * MIB))


async def test_whole_objects_and_a_list_that_goes_on_are_bounded_too() -> None:
    client = LargeObjects(*[MIB // 2] * 20)
    size = pages_of(PAGE)

    async def list_page(token: str | None) -> Page:
        if token is None:
            return await WIDGETS.whole_page(client, None, size)
        return await WIDGETS.latest_page(client, token, size)

    assert await client.listed(list_page) == [f"w{number}" for number in range(20)]
    assert client.largest <= METADATA_BYTES
