"""`.crdkeeper.yaml`: which findings matter, and which files are looked at at all.

    lint:
      all: true                 # also show what is only info
      rules: [default, limits]  # groups and ids to report; - before one takes it away
      forbid: [nullable]        # keywords that schemas must not have
      severity:                 # error, warning, info or off, by id
        duration-unit: off
        description: warning
      exclude:                  # globs, from the folder of this file; ** crosses folders
      - vendor/**

It lies in the folder of the linted file or in one above; the nearest counts alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crdkeeper.apiserver.schema.props import FIELD_ORDER
from crdkeeper.cli.input.files import CONFIGURATION
from crdkeeper.cli.input.globs import Globs, TooManyGlobs
from crdkeeper.cli.input.yamldocument import Document, Unreadable, documents
from crdkeeper.cli.lint.selection import Selection, UnknownRule, select
from crdkeeper.core.lint.registry import known_ids
from crdkeeper.core.lint.severity import Severity

MAX_BYTES = 1 << 20
_OFF = "off"
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)


class BadConfiguration(Exception):
    """A configuration cannot be read or has an error; the text names the place."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of a file. `folder` is the base of its globs."""

    folder: Path = field(default_factory=Path)
    all: bool = False
    severities: dict[str, Severity | None] = field(default_factory=dict)
    """By id; None is off."""
    exclude: Globs | None = None
    rules: Selection = field(default_factory=Selection)
    forbid: frozenset[str] = frozenset()
    """Keywords of schemas."""

    def excludes(self, file: Path) -> bool:
        """Whether a file is excluded."""
        if self.exclude is None:
            return False
        try:
            relative = file.resolve().relative_to(self.folder.resolve())
        except ValueError:
            return False
        return self.exclude.match(relative)


class Configurations:
    """The configuration of each linted file; `rules` replaces those that a file selects."""

    def __init__(self, chosen: Path | None, rules: Selection | None = None) -> None:
        self._rules = rules
        self._chosen = self._load(chosen) if chosen is not None else None
        self._by_folder: dict[Path, Configuration] = {}

    def of(self, file: Path | None) -> Configuration:
        """That of a file, or of the working directory. Raises BadConfiguration."""
        if self._chosen is not None:
            return self._chosen
        folder = (file.parent if file is not None else Path()).absolute()
        known = self._by_folder.get(folder)
        if known is None:
            known = self._by_folder[folder] = self._find(folder)
        return known

    def of_name(self, file: str) -> Configuration:
        """That of a file by name; that of the working directory for `-` and for what is not in a file."""
        return self.of(Path(file) if file not in ("", "-") else None)

    def _find(self, folder: Path) -> Configuration:
        for above in (folder, *folder.parents):
            path = above / CONFIGURATION
            if path.is_file():
                return self._load(path)
        return Configuration(rules=self._rules or Selection())

    def _load(self, path: Path) -> Configuration:
        found = load(path)
        return found if self._rules is None else replace(found, rules=self._rules)


def load(path: Path) -> Configuration:
    """Read a configuration. Raises BadConfiguration."""
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
    return _Reader(path, found[0]).read() if found else Configuration(path.parent)


class _Reader:
    def __init__(self, path: Path, document: Document) -> None:
        self._path = path
        self._document = document

    def read(self) -> Configuration:
        lint = {}
        for key, value in self._mapping(self._document.value):
            if key != "lint":
                raise self._bad(f"unknown field {key}; the only known field is lint", key)
            lint = dict(self._mapping(value, "lint"))
        known = ("all", "exclude", "forbid", "rules", "severity")
        for key in lint:
            if key not in known:
                raise self._bad(f"unknown field lint.{key}; known fields are {', '.join(known)}", "lint", key)
        everything = lint.get("all", False)
        if not isinstance(everything, bool):
            raise self._bad("lint.all must be true or false", "lint", "all")
        return Configuration(
            self._path.parent,
            everything,
            self._severities(lint),
            self._exclude(lint),
            self._rules(lint),
            self._forbid(lint),
        )

    def _rules(self, lint: dict[str, Any]) -> Selection:
        if lint.get("rules") is None:
            return Selection()
        try:
            return select(self._texts(lint, "rules", "groups and ids of rules"))
        except UnknownRule as error:
            raise self._bad(str(error), "lint", "rules") from None

    def _forbid(self, lint: dict[str, Any]) -> frozenset[str]:
        found = list(self._texts(lint, "forbid", "keywords of schemas"))
        for i, each in enumerate(found):
            if each not in FIELD_ORDER:
                raise self._bad(f"schemas have no keyword {each!r}", "lint", "forbid", i)
        return frozenset(found)

    def _severities(self, lint: dict[str, Any]) -> dict[str, Severity | None]:
        found: dict[str, Severity | None] = {}
        known = known_ids()
        for id, value in self._mapping(lint.get("severity"), "lint", "severity"):
            at = ("lint", "severity", id)
            if id not in known:
                raise self._bad(f"there is no rule {id!r}", *at)
            if value is False or value == _OFF:
                # YAML reads `off` as false.
                found[id] = None
            elif value in _SEVERITIES:
                found[id] = Severity(value)
            else:
                raise self._bad(f"severity of {id}: must be error, warning, info or off", *at)
        return found

    def _exclude(self, lint: dict[str, Any]) -> Globs | None:
        globs = [each.removeprefix("./") for each in self._texts(lint, "exclude", "globs")]
        try:
            return Globs(globs) if globs else None
        except TooManyGlobs as error:
            raise self._bad(f"lint.exclude: {error}", "lint", "exclude") from None

    def _texts(self, lint: dict[str, Any], key: str, what: str) -> Iterator[str]:
        texts = lint.get(key)
        if texts is None:
            return
        if not isinstance(texts, list):
            raise self._bad(f"lint.{key} must be a list of {what}", "lint", key)
        for i, each in enumerate(texts):
            if not isinstance(each, str) or not each:
                raise self._bad(f"lint.{key} must be a list of {what}", "lint", key, i)
            yield each

    def _mapping(self, value: Any, *steps: str) -> Iterator[tuple[str, Any]]:
        if value is None:
            return
        if not isinstance(value, dict):
            raise self._bad(f"{'.'.join(steps) or 'the configuration'} must be a mapping", *steps)
        yield from value.items()

    def _bad(self, what: str, *steps: str | int) -> BadConfiguration:
        return BadConfiguration(f"{self._path}:{self._document.find(steps).line}: {what}")
