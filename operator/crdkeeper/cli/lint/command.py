"""`crdkeeper lint`: problems with CRDs for the API server and for users, line by line."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from crdkeeper.cli.input.configuration import BadConfiguration
from crdkeeper.cli.input.files import STDIN, SUFFIXES, check_standard_input
from crdkeeper.cli.input.options import connection_options
from crdkeeper.cli.input.paths import may_exist
from crdkeeper.cli.lint.baseline import BadBaseline, load, write
from crdkeeper.cli.lint.config import Configurations
from crdkeeper.cli.lint.findings import LintResult
from crdkeeper.cli.lint.jsonoutput import print_json
from crdkeeper.cli.lint.run import Run
from crdkeeper.cli.lint.sarifoutput import print_sarif
from crdkeeper.cli.lint.selection import BadSelection, Selection, select
from crdkeeper.cli.lint.textoutput import print_text
from crdkeeper.cli.output.printing import Trouble, line, lines_of
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.text import count

_FINDINGS, _UNREADABLE = 1, 2
_PRINTERS = {"text": print_text, "json": print_json, "sarif": print_sarif}
_NONE = "none"
_FAIL_ON = (Severity.ERROR.value, Severity.WARNING.value, Severity.INFO.value, _NONE)


@click.command(short_help="Check CRDs in files or in the cluster.")
@click.argument("arguments", nargs=-1, metavar="[FILE|FOLDER|-|NAME]...")
@click.option(
    "--filename",
    "-f",
    "filenames",
    multiple=True,
    metavar="FILE|FOLDER|-",
    help="A file, a folder (all YAML and JSON files below it), or - for standard input.",
)
@click.option("--selector", "-l", default="", help="Check only the cluster's CRDs with these labels.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(tuple(_PRINTERS)),
    default="text",
    show_default=True,
    help="The format.",
)
@click.option("--all", "-a", "everything", is_flag=True, help="Also show findings of severity info.")
@click.option(
    "--fail-on",
    type=click.Choice(_FAIL_ON),
    default=Severity.ERROR.value,
    show_default=True,
    help="The lowest severity that makes the exit code 1.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration. [default: the nearest .crdkeeper.yaml in or above the file's folder]",
)
@click.option(
    "--rules",
    "rules",
    multiple=True,
    metavar="NAME,...",
    help="Report only these groups and rules, with infos; - before a name takes it away (docs/lint.md).",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Report only findings that this file does not list.",
)
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a baseline that lists all findings, and exit with 0.",
)
@click.option("--allow-none", is_flag=True, help="Accept input without any CRD.")
@connection_options
def lint(
    arguments: tuple[str, ...],
    *,
    filenames: tuple[str, ...],
    selector: str,
    output: str,
    everything: bool,
    fail_on: str,
    config: Path | None,
    rules: tuple[str, ...],
    baseline: Path | None,
    write_baseline: Path | None,
    allow_none: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Check CRDs in files, or in the cluster if no file is given: all, by name, or selected by -l.

    An error is something that the API server refuses, in its words, or accepts although it cannot work. A
    warning is something that is likely to cause trouble. What cannot be decided offline is counted as not
    checked. docs/lint.md explains each finding, and how to configure or ignore it.

    An argument is a file if it exists, ends in .yaml, .yml or .json, or contains a slash. Otherwise it is
    the name of a CRD.

    Exit codes: 0 if there are no errors (or as --fail-on says), 1 if there are, 2 if something could not be
    read.
    """
    files, names = _sorted(arguments, filenames)
    in_cluster = bool(names or selector or not files)
    if files and in_cluster:
        raise click.UsageError("check files or the CRDs of the cluster, not both")
    if names and selector:
        raise click.UsageError("specify CRDs by name or by labels, not both")
    check_standard_input(files)
    try:
        run = Run(
            Configurations(config, _selected(rules)),
            everything=everything or fail_on == Severity.INFO,
            baseline=load(baseline) if baseline is not None else None,
        )
        if in_cluster:
            from crdkeeper.cluster.transport.connection import Connection  # see run.check_cluster

            run.check_cluster(Connection(kubeconfig, context), names, selector, allow_none=allow_none)
        else:
            run.check_files(files, allow_none=allow_none)
    except (BadConfiguration, BadBaseline) as error:
        line(f"Error: {error}", err=True)
        raise SystemExit(_UNREADABLE) from None
    except click.ClickException as error:
        raise _Trouble(*lines_of(error)) from None
    result = run.result
    _PRINTERS[output](result)
    if result.failed or result.missing:
        raise SystemExit(_UNREADABLE)
    if write_baseline is not None:
        _write(write_baseline, result)
    elif fail_on != _NONE and any(each.severity.rank <= Severity(fail_on).rank for each in result.findings):
        raise SystemExit(_FINDINGS)


def _selected(rules: Sequence[str]) -> Selection | None:
    names = [name.strip() for each in rules for name in each.split(",") if name.strip()]
    try:
        return select(names) if rules else None
    except BadSelection as error:
        raise click.UsageError(str(error)) from None


def _write(path: Path, result: LintResult) -> None:
    try:
        written = write(path, [*result.findings, *result.known])
    except BadBaseline as error:
        line(f"Error: {error}", err=True)
        raise SystemExit(_UNREADABLE) from None
    line(f"Wrote a baseline with {count(written, 'finding')}: {path}", err=True)


class _Trouble(Trouble):
    """It cannot be determined whether anything is wrong."""

    exit_code = _UNREADABLE


def _sorted(arguments: Sequence[str], filenames: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files and names."""
    files = list(filenames)
    names: list[str] = []
    for each in arguments:
        path = Path(each)
        # With -f all arguments are files, as when a shell expands a glob after it.
        is_file = filenames or each == STDIN or os.sep in each or path.suffix in SUFFIXES or may_exist(path)
        (files if is_file else names).append(each)
    return files, names
