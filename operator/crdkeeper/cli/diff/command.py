"""`crdkeeper diff`: whom a change of CRDs affects, with the line that changed."""

from collections.abc import Iterable
from pathlib import Path

import click

from crdkeeper.cli.diff.config import DiffConfigurations
from crdkeeper.cli.diff.definitions import (
    Side,
    name_of,
    read_against,
    read_files,
    read_live,
    read_side,
    reject_standard_input,
)
from crdkeeper.cli.diff.output import PRINTERS, DiffResult, FileSpot, LocatedChange
from crdkeeper.cli.input.configuration import BadConfiguration
from crdkeeper.cli.input.files import Failed, LocatedDefinition, check_standard_input, warn_of_old_manifests
from crdkeeper.cli.input.options import connection_options, run_async
from crdkeeper.cli.output.printing import Trouble, line, lines_of
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.compatibility.change import Change, Impact
from crdkeeper.core.compatibility.compare import NotComparable, compare

_FOUND, _UNREADABLE = 1, 2
_NEVER = "none"


@click.command(short_help="Show who is affected by a change to CRDs.")
@click.argument("paths", nargs=-1, metavar="OLD NEW | FILE|FOLDER...")
@click.option(
    "--filename",
    "-f",
    "filenames",
    multiple=True,
    metavar="FILE|FOLDER|-",
    help="The new CRDs, to compare with the cluster or with --against. [may be repeated]",
)
@click.option("--against", metavar="REV", help="Compare files with the same files in this git revision.")
@click.option("--live", is_flag=True, help="Compare files with the CRDs in the cluster; implied by -f.")
@click.option(
    "--converted",
    is_flag=True,
    help="Assume a conversion webhook that the files do not show, for example because kustomize adds it.",
)
@click.option("--allow-none", is_flag=True, help="Accept input without any CRD.")
@click.option("--all", "-a", "everything", is_flag=True, help="Also show safe changes.")
@click.option(
    "--fail-on",
    type=click.Choice((Impact.BREAKING.value, Impact.RISKY.value, _NEVER)),
    default=Impact.BREAKING.value,
    show_default=True,
    help="The lowest severity that makes the exit code 1.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration. [default: the nearest .crdkeeper.yaml in or above the new file's folder]",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(tuple(PRINTERS)),
    default="text",
    show_default=True,
    help="Output format. json always lists all changes.",
)
@connection_options
def diff(
    paths: tuple[str, ...],
    *,
    filenames: tuple[str, ...],
    against: str | None,
    live: bool,
    converted: bool,
    allow_none: bool,
    everything: bool,
    fail_on: str,
    config: Path | None,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show who is affected by a change to CRDs: clients that write or read objects, and stored objects.

    \b
    crdkeeper diff OLD NEW                         files, folders, or REV:PATH in git
    crdkeeper diff --against main config/crd       a git revision and the working tree
    crdkeeper diff -f config/crd                   the cluster and files

    CRDs are compared by name. A change is breaking if a promise of the old CRD no longer holds, risky if it
    depends on how the CRD is used or cannot be decided, and safe otherwise. .crdkeeper.yaml can change the
    severity of a kind of change (docs/diff.md).

    Exit codes: 0 if no change is as severe as --fail-on, 1 if one is, 2 if something could not be read or
    compared.
    """
    try:
        configurations = DiffConfigurations(config)
        old, new = _sides(
            paths, filenames, against, Connection(kubeconfig, context), live=live, allow_none=allow_none
        )
        warn_of_old_manifests([*old.definitions.values(), *new.definitions.values()])
        result = compare_sides(old, new, configurations, converted=converted)
    except BadConfiguration as error:
        line(f"Error: {error}", err=True)
        raise SystemExit(_UNREADABLE) from None
    PRINTERS[output](result, everything=everything)
    if result.failed or result.incomplete:
        raise SystemExit(_UNREADABLE)
    if fail_on != _NEVER and result.severity.rank <= Impact(fail_on).rank and result.counts:
        raise SystemExit(_FOUND)


def _sides(
    paths: tuple[str, ...],
    filenames: tuple[str, ...],
    against: str | None,
    connection: Connection,
    *,
    live: bool,
    allow_none: bool,
) -> tuple[Side, Side]:
    """The old and the new side. Raises click.ClickException if the arguments are wrong."""
    names = (*filenames, *paths)
    check_standard_input(names)
    if against is not None:
        if live:
            raise click.UsageError("compare with a git revision or with the cluster, not both")
        if not names:
            raise click.UsageError("specify the files or folders to compare with the revision")
        reject_standard_input(names)
        return read_against(against, names, allow_none=allow_none), read_files(names, allow_none=allow_none)
    if live or filenames:
        if not names:
            raise click.UsageError("specify the files or folders to compare with the cluster")
        new = read_files(names, allow_none=allow_none)
        return _read_cluster(connection, new), new
    if len(paths) != 2:
        raise click.UsageError("specify two files or folders, the old and the new one, or see --help")
    old = read_side(paths[0], allow_none=allow_none)
    return old, read_side(paths[1], allow_none=allow_none)


class _Trouble(Trouble):
    """A problem with the cluster, which must not look like a breaking change."""

    exit_code = _UNREADABLE


def _read_cluster(connection: Connection, new: Side) -> Side:
    try:
        return run_async(read_live(connection, sorted(new.definitions)))
    except click.ClickException as error:
        raise _Trouble(*lines_of(error)) from error


def compare_sides(
    old: Side, new: Side, configurations: DiffConfigurations, *, converted: bool = False
) -> DiffResult:
    """Compare the CRDs of two sides by name; a single one on each side is compared under any name.

    Raises BadConfiguration.
    """
    result = DiffResult(failed=[*old.failed, *new.failed])
    if result.failed:
        # What could not be read would look like a removed or new CRD.
        return result
    for before, after in _pairs(old, new):
        _compare(before, after, result, configurations, converted=converted)
    result.found.sort(key=lambda each: (each.definition, each.change.severity.rank))
    return result


def _pairs(old: Side, new: Side) -> Iterable[tuple[LocatedDefinition | None, LocatedDefinition | None]]:
    if len(old.definitions) == 1 and len(new.definitions) == 1:
        return list(zip(old.definitions.values(), new.definitions.values(), strict=True))
    names = sorted(old.definitions.keys() | new.definitions.keys())
    return [(old.definitions.get(each), new.definitions.get(each)) for each in names]


def _compare(
    old: LocatedDefinition | None,
    new: LocatedDefinition | None,
    result: DiffResult,
    configurations: DiffConfigurations,
    *,
    converted: bool,
) -> None:
    shown = new or old
    if shown is None:
        return
    name = name_of(shown)
    configuration = configurations.of_name(shown.file)
    try:
        comparison = compare(
            old.value if old else None,
            new.value if new else None,
            converted=converted,
            severities=configuration.severities,
        )
    except NotComparable as error:
        side = new if new is not None and error.is_new else old
        at = side or shown
        result.failed.append(Failed(at.file or "the cluster", at.find(error.path.steps), str(error)))
        return
    result.compared += 1
    result.counts.update(comparison.counts)
    if configuration.path is not None:
        result.configured.take(configuration.path, comparison)
    if not comparison.complete:
        result.incomplete.append(name)
    result.found.extend(LocatedChange(name, each, *_spots(each, old, new)) for each in comparison.changes)


def _spots(
    change: Change, old: LocatedDefinition | None, new: LocatedDefinition | None
) -> tuple[FileSpot | None, FileSpot | None]:
    """The place of the change, and its former place."""
    place = change.place
    at = _spot(new, place.path.steps)
    was = _spot(old, place.old_path.steps) if place.old_path is not None else None
    return at, was


def _spot(definition: LocatedDefinition | None, steps: tuple[str | int, ...]) -> FileSpot | None:
    if definition is None or not definition.is_manifest:
        return None
    return FileSpot(definition.file, definition.find(steps))
