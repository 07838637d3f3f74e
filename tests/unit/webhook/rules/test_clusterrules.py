"""Names that are not known, at /convert: what anybody may ask for, and what the API server hears of it."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.cluster.resources.versionconversions import BUNDLE_KEY, BUNDLE_SELECTOR
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.bundle import packed
from crdkeeper.webhook.rules import clusterrules
from crdkeeper.webhook.rules.clusterrules import ClusterRules
from tests.benchmark import conversionsubject as subject
from tests.unit.cluster.transport.localserver import Handler, LocalServer, json, kubeconfig, serving

GROUP = "example.com"
NAME = f"crontabs.{GROUP}"
PATH = "/api/v1/namespaces/here/configmaps"
EMPTY = json({"metadata": {"resourceVersion": "1"}, "items": []})
NAMES = [f"n{number}.example.com" for number in range(500)]


def config_map() -> dict[str, Any]:
    spec = VersionConversion.model_validate(subject.rules(GROUP)).spec
    schemas = schemas_of(subject.definition(GROUP, {"url": "https://example.com/"}))
    bundle = packed(spec, schemas, spec.hub)
    metadata = {"name": NAME, "resourceVersion": "7"}
    return {"metadata": metadata, "binaryData": {BUNDLE_KEY: base64.b64encode(bundle).decode()}}


@asynccontextmanager
async def started(directory: Path, *answers: Handler) -> AsyncIterator[tuple[LocalServer, ClusterRules]]:
    """Rules that have found no bundle at first, and the server that answers so from then on."""
    async with serving(EMPTY) as server:
        rules = ClusterRules(Connection(kubeconfig(directory, server.url)), "here")
        await rules.start()
        server.requests.clear()
        server.answers = list(answers)
        try:
            yield server, rules
        finally:
            await (await rules._connected()).__aexit__(None, None, None)


async def test_all_names_together_make_one_request(tmp_path: Path) -> None:
    async with started(tmp_path, EMPTY) as (server, rules):
        await asyncio.gather(*map(rules.look_again, NAMES))
        assert server.seen == [("GET", f"{PATH}?labelSelector={BUNDLE_SELECTOR}")]
        await asyncio.gather(*map(rules.look_again, NAMES))
        assert len(server.requests) == 1
        assert rules.conversions == {}


async def test_an_api_server_that_hangs_is_asked_once_and_few_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusterrules, "_LOOK_SECONDS", 0.3)
    go_on = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await go_on.wait()
        return await EMPTY(request)

    async with started(tmp_path, hang) as (server, rules):
        tasks = [asyncio.create_task(rules.look_again(each)) for each in NAMES]
        done, waiting = await asyncio.wait(tasks, timeout=0.1)
        assert (len(done), len(waiting)) == (400, 100)
        await asyncio.gather(*waiting)
        await asyncio.gather(*map(rules.look_again, NAMES))
        assert len(server.requests) == 1
        go_on.set()


@pytest.mark.parametrize("name", ["crontabs", "..", "a..b", "A.example.com", "a.b%2f..", "x." * 200, "a.b\n"])
async def test_what_can_be_no_name_is_not_looked_for(tmp_path: Path, name: str) -> None:
    async with started(tmp_path, EMPTY) as (server, rules):
        await rules.look_again(name)
        assert server.requests == []


async def test_new_rules_are_found_before_the_watch_tells_of_them(tmp_path: Path) -> None:
    found = config_map()

    listed = {"metadata": {"resourceVersion": "8"}, "items": [{"metadata": found["metadata"]}]}

    async def answer(request: web.Request) -> web.Response:
        if request.path == f"{PATH}/{NAME}":
            return await json(found)(request)
        assert "PartialObjectMetadataList" in request.headers["Accept"]
        return await json(listed)(request)

    async with started(tmp_path, answer) as (server, rules):
        await rules.look_again(NAME)
        assert rules.conversions.keys() == {NAME}
        assert [path for _, path in server.seen] == [
            f"{PATH}?labelSelector={BUNDLE_SELECTOR}",
            f"{PATH}/{NAME}",
        ]
