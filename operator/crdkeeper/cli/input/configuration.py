"""`.crdkeeper.yaml`, which `crdkeeper lint` and `crdkeeper diff` share: a section for each command.

It lies in the folder of a file or in one above; the nearest counts alone. Each command reads its own section
and leaves the other one to its command.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from crdkeeper.cli.input.files import CONFIGURATION
from crdkeeper.cli.input.paths import is_symlink, may_be_file
from crdkeeper.core.documents.yamldocument import Document, Unreadable, documents

MAX_BYTES = 1 << 20
_SECTIONS = ("diff", "lint")
_OFF = "off"

Read = TypeVar("Read")
Level = TypeVar("Level", bound=StrEnum)


class BadConfiguration(Exception):
    """A configuration cannot be read or has an error; the text names the place."""


class Section:
    """One section of a configuration. Its methods raise BadConfiguration with the line of the error."""

    def __init__(self, path: Path, document: Document, name: str, known: Sequence[str]) -> None:
        self._path = path
        self._document = document
        self._name = name
        self._fields: dict[str, Any] = {}
        for key, value in self._mapping(document.value):
            if key not in _SECTIONS:
                raise self._bad(f"unknown field {key}; known fields are {', '.join(_SECTIONS)}", key)
            if key == name:
                self._fields = dict(self._mapping(value, name))
        for key in self._fields:
            if key not in known:
                raise self.bad(f"unknown field {name}.{key}; known fields are {', '.join(known)}", key)

    def get(self, key: str) -> Any:
        """The value of a field; None if there is none."""
        return self._fields.get(key)

    def flag(self, key: str) -> bool:
        """A field that is true or false, and false if it is missing."""
        value = self._fields.get(key, False)
        if not isinstance(value, bool):
            raise self.bad(f"{self._name}.{key} must be true or false", key)
        return value

    def texts(self, key: str, what: str) -> Iterator[str]:
        """A list of texts; `what` says of what, for messages."""
        texts = self.get(key)
        if texts is None:
            return
        if not isinstance(texts, list):
            raise self.bad(f"{self._name}.{key} must be a list of {what}", key)
        for i, each in enumerate(texts):
            if not isinstance(each, str) or not each:
                raise self.bad(f"{self._name}.{key} must be a list of {what}", key, i)
            yield each

    def severities(self, what: str, ids: Collection[str], levels: Sequence[Level]) -> dict[str, Level | None]:
        """The field `severity`: one of the levels by id, None for off. `what` is what an id names."""
        found: dict[str, Level | None] = {}
        by_name: dict[Any, Level] = {each.value: each for each in levels}
        for id, value in self._mapping(self.get("severity"), self._name, "severity"):
            if id not in ids:
                raise self.bad(f"there is no {what} {id!r}", "severity", id)
            if value is False or value == _OFF:
                # YAML reads `off` as false.
                found[id] = None
            elif isinstance(value, str) and value in by_name:
                found[id] = by_name[value]
            else:
                choices = f"{', '.join(by_name)} or {_OFF}"
                raise self.bad(f"severity of {id}: must be {choices}", "severity", id)
        return found

    def bad(self, what: str, *steps: str | int) -> BadConfiguration:
        """An error at a field of this section, for the caller to raise."""
        return self._bad(what, self._name, *steps)

    def _mapping(self, value: Any, *steps: str) -> Iterator[tuple[str, Any]]:
        if value is None:
            return
        if not isinstance(value, dict):
            raise self._bad(f"{'.'.join(steps) or 'the configuration'} must be a mapping", *steps)
        yield from value.items()

    def _bad(self, what: str, *steps: str | int) -> BadConfiguration:
        return BadConfiguration(f"{self._path}:{self._document.find(steps).line}: {what}")


def read_section(path: Path, name: str, known: Sequence[str]) -> Section | None:
    """The section of a file, which may have the known fields; None if the file is empty.

    Raises BadConfiguration.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise BadConfiguration(f"{path}: bigger than {MAX_BYTES >> 20} MiB")
        found = list(documents(content.decode()))
    except OSError as error:
        raise BadConfiguration(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadConfiguration(f"{path}: not UTF-8") from None
    except Unreadable as error:
        raise BadConfiguration(f"{path}:{error.position.line}: {error}") from None
    if len(found) > 1:
        raise BadConfiguration(f"{path}:{found[1].position.line}: a second document")
    return Section(path, found[0], name, known) if found else None


class NearestConfigurations(Generic[Read]):
    """A command's section in the configuration that applies to each file; each configuration is read once.

    `read` takes the path of a configuration, or None where there is none. A chosen one is that of all files.
    """

    def __init__(self, chosen: Path | None, read: Callable[[Path | None], Read]) -> None:
        self._read = read
        self._chosen = [read(chosen)] if chosen is not None else []
        self._by_path: dict[Path | None, Read] = {}
        self._by_folder: dict[Path, Read] = {}

    def of(self, file: Path | None) -> Read:
        """The section for a file; without one, the working directory's. Raises BadConfiguration."""
        if self._chosen:
            return self._chosen[0]
        folder = _absolute(file.parent if file is not None else Path())
        if folder not in self._by_folder:
            path = _nearest(folder)
            if path not in self._by_path:
                self._by_path[path] = self._read(path)
            self._by_folder[folder] = self._by_path[path]
        return self._by_folder[folder]


def _absolute(folder: Path) -> Path:
    """The folder without `..`, so that its parents are the folders above it."""
    found = Path()
    for part in folder.absolute().parts:
        if part != "..":
            found /= part
        elif is_symlink(found):
            # `..` is above what the symlink leads to, and the file is read there.
            found = Path(os.path.realpath(found)).parent
        else:
            found = found.parent
    return found


def _nearest(folder: Path) -> Path | None:
    candidates = (each / CONFIGURATION for each in (folder, *folder.parents))
    return next((each for each in candidates if may_be_file(each)), None)
