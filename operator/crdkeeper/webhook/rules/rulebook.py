"""The conversions that are served: compiled from files, and again when the files change.

Rules that do not compile never replace rules that do.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import yaml
from pydantic import ValidationError

from crdkeeper.api.texts import described
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.core.conversion.bundle import BadBundle, packed
from crdkeeper.core.conversion.objects import Conversion, compile_conversion

_log = logging.getLogger(__name__)

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SUFFIXES = (".yaml", ".yml", ".json")
_REFRESH_SECONDS = 2.0


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
    _seen: str = ""
    _missing: frozenset[str] = frozenset()
    """The conversions that serve, but whose rules were in none of the files at the last look."""

    async def run(self, loaded: Callable[[], None]) -> None:
        """Read the files, call `loaded`, and do so again when they change, until cancelled."""
        await asyncio.to_thread(self.refresh)
        loaded()
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            if await asyncio.to_thread(self.refresh):
                loaded()

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
        """Look at the files, and compile what has changed; returns whether anything has or is dropped."""
        contents = dict(_contents(self.paths))
        seen = sha256(repr(sorted(contents.items())).encode()).hexdigest()
        if seen == self._seen:
            return self._drop_missing()
        self._seen = seen
        self._compile(contents)
        return True

    def _compile(self, contents: Mapping[str, bytes]) -> None:
        problems: dict[str, str] = {}
        definitions: dict[str, Mapping[str, Any]] = {}
        rules: dict[str, VersionConversion] = {}
        for file, content in contents.items():
            try:
                for document in _documents(content):
                    _sort_in(document, definitions, rules)
            except ValidationError as error:
                problems[file] = described(error)
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                problems[file] = " ".join(str(error).split())
        for name, rule in rules.items():
            problem = self._add(name, rule, definitions.get(name))
            if problem:
                problems[name] = problem
        # An unreadable file may contain what is missing, and so may one that is being written right now: only
        # what is still missing at the next look, when nothing has changed, is known to be gone.
        self._missing = frozenset() if problems else frozenset(self.conversions.keys() - rules.keys())
        for name, problem in problems.items():
            kept = " The previous rules are still served." if name in self.conversions else ""
            _log.error("%s: %s%s", name, problem, kept)
        self.problems = problems

    def _drop_missing(self) -> bool:
        missing, self._missing = self._missing, frozenset()
        if missing:
            self.conversions = {name: each for name, each in self.conversions.items() if name not in missing}
            _log.info("Converting no more, as no file has the rules: %s.", ", ".join(sorted(missing)))
        return bool(missing)

    def _add(self, name: str, rule: VersionConversion, definition: Mapping[str, Any] | None) -> str:
        if definition is None:
            return "its CustomResourceDefinition is in none of the files"
        try:
            schemas = schemas_of(definition)
            made = compile_conversion(rule.spec, schemas)
            bundle = packed(rule.spec, schemas)
        except (UnreadableDefinition, BadBundle) as error:
            return str(error)
        if not isinstance(made, Conversion):
            return "; ".join(map(str, made))
        digest = sha256(repr((rule.spec, sorted(definition.items()))).encode()).hexdigest()
        self.conversions[name] = Served(made, digest, bundle)
        _log.info("Converting %s between %s.", name, ", ".join(made.versions))
        return ""


def _contents(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        # A mounted ConfigMap contains its files a second time in hidden directories.
        files = (
            [each for each in sorted(path.rglob("*")) if _is_manifest(each, path)]
            if path.is_dir()
            else [path]
        )
        for file in files:
            try:
                yield str(file), file.read_bytes()
            except OSError as error:
                _log.error("%s: %s", file, error.strerror)


def _is_manifest(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not hidden and file.suffix in _SUFFIXES and file.is_file()


def _documents(content: bytes) -> Iterator[Any]:
    for document in yaml.load_all(content, _LOADER):
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
