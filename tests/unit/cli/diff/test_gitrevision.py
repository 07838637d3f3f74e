"""Files of a git revision are read whole, and many of them by few processes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crdkeeper.cli.diff import gitrevision
from crdkeeper.cli.diff.gitrevision import GitError, read_revision


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a commit of 300 files, and a git that writes down each call."""
    folder = tmp_path / "repository"
    (folder / "crds").mkdir(parents=True)
    for i in range(300):
        (folder / "crds" / f"{i:03}.yaml").write_text(f"number: {i}\n")
    (folder / "crds" / "ü.json").write_text("{}")
    (folder / "crds" / "notes.txt").write_text("no CRD")
    (folder / "crds" / "big.yaml").write_text("a: b\n" * 100)
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    git = programs / "git"
    git.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_a_folder_is_read_by_few_processes(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitrevision, "MAX_BYTES", 100)
    found = {each.name: each.content for each in read_revision("HEAD", "crds", repository)}
    assert found == {
        **{f"{i:03}.yaml": f"number: {i}\n".encode() for i in range(300)},
        "ü.json": b"{}",
        "big.yaml": None,
    }
    assert len((tmp_path / "calls").read_text().splitlines()) < 10


def test_a_single_file(repository: Path) -> None:
    (found,) = read_revision("HEAD", "crds/007.yaml", repository)
    assert (found.name, found.content) == ("", b"number: 7\n")
    assert list(read_revision("HEAD", "crds/none.yaml", repository)) == []


def test_a_git_that_ends_early(repository: Path, tmp_path: Path) -> None:
    git = tmp_path / "programs" / "git"
    git.write_text(git.read_text().replace("exec", '[ "$2" = --batch ] && exit 1\nexec'))
    with pytest.raises(GitError, match="git"):
        list(read_revision("HEAD", "crds", repository))
