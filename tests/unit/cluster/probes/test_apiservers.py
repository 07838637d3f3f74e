"""What API servers are asked about built-in resources, and what their metrics may do to that."""

import asyncio
from itertools import cycle
from pathlib import Path

import pytest
from aiohttp import web

from crdkeeper.cluster.probes import apiservers
from crdkeeper.cluster.probes.apiservers import ask_all
from crdkeeper.core.builtins.view import METRIC, EncryptedBy, ServerAnswer, StoredAs, server_hash
from tests.unit.builders import lease
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, hang_up, json, page

HASH = "S6u1pOWzb84="
SECRETS = StoredAs("", "secrets", HASH, "v1")
DISCOVERED = json(
    {
        "resources": [
            {
                "name": "secrets",
                "kind": "Secret",
                "verbs": ["get", "list", "patch"],
                "storageVersionHash": HASH,
            }
        ]
    }
)
NOT_FOUND = failure(404, "NotFound", "no such path")
NEW = {"gitVersion": "v1.37.1-eks-1"}
SHOWN = f'{METRIC}{{apiserver_id_hash="sha256:1",hash="sha256:abc"}} 1\n'


async def silent(_: web.Request) -> web.Response:
    await asyncio.sleep(2.0)
    return web.Response()


async def ask(
    tmp_path: Path,
    metrics: Handler,
    *,
    servers: int = 1,
    said: dict[str, Handler] | None = None,
    wanted: bool = True,
) -> tuple[list[ServerAnswer], int]:
    """The answers of API servers with these metrics, and how often those were read."""
    read = 0
    others = {"/api": NOT_FOUND, "/version": NOT_FOUND, **(said or {})}

    async def answer(request: web.Request) -> web.Response:
        nonlocal read
        if request.path in others:
            return await others[request.path](request)
        if request.path != "/metrics":
            return await DISCOVERED(request)
        read += 1
        return await metrics(request)

    async with client_of(tmp_path, answer) as (_, client):
        leases = [lease(f"s{number}", expires_in=10**9) for number in range(servers)]
        return await ask_all(client, [("", "v1")], leases, metrics=wanted), read


async def test_the_configuration_is_in_the_metrics(tmp_path: Path) -> None:
    answers, _ = await ask(tmp_path, page(SHOWN, 200))
    assert answers == [ServerAnswer([SECRETS], EncryptedBy("sha256:1", "abc"))]


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        (failure(403, "Forbidden", "you may not"), "forbidden"),
        (failure(404, "NotFound", "no such path"), "404 no such path"),
        (page("<html>no</html>", 502), "502 <html>no</html>"),
        (hang_up, "GET /metrics: Server disconnected"),
        (silent, "no end in 0 s"),
    ],
    ids=["forbidden", "not passed on", "proxy", "hung up", "silent"],
)
async def test_without_metrics_storage_versions_are_known(
    tmp_path: Path, metrics: Handler, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if metrics is silent:
        monkeypatch.setattr(apiservers, "_METRICS_SECONDS", 0.3)
    answers, read = await ask(tmp_path, metrics, servers=2)
    assert set(map(repr, answers)) == {repr(ServerAnswer([SECRETS], None, why))}
    # aiohttp repeats a request whose connection was lost.
    assert len(answers) == 8
    assert read <= 2


async def test_nothing_is_read_of_families_behind_the_metric(tmp_path: Path) -> None:
    text = "# TYPE apiserver_audit_event_total counter\n# TYPE apiserver_request_total counter\n"
    answers, _ = await ask(tmp_path, page(text + SHOWN, 200))
    assert answers == [ServerAnswer([SECRETS], EncryptedBy("", ""))]


def addresses(*names: str) -> Handler:
    """`/api` of API servers that answer in turn."""
    turn = cycle(names)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(
            {"serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": next(turn)}]}
        )

    return answer


async def test_servers_that_advertise_addresses_are_asked_once_each(tmp_path: Path) -> None:
    said = {"/api": addresses("a:6443", "b:6443", "a:6443", "c:6443"), "/version": json(NEW)}
    answers, read = await ask(tmp_path, page("", 200), servers=3, said=said)
    assert [each.address for each in answers] == ["a:6443", "b:6443", "a:6443", "c:6443"]
    assert read == 4
    assert all(each.has_metric for each in answers)


async def test_metrics_are_left_out_on_request(tmp_path: Path) -> None:
    answers, read = await ask(tmp_path, page(SHOWN, 200), wanted=False, said={"/version": json(NEW)})
    assert (answers, read) == ([ServerAnswer([SECRETS], EncryptedBy("", ""))], 0)


@pytest.mark.parametrize(
    "answer",
    [
        failure(403, "Forbidden", "you may not"),
        page("<html>no</html>", 502),
        page("[]", 200),
        hang_up,
        json({}),
        json({"serverAddressByClientCIDRs": "x", "gitVersion": ["v1.37.0"]}),
        json({"serverAddressByClientCIDRs": [{"serverAddress": 1}], "gitVersion": "v1.37"}),
        json({"serverAddressByClientCIDRs": ["x"], "gitVersion": "v1.35.9"}),
        json({"serverAddressByClientCIDRs": [], "gitVersion": "v1." + "9" * 10_000 + ".0"}),
    ],
)
async def test_what_is_not_said_is_not_known(tmp_path: Path, answer: Handler) -> None:
    (found,), _ = await ask(tmp_path, page("", 200), said={"/api": answer, "/version": answer})
    assert found == ServerAnswer([SECRETS], EncryptedBy("", ""), "", "", False)


@pytest.mark.parametrize(
    ("release", "has"), [("v1.36.0", True), ("v1.37.1+k3s1", True), ("v2.0.0", True), ("v1.9.0", False)]
)
async def test_a_release_has_the_metric(tmp_path: Path, release: str, has: bool) -> None:
    (found,), _ = await ask(tmp_path, page("", 200), said={"/version": json({"gitVersion": release})})
    assert found.has_metric is has


async def test_all_that_is_said_of_a_server_was_said_on_one_connection(tmp_path: Path) -> None:
    """A balancer leads each connection to the next server, and reading metrics ends one."""
    servers: dict[tuple[str, int], str] = {}

    def server(request: web.Request) -> str:
        assert request.transport is not None
        return servers.setdefault(request.transport.get_extra_info("peername"), f"s{len(servers) % 3}")

    async def api(request: web.Request) -> web.Response:
        return await addresses(server(request))(request)

    async def metrics(request: web.Request) -> web.Response:
        line = f'{METRIC}{{apiserver_id_hash="{server_hash(server(request))}",hash="sha256:abc"}} 1\n'
        return web.Response(text=line + "# more\n" * 1_000_000)

    answers, _ = await ask(tmp_path, metrics, servers=3, said={"/api": api})
    assert [(each.address, each.configuration) for each in answers] == [
        (name, EncryptedBy(server_hash(name), "abc")) for name in ("s0", "s1", "s2")
    ]
