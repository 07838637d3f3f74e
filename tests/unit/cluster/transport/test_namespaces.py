"""The deletion of our namespace means an uninstall, and nothing else does."""

import asyncio
from pathlib import Path

import pytest

from crdkeeper.cluster.transport.client import Unreachable
from crdkeeper.cluster.transport.namespaces import Home, look_home, until_uninstalled
from tests import virtualtime
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json

LONG = 95.0


@pytest.mark.parametrize(
    ("answer", "home"),
    [
        (json({"metadata": {"name": "ours"}}), Home.STANDS),
        (json({"metadata": {"name": "ours", "deletionTimestamp": "2026-01-01T00:00:00Z"}}), Home.GOES),
        (failure(404, "NotFound", "gone"), Home.GOES),
        (failure(403, "Forbidden", "you may not"), Home.CLOSED),
        (failure(401, "Unauthorized", "who are you"), Home.CLOSED),
        (failure(500, "InternalError", "no"), Home.UNKNOWN),
        (failure(429, "TooManyRequests", "wait"), Home.UNKNOWN),
    ],
)
async def test_what_an_answer_says(tmp_path: Path, answer: Handler, home: Home) -> None:
    async with client_of(tmp_path, answer) as (server, client):
        assert await look_home(client, "ours") is home
    assert server.seen == [("GET", "/api/v1/namespaces/ours")]


@pytest.mark.parametrize(
    ("answers", "permitted", "uninstalled"),
    [
        ([Home.GOES], False, True),
        ([Home.STANDS, Home.STANDS, Home.GOES], True, True),
        ([Home.STANDS, Home.CLOSED], True, True),
        # An account that never had the permission proves nothing by lacking it.
        ([Home.CLOSED], False, False),
        ([Home.STANDS], True, False),
        ([Home.UNKNOWN], True, False),
        ([None], True, False),
        ([None, Home.GOES], True, True),
    ],
)
def test_when_it_is_an_uninstall(answers: list[Home | None], permitted: bool, uninstalled: bool) -> None:
    left = iter(answers)

    async def look() -> Home:
        found = next(left, answers[-1])
        if found is None:
            raise Unreachable("no answer")
        return found

    async def returned() -> bool:
        try:
            async with asyncio.timeout(LONG):
                await until_uninstalled(look, permitted=permitted)
        except TimeoutError:
            return False
        return True

    assert virtualtime.run(returned()) is uninstalled
