"""Which cluster a kubeconfig leads to, and as whom: as kubectl has it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from tests.unit.cluster.transport.localserver import failure, json, serving

Json = Any


def config(
    path: Path,
    current: str = "this",
    user: Mapping[str, Json] | None = None,
    cluster: Mapping[str, Json] | None = None,
    **servers: str,
) -> Path:
    """A kubeconfig with a context for each server, all with the same user and details of the cluster."""
    names = servers or {"this": "https://this.example.com"}
    document = {
        "current-context": current,
        "contexts": [{"name": each, "context": {"cluster": each, "user": "u"}} for each in names],
        "clusters": [
            {"name": name, "cluster": {"server": at, **(cluster or {})}} for name, at in names.items()
        ],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else dict(user)}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def use(monkeypatch: pytest.MonkeyPatch, *files: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))


@pytest.mark.parametrize("first", ["", "one"])
async def test_the_first_of_several_files_says_which_cluster(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = config(tmp_path / "1", first, one="https://one.example.com", two="https://first.example.com")
    two = config(tmp_path / "2", "two", two="https://two.example.com")
    three = config(tmp_path / "3", "three", three="https://three.example.com")
    use(monkeypatch, tmp_path / "missing", one, two, three)
    connection = Connection()
    await connection.load()
    # The entry of that name, too, is that of the first file that has one.
    assert connection.host == ("https://one.example.com" if first else "https://first.example.com")
    named = Connection(context="three")
    await named.load()
    assert named.host == "https://three.example.com"


async def test_another_current_context_does_not_move_what_runs(tmp_path: Path) -> None:
    """Neither when credentials are read again, nor for a second client."""
    path = tmp_path / "config"
    async with (
        serving(failure(401, "Unauthorized"), json({})) as ours,
        serving(json({})) as theirs,
        Client(Connection(config(path, "ours", ours=ours.url, theirs=theirs.url))) as client,
    ):
        config(path, "theirs", {"token": "renewed"}, ours=ours.url, theirs=theirs.url)
        await client.request("PATCH", "/x", {})
        async with Client(client.connection) as second:
            await second.request("GET", "/y")
    assert theirs.requests == []
    assert [each.path for each in ours.requests] == ["/x", "/x", "/y"]
    assert [each.headers["Authorization"] for each in ours.requests[1:]] == ["Bearer renewed"] * 2


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"server": "https://elsewhere.example.com"}, "the server of the context 'this'"),
        ({"proxy-url": "http://proxy.example.com"}, "the proxy-url of"),
        ({"certificate-authority-data": "b3RoZXI="}, "the certificate authority of"),
        ({"insecure-skip-tls-verify": True}, "the insecure-skip-tls-verify of"),
        ({"tls-server-name": "elsewhere"}, "the tls-server-name of"),
    ],
)
async def test_nothing_is_sent_where_the_kubeconfig_leads_later(
    cluster: Mapping[str, Json], words: str, tmp_path: Path
) -> None:
    connection = Connection(config(tmp_path / "config"))
    await connection.load()
    config(tmp_path / "config", user={"token": "theirs"}, cluster=cluster)
    for attempt in (connection.renew, connection.kopf_login):
        with pytest.raises(ConfigurationError, match=words):
            await attempt()
    await connection.load()
    assert connection.host == "https://this.example.com"
    assert await connection.authorization() == "Bearer t"
    config(tmp_path / "config", user={"token": "renewed"})
    await connection.renew()
    assert await connection.authorization() == "Bearer renewed"
