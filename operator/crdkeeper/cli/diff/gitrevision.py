"""Reads files as they are in a revision of a git repository, by the program git."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crdkeeper.cli.input.files import MAX_BYTES, SUFFIXES

_SECONDS = 60


class GitError(Exception):
    """git is not there, or cannot do what was asked; the text is git's."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file of a revision."""

    name: str
    """Its path below what was asked for; empty where that is the file."""
    content: bytes | None
    """None where it is bigger than what is read."""


def split_revision(text: str) -> tuple[str, str] | None:
    """`REV:PATH` in its two parts, as git takes it; None where it is the path of a file that exists."""
    revision, separator, path = text.partition(":")
    if not separator or not revision or Path(text).exists():
        return None
    return revision, path


def read_revision(revision: str, path: str, folder: Path) -> Iterator[Content]:
    """The file, or the YAML and JSON files in the folder at any depth; nothing where the revision lacks it.

    `path` is from the top of the repository, or from `folder` if it begins with `./`. Raises GitError.
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
        size = int(_asked(folder, "cat-file", "-s", id))
        yield _content(folder, "", id, size)
        return
    for entry in _asked(folder, "ls-tree", "-r", "-l", "-z", "--full-tree", id).split(b"\0"):
        about, _, name = entry.partition(b"\t")
        fields = about.decode().split()
        file = name.decode(errors="surrogateescape")
        if len(fields) == 4 and fields[1] == "blob" and Path(file).suffix in SUFFIXES:
            yield _content(folder, file, fields[2], int(fields[3]))


def _content(folder: Path, name: str, id: str, size: int) -> Content:
    return Content(name, _asked(folder, "cat-file", "blob", id) if size <= MAX_BYTES else None)


def _asked(folder: Path, *arguments: str) -> bytes:
    answer = _git(folder, *arguments)
    if answer is None:
        raise GitError(f"git {arguments[0]} failed")
    return answer


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git prints; None where it fails without a word, as with --quiet for what does not exist."""
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
