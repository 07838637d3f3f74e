"""The input of `crdkeeper lint`: files, directories and standard input, and the CRDs in them.

A CompositeResourceDefinition counts as the CRD that is generated from it, with the lines of its own file.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crdkeeper.cli.input.ignore import Suppressions, of_comments
from crdkeeper.cli.input.paths import below, is_folder, may_be_file
from crdkeeper.cli.output.printing import line
from crdkeeper.core.documents.yamldocument import Document, Position, Unreadable, documents
from crdkeeper.core.text import count
from crdkeeper.core.upgrade.v1form import (
    NEW_API_VERSION,
    OLD_API_VERSION,
    REMOVED,
    Steps,
    TooManyValues,
    V1Form,
    v1_form,
)

if TYPE_CHECKING:
    from crdkeeper.core.composition.acceptance import Acceptance

STDIN = "-"
CONFIGURATION = ".crdkeeper.yaml"
MAX_BYTES = 16 << 20
SUFFIXES = frozenset((".yaml", ".yml", ".json"))
_KINDS_SHOWN = 6
_CROSSPLANE = "apiextensions.crossplane.io/"
_NEEDLES = (b"CustomResourceDefinition", b"CompositeResourceDefinition")


@dataclass(frozen=True, slots=True)
class LocatedDefinition:
    """A CRD in a file: the document that contains it, and its place in the document."""

    file: str
    """Empty for one from a live cluster."""
    document: Document
    steps: Steps
    value: dict[str, Any]
    """The CRD at apiextensions.k8s.io/v1."""
    comments: Suppressions = field(default_factory=Suppressions)
    """The suppressions in comments anywhere in the file."""
    old: V1Form | None = None
    """If the file has it at v1beta1: how the value was converted."""
    composite: "Acceptance | None" = None
    """The report on the CompositeResourceDefinition that the file has instead of the CRD."""

    @property
    def is_manifest(self) -> bool:
        """Whether a person wrote it, and not an API server."""
        return bool(self.file)

    @property
    def written(self) -> dict[str, Any]:
        """The CRD as in the file."""
        return self.old.written if self.old is not None else self.value

    @property
    def origin(self) -> Any:
        """What the file has there: the CRD, or the CompositeResourceDefinition from which it is generated."""
        at: Any = self.document.value
        for step in self.steps:
            at = at[step]
        return at

    def find(self, steps: Steps) -> Position:
        """The place of a field of the CRD in the file."""
        return self.find_written(self.old.origin(steps) if self.old is not None else steps)

    def find_written(self, steps: Steps) -> Position:
        """The position of a field, given by the steps in the file."""
        return self.document.find((*self.steps, *steps))


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something other than a CRD."""

    file: str
    position: Position
    what: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class WrittenObject(Skipped):
    """One whose fields can be found in the file."""

    document: Document = field(kw_only=True)
    steps: Steps = field(kw_only=True)

    def find(self, steps: Steps) -> Position:
        """The place of one of its fields in the file."""
        return self.document.find((*self.steps, *steps))


@dataclass(frozen=True, slots=True)
class ForeignComposite(WrittenObject):
    """What defines composites in another project, such as Crossplane or kro."""


def summary(skipped: Sequence[Skipped]) -> str:
    """One line about everything that is not a CRD, because a release has many such objects."""
    first = f"{skipped[0].file}:{skipped[0].position.line}"
    if len(skipped) == 1:
        return f"{first}: skipped: {skipped[0].what}"
    kinds = Counter(each.what.removeprefix("a ") for each in skipped)
    listed = [f"{kind} ({number:,})" for kind, number in kinds.most_common(_KINDS_SHOWN)]
    if len(kinds) > len(listed):
        listed.append(count(len(kinds) - len(listed), "other kind"))
    return f"skipped {len(skipped):,} documents that are no CRDs, the first at {first}: {', '.join(listed)}"


def warn_of_old_manifests(definitions: Iterable[LocatedDefinition]) -> None:
    """Warn on stderr which CRDs are of v1beta1, and what that means."""
    for each in definitions:
        if each.old is not None:
            at = each.find(("apiVersion",))
            line(f"{each.file}:{at.line}:{at.column}: note: {REMOVED}.", err=True)


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that cannot be read."""

    file: str
    position: Position
    message: str


@dataclass(frozen=True, slots=True)
class Unrelated(Failed):
    """What cannot be read but has no CRD: a folder without files, or a text such as a template."""


def check_standard_input(names: Iterable[str | None]) -> None:
    """Check the names of all that a command reads, None for what is not given.

    Raises UsageError if standard input is named twice: the second reader would find it empty.
    """
    if list(names).count(STDIN) > 1:
        raise click.UsageError("standard input can only be read once")


def read(
    names: Iterable[str], excludes: Callable[[Path], bool] = lambda _: False
) -> Iterator[LocatedDefinition | Skipped | Failed]:
    """Read everything in the files; for a directory, the YAML and JSON files in it, at any depth.

    A file for which `excludes` returns True is not opened, and such a folder may be unreadable.
    """
    seen: set[str] = set()
    for name in names:
        for file in _files(name):
            if isinstance(file, Failed):
                if not excludes(Path(file.file)):
                    yield file
            elif file not in seen:
                seen.add(file)
                if file == STDIN or not excludes(Path(file)):
                    content = _content(file)
                    yield from (content,) if isinstance(content, Failed) else parse(file, content)


def contents(names: Iterable[str]) -> Iterator[tuple[str, bytes] | Failed]:
    """The name and the content of each file; for a directory, of the YAML and JSON files in it."""
    for name in names:
        for file in _files(name):
            content = file if isinstance(file, Failed) else _content(file)
            yield content if isinstance(content, Failed) else (str(file), content)


def _files(name: str) -> Iterator[str | Failed]:
    path = Path(name)
    if name == STDIN or not is_folder(path):
        yield name
        return
    found, failed = files_below(path)
    if not found and not failed:
        yield without_files(name)
    yield from failed
    yield from map(str, sorted(found))


def without_files(folder: str) -> Unrelated:
    """What there is to say of a folder without any file to read."""
    return Unrelated(folder, Position(), "the folder has no YAML or JSON file")


def files_below(folder: Path) -> tuple[list[Path], list[Failed]]:
    """The YAML and JSON files in a folder at any depth, and the folders that cannot be read."""
    failed: list[Failed] = []

    def fail(error: OSError) -> None:
        failed.append(Failed(str(Path(error.filename)), Position(), error.strerror or str(error)))

    found = [
        each
        for each in below(folder, fail)
        if each.suffix in SUFFIXES and each.name != CONFIGURATION and may_be_file(each)
    ]
    return found, failed


def _content(file: str) -> bytes | Failed:
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(file).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        return Failed(file, Position(), error.strerror or str(error))


def parse(file: str, content: bytes) -> Iterator[LocatedDefinition | Skipped | Failed]:
    """Parse everything in the content of a file, whatever its source."""
    try:
        text = text_of(content)
        comments = of_comments(text)
        for document in documents(text):
            yield from _definitions(file, document, (), document.value, comments)
    except Unreadable as unreadable:
        failure = Unrelated if _has_none(file, content) else Failed
        yield failure(file, unreadable.position, str(unreadable))


def _has_none(file: str, content: bytes) -> bool:
    """Whether a text that cannot be parsed has no CRD.

    Of standard input that is not known: it may be what a program says that cannot print its CRDs.
    """
    named = any(each in content for each in _NEEDLES)
    return file != STDIN and len(content) <= MAX_BYTES and not named


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
    file: str, document: Document, steps: Steps, value: Any, comments: Suppressions
) -> Iterator[LocatedDefinition | Skipped | Failed]:
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "CustomResourceDefinition":
        yield _definition(file, document, steps, value, comments)
    elif kind == "CompositeResourceDefinition":
        yield from _composite(file, document, steps, value, comments)
    elif isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        for i, each in enumerate(value["items"]):
            if isinstance(each, dict) and kind == "CustomResourceDefinitionList":
                # The items of a typed list omit fields that the list has.
                each.setdefault("kind", "CustomResourceDefinition")
                each.setdefault("apiVersion", value.get("apiVersion"))
            yield from _definitions(file, document, (*steps, "items", i), each, comments)
    elif kind == "ResourceGraphDefinition":
        yield ForeignComposite(file, document.find(steps), f"a {kind}", value, document=document, steps=steps)
    elif kind == "Composition":
        foreign = str(value.get("apiVersion")).startswith(_CROSSPLANE)
        found = ForeignComposite if foreign else WrittenObject
        yield found(file, document.find(steps), "a Composition", value, document=document, steps=steps)
    else:
        what = f"a {kind}" if isinstance(kind, str) and kind else "not a Kubernetes object"
        yield Skipped(file, document.find(steps), what, value)


def _definition(
    file: str, document: Document, steps: Steps, value: dict[str, Any], comments: Suppressions
) -> LocatedDefinition | Skipped | Failed:
    at = document.find(steps)
    if _is_patch(value):
        return Skipped(file, at, "a patch of a CRD")
    try:
        old = v1_form(value) if value.get("apiVersion") == OLD_API_VERSION else None
    except TooManyValues as error:
        return Failed(file, at, str(error))
    found = LocatedDefinition(file, document, steps, old.value if old else value, comments, old)
    missing = _missing(found.value)
    if not missing:
        return found
    said = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return Failed(file, at, f"a fragment of a CustomResourceDefinition: {said}")


def _is_patch(value: Mapping[str, Any]) -> bool:
    """Whether another tool, such as kustomize, merges it with the CRD of that name."""
    spec, metadata = value.get("spec"), value.get("metadata")
    if spec is None:
        return isinstance(metadata, dict) and bool(metadata.get("annotations") or metadata.get("labels"))
    return isinstance(spec, dict) and spec.keys() <= {"conversion", "preserveUnknownFields"} and bool(spec)


def _missing(value: Mapping[str, Any]) -> list[str]:
    """The fields without which a document defines no resource; those of a wrong type count as present."""
    spec = value.get("spec")
    if value.get("apiVersion") != NEW_API_VERSION:
        return []
    if spec is None:
        return ["spec"]
    if not isinstance(spec, dict):
        return []
    return [f"spec.{each}" for each in ("group", "names", "versions") if spec.get(each) in (None, "", {}, [])]


def _composite(
    file: str, document: Document, steps: Steps, value: dict[str, Any], comments: Suppressions
) -> Iterator[LocatedDefinition | Skipped | Failed]:
    # Imported only here: few files contain one.
    from crdkeeper.core.composition.acceptance import accept, is_composite_definition

    if not is_composite_definition(value):
        what = f"a CompositeResourceDefinition of {value.get('apiVersion')}"
        yield ForeignComposite(file, document.find(steps), what, value, document=document, steps=steps)
        return
    judged = accept(value)
    if judged.crd is not None:
        yield LocatedDefinition(file, document, steps, judged.crd, comments, composite=judged)
        return
    for each in judged.problems:
        at = document.find((*steps, *each.path.steps))
        yield Failed(file, at, f"{each.path}: {each.message}")
