"""No write of a pass that is only tried is stored, whatever the pass sends."""

from typing import Any

import pytest

from crdkeeper.cluster.resources.kindpaths import ServedKind
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.composite.trying import TrialClient
from crdkeeper.core.conversion.nesting import dumps, loads

Json = Any
KIND = ServedKind("example.com/v1", "Database", "databases", True)
HOME = ServedKind("example.com/v2", "Database", "databases", True)
COMPOSITE = {
    "apiVersion": "example.com/v1",
    "kind": "Database",
    "metadata": {"name": "orders", "namespace": "shop", "uid": "u", "resourceVersion": "1"},
}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "uid": "m"}}
PATH = "/api/v1/namespaces/shop/configmaps/a"


class Server(Client):
    """Notes what it is sent, and answers in order, or else with a ConfigMap."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(Connection())
        self._answers = list(answers)
        self.sent: list[tuple[str, str]] = []
        self.deletions: list[Json] = []
        """The options of requests to delete: in the query they have no effect beside a body."""

    async def send(self, method: str, path: str, **more: Any) -> Answer:
        """One request."""
        self.sent.append((method, path))
        if method == "DELETE":
            self.deletions.append(loads(more["content"]))
        return self._answers.pop(0) if self._answers else Answer(200, dumps(MAP))

    @property
    def writes(self) -> list[str]:
        """The paths of all that are no reads."""
        return [path for method, path in self.sent if method != "GET"]


@pytest.fixture
def server() -> Server:
    return Server()


async def test_every_write_is_a_dry_run_and_none_is_to_the_composite(server: Server) -> None:
    trial = TrialClient(server, COMPOSITE, KIND, HOME)
    await trial.send(
        "PATCH", f"{PATH}?fieldManager=x&force=true", content=dumps(MAP), content_type=APPLY_PATCH
    )
    await trial.send("POST", "/api/v1/namespaces/shop/configmaps?dryRun=All&fieldManager=x", content=b"{}")
    await trial.send("POST", "/api/v1/namespaces/shop/configmaps", content=b"{}")
    await trial.request("PATCH", f"{PATH}-2", {"metadata": {}}, content_type=MERGE_PATCH, once=True)
    await trial.request("DELETE", f"{PATH}-3", {"preconditions": {}}, once=True)
    await trial.send_lean("PUT", f"{PATH}-4", content=b"{}", content_type="application/json", accept="*/*")
    assert len(server.writes) == 6
    assert all(path.count("dryRun=All") == 1 for path in server.writes), server.writes
    assert server.deletions == [{"preconditions": {}, "dryRun": ["All"]}]
    server.sent.clear()
    for kind in (KIND, HOME):
        own = kind.path("shop", "orders")
        body = {"metadata": {"finalizers": ["x"]}}
        held = await trial.request("PATCH", f"{own}?fieldManager=x", body, content_type=MERGE_PATCH)
        assert held["metadata"] == {**COMPOSITE["metadata"], "finalizers": ["x"]}  # type: ignore[dict-item]
        status = await trial.request("PATCH", f"{own}/status?force=true", {"status": {"a": 1}})
        assert status["status"] == {"a": 1}
    assert server.sent == []


async def test_later_reads_see_what_was_tried(server: Server) -> None:
    trial = TrialClient(server, COMPOSITE, KIND)
    changed = {**MAP, "data": {"x": "y"}}
    server = Server(Answer(200, dumps(MAP)), Answer(200, dumps(changed)))
    trial = TrialClient(server, COMPOSITE, KIND)
    await trial.send("PATCH", f"{PATH}?fieldManager=x", content=dumps(MAP))
    assert (await trial.request("GET", PATH))["data"] == {"x": "y"}
    (tried,) = trial.tried.values()
    assert (tried.before, tried.after) == (MAP, changed)
    await trial.request("DELETE", PATH, {}, once=True)
    assert (await trial.send("GET", PATH)).code == 404
    assert (tried.before, tried.after) == (MAP, None)
    number = len(server.sent)
    created = await trial.send("PATCH", f"{PATH}?fieldManager=x", content=dumps({**MAP, "data": {"z": "1"}}))
    assert (created.code, created.json()["data"], len(server.sent)) == (201, {"z": "1"}, number)
    assert tried.after is not None
    assert tried.after["data"] == {"z": "1"}


async def test_what_is_refused_changes_nothing_and_others_come_first() -> None:
    refused = Answer(422, dumps({"kind": "Status", "message": "no"}))
    server = Server(Answer(200, dumps(MAP)), Answer(429, b"{}", 0.001), refused)
    trial = TrialClient(server, COMPOSITE, KIND)
    answer = await trial.send("PATCH", f"{PATH}?fieldManager=x", content=dumps(MAP))
    assert answer.code == 422
    assert len(server.writes) == 2
    assert trial.tried == {}
    assert (await trial.request("GET", PATH))["metadata"]["uid"] == "m"
