"""The conversions that are served: compiled from files, and again when the files change.

Rules that do not compile never replace rules that do.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from stat import S_IFREG, S_ISDIR, S_ISREG
from typing import Any, Protocol

from pydantic import ValidationError

from crdkeeper.api.texts import described
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.core.conversion.bundle import BadBundle, packed, unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.documents.yamldocument import Unreadable, documents

_log = logging.getLogger(__name__)

_SUFFIXES = (".yaml", ".yml", ".json")
_START_SECONDS = 0.5
_START_LOOKS = 10
_REFRESH_SECONDS = 2.0
_UNSETTLED_LOOKS = 30

_Contents = dict[str, bytes | str]
"""What is in each file, or why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Served:
    """A conversion, a text that identifies it, and the source from which another process can compile it."""

    conversion: Conversion
    digest: str
    bundle: bytes


class ServedConversions(Protocol):
    """What a process needs that converts."""

    conversions: dict[str, Served]
    """The conversions by CRD name."""

    async def look_again(self, name: str) -> None:
        """An API server asks for an unknown CRD: it may know of the rules earlier than we do."""


class RuleSource(ServedConversions, Protocol):
    """Where the webhook gets its conversions from."""

    problems: dict[str, str]
    """Why rules are not served, or not their latest version, by name or file."""
    blocking: set[str]
    """Of `problems`, those since the start: until they are solved, this process is not ready for requests.

    What is added later is seen by all replicas. If it took them out of the Service, nothing would convert.
    """

    async def run(self, loaded: Callable[[], None]) -> None:
        """Compile all existing rules, call `loaded`, again after each change, until cancelled."""

    def unseen(self) -> tuple[float, str]:
        """How long changes may have been missed, in seconds, and why; 0 and empty if none were."""

    async def uninstalled(self) -> None:
        """Return only when the whole installation is being removed, with its rules."""

    async def close(self) -> None:
        """Release all resources; it is not used any more."""


@dataclass(slots=True)
class RuleBook:
    """Conversions by CRD name, from all YAML and JSON files in some files and directories."""

    paths: tuple[Path, ...]
    conversions: dict[str, Served] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    blocking: set[str] = field(default_factory=set)
    _seen: _Contents | None = None
    """What the last look found; None before the first one."""
    _compiled: _Contents | None = None
    """What serves, as far as it compiles; None before anything does."""
    _unsettled: int = 0
    """How many looks in a row found something else than the one before."""
    _unread: set[str] = field(default_factory=set)
    """What the last look could not read, and why."""

    async def run(self, loaded: Callable[[], None]) -> None:
        """Read the files, call `loaded`, and do so again when they change, until cancelled."""
        while True:
            if await asyncio.to_thread(self.refresh):
                loaded()
            await asyncio.sleep(_START_SECONDS if self._compiled is None else _REFRESH_SECONDS)

    def unseen(self) -> tuple[float, str]:
        """Never: the files exist or not."""
        return 0.0, ""

    async def look_again(self, name: str) -> None:
        """Does nothing: the files are checked often enough."""

    async def uninstalled(self) -> None:
        """Never returns: files do not belong to an installation."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Does nothing."""

    def refresh(self) -> bool:
        """Look at the files, and compile them if they have changed; returns whether that was done.

        A part of a file may be valid, too: without the rest, fields would be copied that the file's rules
        change. So a change counts once two looks in a row find the same. At the start, what there is serves
        after some looks at the latest: beside a file that changes all the time, no pod would ever be ready.
        """
        contents, unread = _contents(self.paths, self._compiled or {})
        # Each look finds it again, such as a symbolic link to nothing.
        for each in sorted(unread - self._unread):
            _log.error("%s", each)
        self._unread = unread
        before, self._seen = self._seen, contents
        if contents == self._compiled or contents == before:
            self._unsettled = 0
        else:
            self._unsettled += 1
            changing = ", ".join(_changed(before or {}, contents))
            if self._compiled is not None:
                if self._unsettled == _UNSETTLED_LOOKS:
                    _log.error(
                        "No change of the rules is served, as files change all the time: %s.", changing
                    )
                return False
            if self._unsettled < _START_LOOKS:
                return False
            self._unsettled = 0
            _log.error(
                "The rules are served as they are now, although files change all the time: %s.", changing
            )
        if contents == self._compiled:
            return False
        # One that serves no rules, or was never ready, has nothing to do in the Service. The key of a problem
        # may change on the way to its end: the file while that is no YAML, then the CRD.
        begins = not self.conversions or not self.blocking <= self.conversions.keys()
        self._compiled = contents
        self._compile(contents)
        self.blocking = self.problems.keys() & (self.problems.keys() if begins else self.blocking)
        return True

    def _compile(self, contents: _Contents) -> None:
        """Serve what compiles."""
        problems: dict[str, str] = {}
        definitions: dict[str, Mapping[str, Any]] = {}
        rules: dict[str, VersionConversion] = {}
        for file, content in contents.items():
            if isinstance(content, str):
                problems[file] = content
                continue
            try:
                for document in _documents(content):
                    _sort_in(document, definitions, rules)
            except ValidationError as error:
                problems[file] = described(error)
            except Unreadable as error:
                # PyYAML's text about a character that it refuses has two lines.
                problems[file] = f"line {error.position.line}: {' '.join(str(error).split())}"
            except UnicodeDecodeError:
                problems[file] = "not UTF-8"
            except Exception as error:
                # Whatever one file contains, the others serve.
                _log.exception("%s cannot be read", file)
                problems[file] = f"it cannot be read ({type(error).__name__})"
        conversions = dict(self.conversions)
        for name, rule in rules.items():
            made = _served(name, rule, definitions.get(name))
            if isinstance(made, Served):
                conversions[name] = made
                _log.info("Converting %s between %s.", name, ", ".join(made.conversion.versions))
            else:
                problems[name] = made
        for name, problem in problems.items():
            kept = " The previous rules are still served." if name in conversions else ""
            _log.error("%s: %s%s", name, problem, kept)
        # A file that cannot be understood may contain what is missing.
        gone = set() if problems else conversions.keys() - rules.keys()
        if gone:
            conversions = {name: each for name, each in conversions.items() if name not in gone}
            _log.info("Converting no more, as no file has the rules: %s.", ", ".join(sorted(gone)))
        # At once: the event loop, which uses them, runs meanwhile.
        self.problems, self.conversions = problems, conversions


def _served(name: str, rule: VersionConversion, definition: Mapping[str, Any] | None) -> Served | str:
    """The conversion; or why there is none."""
    if definition is None:
        return "its CustomResourceDefinition is in none of the files"
    try:
        schemas = schemas_of(definition)
        bundle = packed(rule.spec, schemas)
        # What another process makes of it.
        made = compile_conversion(*unpacked(bundle))
    except (UnreadableDefinition, BadBundle) as error:
        return str(error)
    except Exception as error:
        # Whatever the rules of one CRD contain, the others serve.
        _log.exception("%s: its rules cannot be compiled", name)
        return f"the rules cannot be compiled ({type(error).__name__})"
    if not isinstance(made, Conversion):
        return "; ".join(map(str, made))
    digest = sha256(repr((rule.spec, sorted(definition.items()))).encode()).hexdigest()
    return Served(made, digest, bundle)


def _contents(paths: Iterable[Path], compiled: _Contents) -> tuple[_Contents, set[str]]:
    """What is in the files now, and a text for each place that cannot be read but has no entry of its own.

    What is compiled stands for what can no longer be read: rules are gone only if their file is, and not
    because of a permission or a disk.
    """
    found: _Contents = {}
    unread: set[str] = set()
    for path in paths:
        here: _Contents = {}
        errors: list[OSError] = []
        files = _manifests(path, errors.append) if S_ISDIR(_mode(path)) else [path]
        for file in files:
            try:
                here[str(file)] = file.read_bytes()
            except (FileNotFoundError, NotADirectoryError) as error:
                unread.add(f"{file}: {error.strerror}")
            except OSError as error:
                here |= _kept(file, error, compiled, unread) or {str(file): error.strerror or str(error)}
        for each in errors:
            folder = Path(each.filename)
            kept = _kept(folder, each, compiled, unread)
            if not kept and folder == path:
                kept = {str(path): str(each.strerror)}
            elif not kept:
                # It may have no rules, such as the lost+found of a volume.
                unread.add(f"{folder}: {each.strerror}. Rules in this directory are not served.")
            here |= kept
        found |= sorted(here.items(), key=lambda item: Path(item[0]))
    return found, unread


def _changed(before: _Contents, now: _Contents) -> list[str]:
    return sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))


def _kept(place: Path, error: OSError, compiled: _Contents, unread: set[str]) -> _Contents:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return {}
    kept: _Contents = {
        file: content
        for file, content in compiled.items()
        if isinstance(content, bytes) and Path(file).is_relative_to(place)
    }
    if kept:
        unread.add(f"{place}: {error.strerror}. What was read before is still served.")
    return kept


def _manifests(path: Path, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    for folder, folders, names in os.walk(path, onerror=unreadable):
        # A mounted ConfigMap contains its files a second time in hidden directories.
        folders[:] = [each for each in folders if not each.startswith(".")]
        for name in names:
            file = Path(folder, name)
            if not name.startswith(".") and file.suffix in _SUFFIXES and S_ISREG(_mode(file) or S_IFREG):
                yield file


def _mode(path: Path) -> int:
    """What it is; 0 if that is not known: reading it tells why."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _documents(content: bytes) -> Iterator[Any]:
    for each in documents(content.decode("utf-8-sig")):
        document = each.value
        if isinstance(document, dict) and str(document.get("kind")).endswith("List"):
            yield from document.get("items") or ()
        else:
            yield document


def _sort_in(
    document: Any, definitions: dict[str, Mapping[str, Any]], rules: dict[str, VersionConversion]
) -> None:
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "CustomResourceDefinition":
        definitions[str((document.get("metadata") or {}).get("name"))] = document
    elif kind == "VersionConversion":
        rule = VersionConversion.model_validate(document)
        rules[str(rule.spec.resource)] = rule
