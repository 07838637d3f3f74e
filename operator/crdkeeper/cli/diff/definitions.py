"""The input of `crdkeeper diff`: the CRDs of two sides by name, from files, a git revision or the cluster."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import click

from crdkeeper.cli.diff.gitrevision import GitError, NotInRevision, read_revision, split_revision
from crdkeeper.cli.input.files import (
    STDIN,
    Failed,
    LocatedDefinition,
    Skipped,
    Unrelated,
    parse,
    read,
    without_files,
)
from crdkeeper.cli.input.paths import is_folder
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.documents.yamldocument import Document, Position
from crdkeeper.operations.rights import explained, rights_to_read


@dataclass(slots=True)
class Side:
    """The CRDs of one side, by name, and what could not be read."""

    definitions: dict[str, LocatedDefinition] = field(default_factory=dict)
    failed: list[Failed] = field(default_factory=list)
    allow_none: bool = False
    """Whether there may be no CRD, also in what cannot be read."""

    def take(self, found: Iterable[object]) -> None:
        """Add what was read: CRDs, and what could not be read; everything else is ignored.

        If two CRDs with one name differ, it is unclear which one to compare: that is a failure.
        """
        for each in found:
            if isinstance(each, Failed):
                if not (self.allow_none and isinstance(each, Unrelated)):
                    self.failed.append(each)
            elif isinstance(each, LocatedDefinition):
                self.failed.extend(_refused(each))
                known = self.definitions.setdefault(name_of(each), each)
                if known is not each and known.value != each.value:
                    first = known.find(())
                    message = f"{name_of(each)} is defined differently at {known.file}:{first.line}"
                    self.failed.append(Failed(each.file, each.find(()), message))


def _refused(definition: LocatedDefinition) -> Iterator[Failed]:
    """Why there is no CRD to compare, if a CompositeResourceDefinition cannot be converted to one."""
    for each in definition.composite.problems if definition.composite is not None else ():
        if each.refused:
            yield Failed(definition.file, definition.find(each.path.steps), f"{each.path}: {each.message}")


def name_of(definition: LocatedDefinition) -> str:
    """The CRD's name or, if a manifest has none, the name that it must have."""
    metadata, spec = definition.value.get("metadata"), definition.value.get("spec")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(name, str) and name:
        return name
    names = spec.get("names") if isinstance(spec, dict) else None
    plural = names.get("plural") if isinstance(names, dict) else None
    group = spec.get("group") if isinstance(spec, dict) else None
    return f"{plural}.{group}"


def read_side(text: str, *, allow_none: bool) -> Side:
    """A file, a directory, standard input, or `REV:PATH` for a file or directory in a git revision."""
    side = Side(allow_none=allow_none)
    split = None if text == STDIN else split_revision(text)
    if split is None:
        side.take(read([text]))
    else:
        side.take(_of_revision(split[0], split[1], Path(), text))
    return _checked(side, text)


def read_files(names: Iterable[str], *, allow_none: bool) -> Side:
    """Files and directories."""
    side = Side(allow_none=allow_none)
    side.take(read(names))
    return _checked(side, ", ".join(names))


def _checked(side: Side, what: str) -> Side:
    if not (side.definitions or side.failed or side.allow_none):
        side.failed.append(Failed(what, Position(), "contains no CustomResourceDefinition"))
    return side


def read_against(revision: str, names: Iterable[str], *, allow_none: bool) -> Side:
    """The CRDs in the same files and directories of a git revision; a missing file makes its CRDs new."""
    side = Side(allow_none=allow_none)
    for name in names:
        path = Path(name)
        folder, inside = (path, "./") if is_folder(path) else (path.parent, f"./{path.name}")
        side.take(_of_revision(revision, inside, folder, f"{revision}:{name}"))
    return side


def _of_revision(
    revision: str, path: str, folder: Path, shown: str
) -> Iterator[LocatedDefinition | Skipped | Failed]:
    try:
        found = False
        for file in read_revision(revision, path, folder):
            found = True
            name = f"{shown.rstrip('/')}/{file.name}" if file.name else shown
            if file.content is None:
                yield Failed(name, Position(), file.problem)
            else:
                yield from parse(name, file.content)
        if not found and not path.startswith("./"):
            yield without_files(shown)
    except NotInRevision as error:
        if not path.startswith("./"):
            yield Failed(shown, Position(), str(error))
    except GitError as error:
        yield Failed(shown, Position(), str(error))


async def read_live(connection: Connection, names: Iterable[str]) -> Side:
    """The existing CRDs with these names in the cluster. Raises ApiError, NotPermitted or Unreachable."""
    side, wanted = Side(), list(names)
    async with Client(connection) as client, explained(client, rights_to_read(wanted)):
        for name in wanted:
            value = await get_definition_object(client, quote(name, safe=""))
            if value is not None:
                side.definitions[name] = LocatedDefinition("", Document(value, Position(), []), (), value)
    return side


def reject_standard_input(names: Iterable[str]) -> None:
    """Standard input is in no revision. Raises click.UsageError."""
    if STDIN in names:
        raise click.UsageError("standard input has no revision to compare with")
