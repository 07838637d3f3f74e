"""Reads files from a revision of a git repository, with the program git."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO, Final, NamedTuple, Self

from crdkeeper.cli.input.files import MAX_BYTES, SUFFIXES
from crdkeeper.cli.input.paths import may_exist

_SECONDS = 60
_PIECE: Final = 1 << 16
_FOR_HOOKS: Final = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"))
"""What git sets for its hooks. With GIT_DIR alone, any folder counts as the top of the working tree."""
_SYMLINK: Final = "120000"
"""The mode of one in a tree."""
_FILE, _FOLDER = "blob", "tree"
_MISSING, _DANGLING, _THROUGH_FILE, _UNASKED = "missing", "dangling", "notdir", "unasked"
_ABSENT: Final = frozenset((_MISSING, _DANGLING, _THROUGH_FILE))
_PROBLEMS: Final = {
    _MISSING: "git does not have it",
    _DANGLING: "a symlink that leads to nothing in the revision",
    _THROUGH_FILE: "a symlink that leads through a file",
    _UNASKED: "git cannot be asked for a name with a line feed",
    "loop": "a symlink that leads to itself",
    "symlink": "a symlink that leads out of the repository",
}
_HEAD: Final = re.compile(rb"(?:(?P<id>[0-9a-f]+) )?(?P<kind>[a-z]+) (?P<size>[0-9]+)\n")


class GitError(Exception):
    """git is missing, or failed; the text is git's."""


class NotInRevision(GitError):
    """The revision does not have the path."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file of a revision."""

    name: str
    """Its path below the requested one; empty if that is the file."""
    content: bytes | None
    """None if it cannot be read."""
    problem: str = ""
    """Why it cannot be read."""


def split_revision(text: str) -> tuple[str, str] | None:
    """The two parts of `REV:PATH`, as git splits it; None if it is the path of an existing file."""
    revision, separator, path = text.partition(":")
    if not separator or not revision or may_exist(Path(text)):
        return None
    return revision, path


def read_revision(revision: str, path: str, folder: Path) -> Iterator[Content]:
    """The file, or the YAML and JSON files in the directory at any depth.

    Symlinks are followed within the revision. As on a disk, one to a directory is no file, unless it is the
    requested path. That is relative to the repository's root, or to `folder` if it begins with `./`. Raises
    NotInRevision and GitError.
    """
    if revision.startswith("-"):
        raise GitError(f"{revision!r} is not a revision")
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
    if commit is None:
        raise GitError(f"git does not know the revision {revision!r} in {folder.absolute()}")
    tree = commit.decode().strip()
    found = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}:{path}")
    with _Objects(folder) as objects:
        named = objects.read(f"{tree}:{path}")
        if found is None and named.kind in _ABSENT:
            # Not if it is below a symlink to a directory, where rev-parse finds nothing.
            raise NotInRevision(f"there is no {path!r} in {revision}")
        if named.kind != _FOLDER:
            yield _content("", named)
            return
        start = f"{tree}:{path.rstrip('/')}/" if path else f"{tree}:"
        for name, id, is_symlink in _listed(folder, named.id):
            read = objects.read(f"{start}{name}" if is_symlink else id)
            if read.kind != _FOLDER:
                yield _content(name, read)


def _listed(folder: Path, tree: str) -> Iterator[tuple[str, str, bool]]:
    """Name and id of each file to be read, and whether it is a symlink."""
    listed = _git(folder, "ls-tree", "-r", "-z", "--full-tree", tree)
    if listed is None:
        raise GitError("git ls-tree failed")
    for entry in listed.split(b"\0"):
        about, _, name = entry.partition(b"\t")
        fields = about.decode().split()
        file = name.decode(errors="surrogateescape")
        if len(fields) == 3 and fields[1] == _FILE and Path(file).suffix in SUFFIXES:
            yield file, fields[2], fields[0] == _SYMLINK


class _Read(NamedTuple):
    """What git says about an object."""

    kind: str
    """Its type, or why there is none."""
    id: str = ""
    content: bytes | None = None
    """That of a file, unless it is too large."""


def _content(name: str, read: _Read) -> Content:
    if read.content is not None:
        return Content(name, read.content)
    if read.kind == _FILE:
        return Content(name, None, f"bigger than {MAX_BYTES >> 20} MiB")
    return Content(name, None, _PROBLEMS.get(read.kind, "no file"))


class _Objects:
    """Reads objects, all with one process: a directory may have thousands."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        try:
            self._git = subprocess.Popen(
                ["git", "cat-file", "--batch", "--follow-symlinks"],
                cwd=self._folder,
                env=_environment(),
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

    def read(self, name: str) -> _Read:
        """The object with this id, or at `TREE:PATH`, where symlinks are followed. Raises GitError."""
        if "\n" in name:
            return _Read(_UNASKED)
        stdin, stdout = self._git.stdin, self._git.stdout
        assert stdin is not None
        assert stdout is not None
        watchdog = Timer(_SECONDS, self._git.kill)
        watchdog.start()
        try:
            stdin.write(f"{name}\n".encode(errors="surrogateescape"))
            stdin.flush()
            read = _answer(stdout)
        except OSError as error:
            raise GitError(f"git: {error}") from None
        finally:
            watchdog.cancel()
        if read is None:
            raise GitError(f"git cannot read {name}")
        return read


def _answer(stdout: IO[bytes]) -> _Read | None:
    """The next answer; None if there is none. Of what is no file, or a large one, nothing is kept."""
    line = stdout.readline()
    if line.endswith(b" missing\n"):
        return _Read(_MISSING)
    head = _HEAD.fullmatch(line)
    if head is None:
        return None
    kind, left = head["kind"].decode(), int(head["size"])
    keeps = kind == _FILE and left <= MAX_BYTES
    kept = b""
    while left and (piece := stdout.read(left if keeps else min(left, _PIECE))):
        kept = piece if keeps else b""
        left -= len(piece)
    if left or stdout.read(1) != b"\n":
        return None
    return _Read(kind, (head["id"] or b"").decode(), kept if keeps else None)


def _git(folder: Path, *arguments: str) -> bytes | None:
    """git's output; None if it fails without a message, as with --quiet for what does not exist."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=_environment(),
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


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _FOR_HOOKS}
