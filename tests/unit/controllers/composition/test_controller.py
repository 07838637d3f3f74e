"""The controller of Compositions with an API server whose watches say nothing, in virtual time."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any, cast

import orjson

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.cluster.resources.compositions import COMPOSITIONS, REVISIONS
from crdkeeper.cluster.transport.client import Answer, ApiError, Client
from crdkeeper.controllers.composition import judging
from crdkeeper.controllers.composition.controller import Compositions
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.templates.compilation import compile_composition
from tests import virtualtime
from tests.unit.builders import NOW
from tests.unit.core.composition.documents import document
from tests.unit.core.revisions.revisions import composition

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/databases.platform.example.com"
COMPOSITES = "/apis/platform.example.com/v1/databases"
SMALL = f"{COMPOSITIONS}/small"
CONFIG_MAP = {"group": "", "version": "v1", "kind": "ConfigMap"}


def _crd() -> Json:
    made = copy.deepcopy(accept(document()).crd)
    assert made is not None
    made["metadata"] |= {"uid": "crd", "resourceVersion": "1", "generation": 1}
    made["metadata"]["annotations"] = {DEFINITION_UID: "u"}
    made["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    return made


class Server:
    """Stores objects by path. Its watches are open and silent: what is known gets old."""

    def __init__(self) -> None:
        core = "/openapi/v3/api/v1?hash=1"
        schema = {"type": "object", "x-kubernetes-group-version-kind": [CONFIG_MAP]}
        paths = {
            "/api/v1/namespaces/{namespace}/x": {"post": {"x-kubernetes-group-version-kind": CONFIG_MAP}}
        }
        self.objects: dict[str, Json] = {
            CRD: _crd(),
            "/openapi/v3": {"paths": {"api/v1": {"serverRelativeURL": core}}},
            core: {"openapi": "3.0.0", "paths": paths, "components": {"schemas": {"ConfigMap": schema}}},
            "/apis/platform.example.com/v1": {"resources": [{"name": "databases", "kind": "Database"}]},
        }
        self.requests: list[tuple[str, str]] = []
        self.composites: list[Json] | Exception = []
        self.undeletable: list[Exception] = []
        """What the next deletions meet."""
        self._version = 1
        self.admit: Callable[[Json, bool], None] = lambda made, dry_run: None
        """Changes what is to be created, as an admission webhook does."""

    def now(self) -> datetime:
        return NOW

    async def request(self, method: str, path: str, body: Json = None, **_: Any) -> Json:
        """Like `Client.request`."""
        self.requests.append((method, path))
        path = path if path.startswith("/openapi") else path.partition("?")[0]
        if path == COMPOSITES:
            if isinstance(self.composites, Exception):
                raise self.composites
            return {"metadata": {}, "items": self.composites}
        if method == "PATCH":
            owner = path.removesuffix("/status")
            self.objects[owner] = {**self.objects[owner], "status": body["status"]}
            return self.objects[owner]
        if method == "DELETE":
            if self.undeletable:
                raise self.undeletable.pop()
            return dict(self.objects.pop(path))
        below = [each for key, each in self.objects.items() if key.rpartition("/")[0] == path]
        if below or path in (REVISIONS, COMPOSITIONS, CRDS):
            return {"metadata": {"resourceVersion": str(self._version)}, "items": below}
        if path not in self.objects:
            raise ApiError(404, {"message": "not found"})
        return dict(self.objects[path])

    async def send(self, method: str, path: str, *, content: bytes) -> Answer:
        """Like `Client.send`, for what creates an object."""
        self.requests.append((method, path))
        made = orjson.loads(content)
        name = f"{path.partition('?')[0]}/{made['metadata']['name']}"
        if name in self.objects:
            return Answer(409, b'{"message": "exists", "reason": "AlreadyExists"}')
        made["metadata"]["uid"] = name
        self.admit(made, "dryRun=All" in path)
        if "dryRun=All" not in path:
            self.store(name, made)
        return Answer(201, orjson.dumps(made))

    def store(self, path: str, made: Json) -> None:
        """Have an object under a new resourceVersion."""
        self._version += 1
        made["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = made

    async def lines(self, path: str, **_: Any) -> AsyncIterator[bytes]:
        """Like `Client.lines`."""
        await asyncio.Event().wait()
        yield b""

    def revisions(self) -> list[str]:
        """The names of all revisions."""
        return sorted(key.rpartition("/")[2] for key in self.objects if key.startswith(f"{REVISIONS}/"))

    def put(self, engine: str, limit: int = 10) -> None:
        """A user changes the Composition."""
        found = composition(engine)
        before: Json = self.objects.get(SMALL, found)
        found["spec"]["revisionHistoryLimit"] = limit
        found["metadata"] |= {
            "generation": before["metadata"]["generation"] + 1,
            "resourceVersion": "1",
        }
        self.objects[SMALL] = {**found, "status": before.get("status", {})}


def play(act: Callable[[Server, Compositions], Awaitable[None]], begin: Callable[[Server], None]) -> None:
    async def main() -> None:
        server = Server()
        begin(server)
        controller = Compositions(
            cast(Client, server), ClusterState(), OperatorMetrics().composer_writes, identity="a"
        )
        task = asyncio.create_task(controller.run())
        await asyncio.sleep(2.0)
        await act(server, controller)
        task.cancel()

    virtualtime.run(main())


def test_a_revision_that_no_watch_has_shown_is_found_by_its_name() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        assert server.revisions() == ["small-1"]
        # Another composer has made the next ones.
        server.put("b")
        for number, engine in ((2, "b"), (3, "c")):
            made = copy.deepcopy(server.objects[f"{REVISIONS}/small-1"])
            made["metadata"]["name"] = f"small-{number}"
            made["spec"] |= {"revision": number, "resources": composition(engine)["spec"]["resources"]}
            server.store(f"{REVISIONS}/small-{number}", made)
        controller.queue.add("small")
        await asyncio.sleep(10.0)
        assert server.revisions() == ["small-1", "small-2", "small-3", "small-4"]
        assert server.objects[SMALL]["status"]["revision"] == 4

    play(act, lambda server: server.put("a"))


def test_at_rest_nothing_is_written_or_compiled(monkeypatch: Any) -> None:
    compiled: list[str] = []

    def compiling(spec: Any, *rest: Any) -> Any:
        compiled.append(spec.resources[0].name)
        return compile_composition(spec, *rest)

    async def act(server: Server, controller: Compositions) -> None:
        since = len(server.requests)
        for _ in range(3):
            controller.queue.add("small")
            await asyncio.sleep(10.0)
        assert {method for method, _ in server.requests[since:]} == {"GET"}
        assert not any("hash=" in path for _, path in server.requests[since:])
        assert compiled == ["settings"]
        server.put("b")
        controller.queue.add("small")
        await asyncio.sleep(10.0)
        assert compiled == ["settings"] * 2

    monkeypatch.setattr(judging, "compile_composition", compiling)
    play(act, lambda server: server.put("a"))


def test_one_that_begins_to_compose_a_kind_of_crdkeeper_keeps_its_revision() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        assert server.revisions() == ["small-1"]
        server.put("b")
        template = server.objects[SMALL]["spec"]["resources"][0]["template"]
        template |= {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "StorageMigration"}
        controller.queue.add("small")
        await asyncio.sleep(10.0)
        assert server.revisions() == ["small-1"]
        valid = {each["type"]: each for each in server.objects[SMALL]["status"]["conditions"]}["Valid"]
        assert (valid["status"], valid["reason"]) == ("False", "Invalid")
        assert "cannot compose a StorageMigration" in valid["message"]

    play(act, lambda server: server.put("a"))


def test_revisions_outlive_their_composition_while_they_are_used() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        server.composites = [{"status": {"crdkeeper": {"revision": "small-1"}}}]
        server.put("b")
        controller.queue.add("small")
        await asyncio.sleep(5.0)
        del server.objects[SMALL]
        controller.queue.add("small")
        await asyncio.sleep(30.0)
        assert server.revisions() == ["small-1"]
        # Nobody announces that the composite is gone.
        server.composites = []
        await asyncio.sleep(700.0)
        assert server.revisions() == []

    play(act, lambda server: server.put("a"))


def test_nothing_is_deleted_while_composites_cannot_be_listed() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        server.composites = ApiError(403, {"message": "forbidden"})
        server.put("b", limit=0)
        controller.queue.add("small")
        await asyncio.sleep(300.0)
        assert server.revisions() == ["small-1", "small-2"]
        lists = sum(path.startswith(COMPOSITES) for _, path in server.requests)
        assert 2 <= lists <= 8
        server.composites = []
        await asyncio.sleep(120.0)
        assert server.revisions() == ["small-2"]

    play(act, lambda server: server.put("a"))


def test_what_keeps_old_revisions_is_said_until_they_are_deleted() -> None:
    def statuses(server: Server) -> int:
        return sum(method == "PATCH" for method, _ in server.requests)

    async def act(server: Server, controller: Compositions) -> None:
        denied = ApiError(403, {"message": "they are guarded", "reason": "Forbidden"})
        server.put("b", limit=0)
        # The first failure passes by itself; it is none for a person.
        server.undeletable = [denied, denied, ApiError(500, {"message": "broken"})]
        controller.queue.add("small")
        await asyncio.sleep(30.0)
        assert _ready(server)[0] == "Current"
        await asyncio.sleep(60.0)
        reason, message = _ready(server)
        assert reason == "RevisionsKept"
        assert message.endswith("cannot be deleted: they are guarded")
        # Another process, and another failure of the same kind.
        since = statuses(server)
        other = Compositions(
            cast(Client, server), ClusterState(), OperatorMetrics().composer_writes, identity="b"
        )
        task = asyncio.create_task(other.run())
        await asyncio.sleep(20.0)
        task.cancel()
        assert (server.undeletable, statuses(server)) == ([], since)
        await asyncio.sleep(100.0)
        assert server.revisions() == ["small-2"]
        assert _ready(server)[0] == "Current"

    play(act, lambda server: server.put("a"))


def test_an_error_in_crdkeeper_concerns_one_composition(monkeypatch: Any) -> None:
    def fails(*_: Any) -> None:
        raise RecursionError("secret text")

    async def act(server: Server, controller: Compositions) -> None:
        conditions = {each["type"]: each for each in server.objects[SMALL]["status"]["conditions"]}
        assert (conditions["Valid"]["status"], conditions["Valid"]["reason"]) == ("False", "Invalid")
        assert "RecursionError" in conditions["Valid"]["message"]
        assert "secret" not in conditions["Valid"]["message"]

    monkeypatch.setattr(judging, "compile_composition", fails)
    play(act, lambda server: server.put("a"))


def _prunes(made: Json, dry_run: bool) -> None:
    del made["spec"]["resources"][0]["template"]["data"]


def _prunes_in_earnest(made: Json, dry_run: bool) -> None:
    if not dry_run:
        _prunes(made, dry_run)


def _with_a_webhook(server: Server) -> None:
    server.admit = _prunes_in_earnest
    server.put("a")


def _ready(server: Server) -> tuple[str, str]:
    ready = {each["type"]: each for each in server.objects[SMALL]["status"]["conditions"]}["Ready"]
    return ready["reason"], ready["message"]


def test_a_revision_that_would_be_stored_with_other_content_is_not_created() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        await asyncio.sleep(60.0)
        assert server.revisions() == []
        reason, message = _ready(server)
        assert reason == "RevisionFailed"
        assert "the API server changes spec.resources[0].template.data. The CRD" in message
        assert sum(path.startswith(REVISIONS) and method == "POST" for method, path in server.requests) <= 6
        # As after the rest of an upgrade.
        server.admit = lambda made, dry_run: None
        await asyncio.sleep(20.0)
        assert server.revisions() == ["small-1"]
        assert _ready(server)[0] == "Current"

    def begin(server: Server) -> None:
        server.admit = _prunes
        server.put("a")

    play(act, begin)


def test_what_a_webhook_that_does_nothing_in_a_dry_run_changes_is_not_used() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        await asyncio.sleep(1_000.0)
        assert server.revisions() == []
        assert _ready(server)[0] == "RevisionFailed"
        made = [each for each in server.requests if each[0] == "POST" and "dryRun" not in each[1]]
        assert 3 <= len(made) <= 8
        server.admit = lambda made, dry_run: None
        server.put("b")
        controller.queue.add("small")
        await asyncio.sleep(10.0)
        assert len(server.revisions()) == 1
        assert _ready(server)[0] == "Current"

    play(act, _with_a_webhook)


def test_a_webhook_that_is_mended_lets_the_revision_be_made() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        await asyncio.sleep(60.0)
        assert server.revisions() == []
        server.admit = lambda made, dry_run: None
        await asyncio.sleep(130.0)
        assert server.revisions() == ["small-1"]
        assert _ready(server)[0] == "Current"

    play(act, _with_a_webhook)


def test_what_a_webhook_has_changed_is_deleted_as_soon_as_that_works() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        assert server.revisions() == ["small-1"]
        reason, message = _ready(server)
        assert reason == "RevisionFailed"
        assert "with that change, and cannot be deleted: 403 Forbidden: denied" in message
        await asyncio.sleep(60.0)
        assert server.undeletable == []
        made = [each for each in server.requests if each[0] == "POST" and "dryRun" not in each[1]]
        assert server.revisions() == []
        assert len(made) <= 4
        server.admit = lambda made, dry_run: None
        await asyncio.sleep(130.0)
        assert len(server.revisions()) == 1
        assert _ready(server)[0] == "Current"

    def begin(server: Server) -> None:
        _with_a_webhook(server)
        denied = ApiError(403, {"message": "denied", "reason": "Forbidden"})
        server.undeletable = [ApiError(409, {"message": "changed"}), denied]

    play(act, begin)


def test_what_cannot_be_deleted_does_not_hold_up_other_content() -> None:
    async def act(server: Server, controller: Compositions) -> None:
        await asyncio.sleep(600.0)
        assert server.revisions() == ["small-1"], "one, however long the webhook does that"
        server.admit = lambda made, dry_run: None
        server.put("b")
        controller.queue.add("small")
        await asyncio.sleep(10.0)
        assert server.revisions() == ["small-1", "small-2"]
        assert _ready(server)[0] == "Current"

    def begin(server: Server) -> None:
        _with_a_webhook(server)
        server.undeletable = [ApiError(403, {"message": "denied", "reason": "Forbidden"})] * 1_000

    play(act, begin)
