"""A role for composites that an earlier version documented: list, watch and delete."""

import re

import pytest

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import Composing, all_of, config_map, rights_on
from tests.cluster.composition.test_composer_composing_troubles import said_of
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import FaultProxy

NUMBER = 40


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose requests are recorded."""
    return proxied_author


async def test_it_costs_one_review_in_a_while(author: Author, proxy: FaultProxy, group: str) -> None:
    composing = Composing(author, group)
    await composing.define()
    await composing.compose(config_map("settings"))
    names = [f"a-{number}" for number in range(NUMBER)]
    for each in names:
        await composing.create(each)
    start = len(proxy.requests)

    async def reviewed() -> bool:
        reviews = [each for each in proxy.requests[start:] if each.path.endswith("/selfsubjectaccessreviews")]
        return len(reviews) >= 6

    # Twice, of three rights each.
    await eventually(reviewed, seconds=60)
    one = re.compile(rf"/apis/{re.escape(group)}/v1/namespaces/default/things/a-\d+$")
    read = [each for each in proxy.requests[start:] if each.method == "GET" and one.search(each.path)]
    assert len(read) < NUMBER
    assert len(await said_of(author, composing.definition)) == 1
    async with rights_on(author, f"more-{group}", all_of(group), all_of("", "configmaps")):
        for each in names:
            await composing.ready(each)
        await composing.clean_up()
