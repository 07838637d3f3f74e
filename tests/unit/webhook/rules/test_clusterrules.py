"""The rules of a cluster: how they follow their bundles, and how they handle requests for unknown names."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from aiohttp import web

from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.cluster.resources.versionconversions import BUNDLE_KEY, BUNDLE_SELECTOR
from crdkeeper.cluster.transport.client import Answer, ApiError, Client, NoCredentials, Unreachable
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.core.conversion.bundle import packed
from crdkeeper.webhook.rules import clusterrules
from crdkeeper.webhook.rules.clusterrules import ClusterRules
from tests import virtualtime
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
    bundle = packed(spec, schemas)
    metadata = {"name": NAME, "resourceVersion": "7"}
    return {"metadata": metadata, "binaryData": {BUNDLE_KEY: base64.b64encode(bundle).decode()}}


@asynccontextmanager
async def started(directory: Path, *answers: Handler) -> AsyncIterator[tuple[LocalServer, ClusterRules]]:
    """Rules that found no bundle at first, and the server with the answers from then on."""
    async with serving(EMPTY) as server:
        rules = ClusterRules(Connection(kubeconfig(directory, server.url)), "here")
        await rules._load(await rules._connected())
        server.requests.clear()
        server.answers = list(answers)
        try:
            yield server, rules
        finally:
            await rules.close()


async def test_all_names_together_make_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(tmp_path, EMPTY) as (server, rules):
        await asyncio.gather(*map(rules.look_again, NAMES))
        assert server.seen == [("GET", f"{PATH}?labelSelector={BUNDLE_SELECTOR}")]
        monkeypatch.setattr(clusterrules, "_LOOK_PAUSE", 3600.0)
        await asyncio.gather(*map(rules.look_again, NAMES))
        assert len(server.requests) == 1
        assert rules.conversions == {}


async def test_an_api_server_that_hangs_is_asked_once_and_few_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusterrules, "_LOOK_SECONDS", 0.3)
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        asked.set()
        await go_on.wait()
        return await EMPTY(request)

    async with started(tmp_path, hang) as (server, rules):
        tasks = [asyncio.create_task(rules.look_again(each)) for each in NAMES]
        done, waiting = await asyncio.wait(tasks, timeout=0.1)
        assert (len(done), len(waiting)) == (400, 100)
        await asyncio.gather(*waiting)
        await asked.wait()
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


class Cluster:
    """An API server at the level of the client's request: its bundles, and the events of a watch."""

    def __init__(self, *bundles: dict[str, Any]) -> None:
        self.bundles = list(bundles)
        self.away: Exception | None = None
        self.home = Answer(200, b'{"metadata": {}}')
        self.tells: asyncio.Queue[dict[str, Any] | Exception] = asyncio.Queue()

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        assert (method, path) == ("GET", f"{PATH}?labelSelector={BUNDLE_SELECTOR}")
        if self.away is not None:
            raise self.away
        return {"metadata": {"resourceVersion": "5"}, "items": self.bundles}

    async def send(self, method: str, path: str) -> Answer:
        assert (method, path) == ("GET", "/api/v1/namespaces/here")
        return self.home

    async def lines(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        assert path.startswith(f"{PATH}?watch=true")
        while True:
            reported = await self.tells.get()
            if isinstance(reported, Exception):
                raise reported
            yield orjson.dumps(reported)

    def tell(self, type_: str, found: dict[str, Any]) -> None:
        self.tells.put_nowait({"type": type_, "object": found})

    def play(self, story: Callable[[ClusterRules], Coroutine[Any, Any, None]]) -> None:
        """Have rules follow this, and end once the story has been told."""

        async def main() -> None:
            rules, loaded = ClusterRules(Connection(), "here"), asyncio.Event()
            rules._client = cast(Client, self)
            running = asyncio.create_task(rules.run(loaded.set))
            telling = asyncio.create_task(story(rules))
            await asyncio.wait({running, telling}, return_when=asyncio.FIRST_COMPLETED)
            for each in (running, telling):
                if each.done():
                    each.result()
                each.cancel()
            await asyncio.wait({running, telling})

        virtualtime.run(main())


def changed(content: bytes = b"rubbish", version: str = "8") -> dict[str, Any]:
    found = config_map()
    found["metadata"]["resourceVersion"] = version
    found["binaryData"][BUNDLE_KEY] = base64.b64encode(content).decode()
    return found


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search ends when it has its answer."""
    monkeypatch.setattr(clusterrules, "_LOOK_SECONDS", 60.0)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Virtual time stands still while a thread compiles."""

    async def to_thread(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)


@pytest.mark.parametrize("away", [Unreachable("away"), ApiError(403, {}), ApiError(401, {})])
def test_rules_serve_on_while_the_api_server_refuses_and_are_current_after_that(away: Exception) -> None:
    cluster = Cluster(config_map())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        assert rules.conversions.keys() == {NAME}
        assert rules.unseen() == (0.0, "")
        cluster.away = away
        cluster.tells.put_nowait(ApiError(410, {}))
        await asyncio.sleep(300.0)
        assert rules.conversions.keys() == {NAME}
        assert rules.unseen()[1] == str(away)
        cluster.away, cluster.bundles = None, [changed()]
        await asyncio.sleep(60.0)
        assert rules.unseen() == (0.0, "")
        assert rules.problems.keys() == rules.conversions.keys() == {NAME}

    cluster.play(story)


@pytest.mark.parametrize("refusal", [NoCredentials("no token"), ApiError(401, {})])
def test_rules_serve_on_while_credentials_are_refused_for_hours(
    caplog: pytest.LogCaptureFixture, refusal: Exception
) -> None:
    cluster = Cluster(config_map())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        cluster.away = refusal
        cluster.tells.put_nowait(ApiError(401, {}))
        await asyncio.sleep(7200.0)
        assert rules.conversions.keys() == {NAME}
        seconds, why = rules.unseen()
        assert seconds > 0
        assert why == str(refusal)
        cluster.away, cluster.bundles = None, [changed()]
        await asyncio.sleep(60.0)
        assert rules.unseen() == (0.0, "")
        assert rules.problems.keys() == {NAME}

    cluster.play(story)
    assert len([each for each in caplog.messages if "for 10 minutes" in each]) == 1
    assert f"for 10 minutes ({refusal})" in caplog.text


@pytest.mark.parametrize("bundles", [(), None], ids=["no rules", "never listed"])
def test_credentials_that_are_refused_for_long_end_what_serves_nothing(bundles: tuple[()] | None) -> None:
    cluster = Cluster()
    if bundles is None:
        cluster.away = ApiError(401, {})

    async def story(_: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        cluster.away = ApiError(401, {})
        cluster.tells.put_nowait(ApiError(401, {}))
        await asyncio.sleep(1000.0)

    with pytest.raises(ApiError):
        cluster.play(story)


@pytest.mark.parametrize(("seconds", "ends"), [(60.0, True), (700.0, False)])
def test_credentials_refused_for_long_do_not_pass_for_an_uninstall(seconds: float, ends: bool) -> None:
    """A stop then waits for its clients, as any other."""
    cluster = Cluster(config_map())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        cluster.away = ApiError(401, {})
        cluster.home = Answer(401, b"{}")
        cluster.tells.put_nowait(ApiError(401, {}))
        await asyncio.sleep(seconds)
        stopping = asyncio.create_task(rules.uninstalled())
        done, _ = await asyncio.wait({stopping}, timeout=30.0)
        stopping.cancel()
        assert bool(done) is ends

    cluster.play(story)


async def test_changes_count_as_missed_since_the_first_run_and_not_since_the_last(tmp_path: Path) -> None:
    """The keeper of several processes runs the rules again and again while there are no credentials."""
    rules = ClusterRules(Connection(tmp_path / "none"), "here")
    for seconds in (0.0, 400.0, 400.0):
        rules._heard -= seconds
        with pytest.raises(ConfigurationError):
            await rules.run(lambda: None)
    assert rules.unseen()[0] >= 800.0


def test_what_is_deleted_serves_on_and_what_is_made_again_is_read(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(config_map())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        before = rules.conversions[NAME]
        cluster.tell("DELETED", config_map())
        cluster.tell("DELETED", config_map())
        await asyncio.sleep(1.0)
        assert rules.conversions[NAME] is before
        cluster.tell("ADDED", changed())
        await asyncio.sleep(1.0)
        assert rules.conversions[NAME] is before
        assert rules.problems.keys() == {NAME}
        cluster.tell("MODIFIED", config_map())
        await asyncio.sleep(1.0)
        assert rules.problems == {}

    cluster.play(story)
    assert caplog.text.count("its rules were deleted") == 1


def test_what_was_deleted_unseen_is_noticed_and_serves_on(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(config_map())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        cluster.bundles = []
        cluster.tells.put_nowait(ApiError(410, {}))
        await asyncio.sleep(60.0)
        assert rules.conversions.keys() == {NAME}

    cluster.play(story)
    assert caplog.text.count("its rules were deleted") == 1


def test_a_bundle_that_the_compiler_cannot_take_is_a_problem_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compile_conversion(*_: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(clusterrules, "compile_conversion", compile_conversion)
    cluster = Cluster(config_map())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        assert rules.problems == {NAME: "the rules cannot be compiled (RecursionError)"}
        assert rules.blocking == {NAME}
        monkeypatch.undo()

    cluster.play(story)


async def comes_again(cluster: Cluster, rules: ClusterRules) -> None:
    """A damaged bundle is deleted, and is there again: that keeps no replica out."""
    cluster.tell("DELETED", changed())
    await asyncio.sleep(1.0)
    assert rules.problems == {}
    cluster.tell("ADDED", changed())
    await asyncio.sleep(1.0)
    assert (list(rules.problems), rules.blocking) == ([NAME], set())


def test_a_damaged_bundle_that_is_added_takes_no_replica_out_of_the_service() -> None:
    cluster = Cluster()

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        cluster.tell("ADDED", changed())
        await asyncio.sleep(1.0)
        assert (list(rules.problems), rules.blocking) == ([NAME], set())
        cluster.tells.put_nowait(ApiError(410, {}))
        cluster.bundles = [changed()]
        await asyncio.sleep(60.0)
        assert (list(rules.problems), rules.blocking) == ([NAME], set())
        await comes_again(cluster, rules)

    cluster.play(story)


def test_a_bundle_that_was_damaged_at_the_start_blocks_until_it_is_deleted() -> None:
    cluster = Cluster(changed())

    async def story(rules: ClusterRules) -> None:
        await asyncio.sleep(1.0)
        assert rules.blocking & rules.problems.keys() == {NAME}
        await comes_again(cluster, rules)

    cluster.play(story)
