"""What `crdkeeper lint` reads: files, folders and standard input, and the CRDs in them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crdkeeper.cli.input.ignore import Suppressions, of_comments
from crdkeeper.cli.input.yamldocument import Document, Position, Unreadable, documents

STDIN = "-"
CONFIGURATION = ".crdkeeper.yaml"
MAX_BYTES = 16 << 20
SUFFIXES = frozenset((".yaml", ".yml", ".json"))


@dataclass(frozen=True, slots=True)
class LocatedDefinition:
    """A CRD in a file: the document that holds it, and where in the document."""

    file: str
    """Empty for one of a live cluster."""
    document: Document
    steps: tuple[str | int, ...]
    value: dict[str, Any]
    comments: Suppressions = field(default_factory=Suppressions)
    """Those of the whole file."""

    @property
    def is_manifest(self) -> bool:
        """Whether it is what somebody writes, and not what an API server has made of it."""
        return bool(self.file)

    def find(self, steps: tuple[str | int, ...]) -> Position:
        """Where a field of the CRD stands in the file."""
        return self.document.find((*self.steps, *steps))


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something else than a CRD."""

    file: str
    position: Position
    what: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that cannot be read."""

    file: str
    position: Position
    message: str


def read(
    names: Iterable[str], excludes: Callable[[Path], bool] = lambda _: False
) -> Iterator[LocatedDefinition | Skipped | Failed]:
    """Everything in the files; a folder stands for the YAML and JSON files in it, at any depth.

    A file that `excludes` says yes to is not opened.
    """
    seen: set[str] = set()
    for name in names:
        for file in _files(name):
            if isinstance(file, Failed):
                yield file
            elif file not in seen:
                seen.add(file)
                if file == STDIN or not excludes(Path(file)):
                    yield from _read_file(file)


def _files(name: str) -> Iterator[str | Failed]:
    path = Path(name)
    if name == STDIN or not path.is_dir():
        yield name
        return
    found = sorted(
        each
        for each in path.rglob("*")
        if each.suffix in SUFFIXES and each.name != CONFIGURATION and each.is_file()
    )
    if not found:
        yield Failed(name, Position(), "the folder has no YAML or JSON file")
    yield from map(str, found)


def _read_file(file: str) -> Iterator[LocatedDefinition | Skipped | Failed]:
    try:
        if file == STDIN:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        yield Failed(file, Position(), error.strerror or str(error))
        return
    yield from parse(file, content)


def parse(file: str, content: bytes) -> Iterator[LocatedDefinition | Skipped | Failed]:
    """Everything in the content of a file, wherever it came from."""
    try:
        text = text_of(content)
        comments = of_comments(text)
        for document in documents(text):
            yield from _definitions(file, document, (), document.value, comments)
    except Unreadable as unreadable:
        yield Failed(file, unreadable.position, str(unreadable))


def text_of(content: bytes) -> str:
    """The text of a file. Raises Unreadable if it is too large or not UTF-8."""
    if len(content) > MAX_BYTES:
        raise Unreadable(f"bigger than {MAX_BYTES >> 20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable("not UTF-8", Position(line)) from None


def _definitions(
    file: str, document: Document, steps: tuple[str | int, ...], value: Any, comments: Suppressions
) -> Iterator[LocatedDefinition | Skipped]:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "CustomResourceDefinition":
        yield LocatedDefinition(file, document, steps, value, comments)
    elif isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        for i, each in enumerate(value["items"]):
            if isinstance(each, dict) and kind == "CustomResourceDefinitionList":
                # The items of a typed list leave out what the list says.
                each.setdefault("kind", "CustomResourceDefinition")
                each.setdefault("apiVersion", value.get("apiVersion"))
            yield from _definitions(file, document, (*steps, "items", i), each, comments)
    else:
        what = f"a {kind}" if isinstance(kind, str) and kind else "not a Kubernetes object"
        yield Skipped(file, document.find(steps), what, value)
