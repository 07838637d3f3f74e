"""Which cluster a kubeconfig leads to, and as whom: as kubectl has it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.cluster.transport.connection import Connection

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
