"""Files of a git revision are read whole, and many of them by few processes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crdkeeper.cli.diff import gitrevision
from crdkeeper.cli.diff.gitrevision import GitError, NotInRevision, read_revision


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


def link(repository: Path, **links: str) -> None:
    """A commit with symlinks in `crds`, whose names get the suffix of a file."""
    for name, target in links.items():
        (repository / "crds" / f"{name}.yaml").symlink_to(target)
    (repository / "other").mkdir()
    (repository / "other" / "crd.yaml").write_text("a: 1\n")
    (repository / "other" / "big.txt").write_text("a: b\n" * 100)
    (repository / "linked").symlink_to("crds")
    commit(repository)


def commit(repository: Path) -> None:
    for arguments in (("add", "."), ("commit", "-q", "-m", "more")):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=repository, check=True)


LINKS = {
    "file": "../other/crd.yaml",
    "twice": "file.yaml",
    "through": "../linked/007.yaml",
    "big": "../other/big.txt",
    "folder": "../other",
    "nothing": "none.yaml",
    "below": "007.yaml/a",
    "loop": "loop.yaml",
    "outside": "/etc/passwd",
    "above": "../../crd.yaml",
    "long\nname": "007.yaml",
}
READ: dict[str, bytes | str] = {
    "file": b"a: 1\n",
    "twice": b"a: 1\n",
    "through": b"number: 7\n",
    "big": "bigger than 0 MiB",
    "nothing": "a symlink that leads to nothing in the revision",
    "below": "a symlink that leads through a file",
    "loop": "a symlink that leads to itself",
    "outside": "a symlink that leads out of the repository",
    "above": "a symlink that leads out of the repository",
    "long\nname": "git cannot be asked for a name with a line feed",
}


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("crds", "other"),
        ("crds/", "."),
        ("", "crds"),
        ("./", "crds"),
        ("./crds", "."),
        ("../crds/", "other"),
        ("linked", "."),
        ("./", "linked"),
    ],
)
def test_symlinks_are_followed_within_the_revision(
    repository: Path, monkeypatch: pytest.MonkeyPatch, path: str, folder: str
) -> None:
    monkeypatch.setattr(gitrevision, "MAX_BYTES", 100)
    (repository / "crds" / "big.yaml").unlink()
    link(repository, **LINKS)
    for each in LINKS:
        (repository / "crds" / f"{each}.yaml").unlink()
    (repository / "other" / "crd.yaml").write_text("a: 2\n")
    found = {
        each.name: each.content or each.problem for each in read_revision("HEAD", path, repository / folder)
    }
    within = "" if path else "crds/"
    assert {name: found.get(f"{within}{name}.yaml") for name in LINKS} == {**READ, "folder": None}
    assert found[f"{within}299.yaml"] == b"number: 299\n"


@pytest.mark.parametrize("name", READ)
def test_a_symlink_as_the_single_file(repository: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(gitrevision, "MAX_BYTES", 100)
    (repository / "crds" / "big.yaml").unlink()
    link(repository, **LINKS)
    for path, folder in ((f"crds/{name}.yaml", "."), (f"./{name}.yaml", "crds")):
        (found,) = read_revision("HEAD", path, repository / folder)
        assert (found.name, found.content or found.problem) == ("", READ[name])


def test_what_is_below_a_symlink_to_a_folder(repository: Path) -> None:
    link(repository)
    (repository / "linked").unlink()
    (repository / "linked").mkdir()
    for path in ("./007.yaml", "../linked/007.yaml", "linked/007.yaml"):
        (found,) = read_revision("HEAD", path, repository / "linked")
        assert found.content == b"number: 7\n"
    for path in ("./none.yaml", "../crds/007.yaml/none.yaml", "linked/007.yaml/none.yaml"):
        with pytest.raises(NotInRevision):
            list(read_revision("HEAD", path, repository / "linked"))


def test_a_symlink_that_became_a_folder(repository: Path) -> None:
    link(repository)
    (repository / "linked").unlink()
    (repository / "linked").mkdir()
    assert len(list(read_revision("HEAD", "./", repository / "linked"))) == 302


def test_a_single_file(repository: Path) -> None:
    (found,) = read_revision("HEAD", "crds/007.yaml", repository)
    assert (found.name, found.content) == ("", b"number: 7\n")
    with pytest.raises(NotInRevision, match=r"there is no 'crds/none\.yaml' in HEAD"):
        list(read_revision("HEAD", "crds/none.yaml", repository))


def test_a_git_that_ends_early(repository: Path, tmp_path: Path) -> None:
    git = tmp_path / "programs" / "git"
    git.write_text(git.read_text().replace("exec", '[ "$2" = --batch ] && exit 1\nexec'))
    with pytest.raises(GitError, match="git"):
        list(read_revision("HEAD", "crds", repository))
