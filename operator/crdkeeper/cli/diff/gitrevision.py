"""Reads files from a revision of a git repository, with the program git."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Self

from crdkeeper.cli.input.files import MAX_BYTES, SUFFIXES
from crdkeeper.cli.input.paths import may_exist

_SECONDS = 60


class GitError(Exception):
    """git is missing, or failed; the text is git's."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file of a revision."""

    name: str
    """Its path below the requested one; empty if that is the file."""
    content: bytes | None
    """None if it is too large to be read."""


def split_revision(text: str) -> tuple[str, str] | None:
    """The two parts of `REV:PATH`, as git splits it; None if it is the path of an existing file."""
    revision, separator, path = text.partition(":")
    if not separator or not revision or may_exist(Path(text)):
        return None
    return revision, path


def read_revision(revision: str, path: str, folder: Path) -> Iterator[Content]:
    """The file, or the YAML and JSON files in the directory at any depth; empty if the revision lacks it.

    `path` is relative to the repository's root, or to `folder` if it begins with `./`. Raises GitError.
    """
    if revision.startswith("-"):
        raise GitError(f"{revision!r} is not a revision")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
    if commit is None:
        raise GitError(f"git does not know the revision {revision!r} in {folder.absolute()}")
    found = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}:{path}")
    if found is None:
        return
    id = found.decode().strip()
    if _asked(folder, "cat-file", "-t", id).strip() == b"blob":
        files = [("", id, int(_asked(folder, "cat-file", "-s", id)))]
    else:
        files = list(_listed(folder, id))
    with _Blobs(folder) as blobs:
        for name, each, size in files:
            yield Content(name, blobs.read(each) if size <= MAX_BYTES else None)


def _listed(folder: Path, tree: str) -> Iterator[tuple[str, str, int]]:
    """Name, id and size of each file to be read."""
    for entry in _asked(folder, "ls-tree", "-r", "-l", "-z", "--full-tree", tree).split(b"\0"):
        about, _, name = entry.partition(b"\t")
        fields = about.decode().split()
        file = name.decode(errors="surrogateescape")
        if len(fields) == 4 and fields[1] == "blob" and Path(file).suffix in SUFFIXES:
            yield file, fields[2], int(fields[3])


class _Blobs:
    """Reads files by their ids, all with one process: a directory may have thousands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        try:
            self._git = subprocess.Popen(
                ["git", "cat-file", "--batch"],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise GitError(f"git: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._git.kill()
        self._git.communicate()

    def read(self, id: str) -> bytes:
        """Raise GitError."""
        stdin, stdout = self._git.stdin, self._git.stdout
        assert stdin is not None
        assert stdout is not None
        watchdog = Timer(_SECONDS, self._git.kill)
        watchdog.start()
        try:
            stdin.write(f"{id}\n".encode())
            stdin.flush()
            head = stdout.readline().split()
            content = stdout.read(int(head[2])) if len(head) == 3 else b""
            stdout.read(1)  # the line end after it
        except OSError as error:
            raise GitError(f"git: {error}") from None
        finally:
            watchdog.cancel()
        if len(head) != 3 or len(content) != int(head[2]):
            raise GitError(f"git cannot read {id}")
        return content


def _asked(folder: Path, *arguments: str) -> bytes:
    answer = _git(folder, *arguments)
    if answer is None:
        raise GitError(f"git {arguments[0]} failed")
    return answer


def _git(folder: Path, *arguments: str) -> bytes | None:
    """git's output; None if it fails without a message, as with --quiet for what does not exist."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git: {error}") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip()
    if said:
        raise GitError(said.splitlines()[0])
    return None
