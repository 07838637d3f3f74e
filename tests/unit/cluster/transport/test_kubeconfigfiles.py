"""Which files count as a kubeconfig: as for kubectl, those that have content."""

import os
from pathlib import Path
from threading import Thread

import pytest

from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from tests.unit.cluster.transport.test_kubeconfig import config, use


@pytest.mark.parametrize("written", [None, "", "---\n# nothing: yet\n"], ids=["missing", "empty", "comment"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
async def test_those_without_content_are_passed_over(
    written: str | None, first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, other = config(tmp_path / "config"), tmp_path / "other"
    if written is not None:
        other.write_text(written)
    use(monkeypatch, *((other, whole) if first else (whole, other)))
    connection = Connection()
    await connection.load()
    assert connection.host == "https://this.example.com"


async def test_a_tilde_is_left_to_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first").write_text("clusters: []\n")
    config(tmp_path / "config")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/first{os.pathsep}~/config")
    connection = Connection()
    await connection.load()
    assert connection.host == "https://this.example.com"


@pytest.mark.parametrize(
    ("listed", "said"), [("{}/missing:", "there is no "), ("{}/missing:{}/empty", "there is nothing in ")]
)
async def test_one_must_have_content(
    listed: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    files = listed.replace("{}", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", files)
    with pytest.raises(ConfigurationError) as raised:
        await Connection().load()
    assert str(raised.value).startswith(f"No cluster configured: {said}{files}. ")


async def test_one_that_is_empty_while_it_is_written_is_waited_for(tmp_path: Path) -> None:
    path = config(tmp_path / "config")
    connection = Connection(path)
    await connection.load()
    path.write_text("")
    with pytest.raises(ConfigurationError, match="there is nothing in"):
        await connection.renew(connection.renewals)
    assert await connection.authorization() == "Bearer t"
    config(path, user={"token": "renewed"})
    await connection.renew(connection.renewals)
    assert await connection.authorization() == "Bearer renewed"


async def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """As for `--kubeconfig <(decrypt FILE)`."""
    pipe, content = tmp_path / "pipe", config(tmp_path / "config").read_text()
    os.mkfifo(pipe)
    Thread(target=pipe.write_text, args=(content,), daemon=True).start()
    connection = Connection(pipe)
    await connection.load()
    assert connection.host == "https://this.example.com"
