"""`crdkeeper convert`: objects at another version by rules, and a test that nothing is lost on the way."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from crdkeeper.cli.convert.rules import BadInput, LocatedObject, Source, read_objects, run_on_cluster
from crdkeeper.cli.input.files import check_standard_input
from crdkeeper.cli.input.options import connection_options
from crdkeeper.cli.output.printing import line, print_json, print_yaml
from crdkeeper.core.conversion.admission import admission
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.conversion.verification import Trial
from crdkeeper.core.text import count

_FAILED = 1


def _sources(command: Any) -> Any:
    for option in (
        connection_options,
        click.option("--definition", metavar="FILE", help="The CRD. [default: the cluster's]"),
        click.option("--rules", metavar="FILE", help="The VersionConversion. [default: the cluster's]"),
        click.option(
            "--filename",
            "-f",
            "filenames",
            multiple=True,
            metavar="FILE|-",
            help="Objects or lists of objects. Use - for standard input. [may be repeated]",
        ),
    ):
        command = option(command)
    return command


@click.group(short_help="Convert objects to another version by rules.", invoke_without_command=True)
@_sources
@click.option("--to", "version", metavar="VERSION", help="The version to convert to, such as v1.")
@click.option("--output", "-o", type=click.Choice(("yaml", "json")), default="yaml", show_default=True)
@click.pass_context
def convert(
    invocation: click.Context,
    filenames: tuple[str, ...],
    *,
    rules: str | None,
    definition: str | None,
    version: str | None,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Convert objects to another version by the rules of a VersionConversion.

    \b
    crdkeeper convert -f objects.yaml --to v2                    by the rules in the cluster
    crdkeeper convert -f objects.yaml --to v2 --rules rules.yaml --definition crd.yaml
    crdkeeper convert test crontabs.stable.example.com           try the rules on all live objects

    What the new version cannot hold is kept in an annotation and restored on the way back.

    Exit codes: 0 if all objects were converted, 1 if an object cannot be converted, 2 if the input or the
    cluster cannot be read or the rules do not cover every field.
    """
    if invocation.invoked_subcommand is not None:
        if filenames or rules or definition or version or kubeconfig or context:
            raise click.UsageError(f"put options after {invocation.invoked_subcommand}")
        return
    if not filenames or version is None:
        raise click.UsageError("specify -f FILE and --to VERSION, or a subcommand")
    check_standard_input(filenames)
    objects = list(read_objects(filenames))
    source = Source(rules, definition, kubeconfig, context)
    conversion = source.read(_kind_of(objects)).trial.conversion
    if version not in conversion.versions:
        raise BadInput(f"--to: {version} is not one of {', '.join(conversion.versions)}")
    if _convert(conversion, objects, version, output):
        raise SystemExit(_FAILED)


@convert.command("test", short_help="Convert objects to every version and back.")
@click.argument("name", metavar="[PLURAL.GROUP]", required=False)
@_sources
def check(
    name: str | None,
    filenames: tuple[str, ...],
    *,
    rules: str | None,
    definition: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Convert each object to every other version and back, and through all in turn: nothing may be lost.

    The objects come from files or, without -f, from the cluster, where they are only read. Objects generated
    from the schemas are tried as well.

    Exit codes: 0 if all objects come back unchanged, 1 if one does not or cannot be converted, 2 if the input
    or the cluster cannot be read or the rules do not cover every field.
    """
    check_standard_input(filenames)
    objects = list(read_objects(filenames))
    source = Source(rules, definition, kubeconfig, context)
    if name is None and rules is None and not objects:
        raise click.UsageError("specify PLURAL.GROUP, --rules or -f")
    found = source.read(_kind_of(objects), name)
    # Imported after the input was found valid, because it imports the client.
    from crdkeeper.cli.convert.verification import report_generated, report_live

    failed = report_generated(found)
    if filenames:
        failed += _test(found.trial, objects)
    else:
        failed += run_on_cluster(report_live(found, kubeconfig, context))
    if failed:
        raise SystemExit(_FAILED)


@convert.command("admission", short_help="Print policies that reject what cannot be converted.")
@click.argument("name", metavar="[PLURAL.GROUP]", required=False)
@connection_options
@click.option("--definition", metavar="FILE", help="The CRD. [default: the cluster's]")
@click.option("--rules", metavar="FILE", help="The VersionConversion. [default: the cluster's]")
def admit(
    name: str | None,
    *,
    rules: str | None,
    definition: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Print ValidatingAdmissionPolicies that reject objects with values that the rules cannot convert.

    \b
    crdkeeper convert admission crontabs.stable.example.com | kubectl apply --server-side -f -

    Existing values can stay. The policies do not cover rules in CEL; the command lists those.
    """
    if name is None and rules is None:
        raise click.UsageError("specify PLURAL.GROUP or --rules")
    found = Source(rules, definition, kubeconfig, context).read(name=name)
    made = admission(found.spec, found.schemas)
    for each in made.uncovered:
        line(f"note: not covered by the policies: {each}", err=True)
    if made.documents:
        print_yaml(*made.documents)
    else:
        line("note: every value that the schemas allow has a counterpart", err=True)


def _kind_of(objects: Iterable[LocatedObject]) -> tuple[str, str] | None:
    """Group and kind of the first object."""
    for each in objects:
        return str(each.value.get("apiVersion")).rpartition("/")[0], each.value["kind"]
    return None


def _name(found: LocatedObject) -> str:
    metadata = found.value.get("metadata") or {}
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name")))) or found.place


def _convert(conversion: Conversion, objects: Iterable[LocatedObject], version: str, output: str) -> int:
    made, failed, tally = [], 0, ConversionTally()
    for each in objects:
        try:
            made.append(conversion.convert(each.value, version, tally))
        except Unconvertible as error:
            failed += 1
            line(f"{each.place}: {_name(each)}: {error}", err=True)
    if tally.stand_ins:
        values = count(tally.stand_ins, "value")
        line(f"note: {values} without a counterpart at {version}, kept aside", err=True)
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": made}
        print_json(listed)
    elif made:
        print_yaml(*made)
    return failed


def _test(trial: Trial, objects: Iterable[LocatedObject]) -> int:
    tried = failed = 0
    aside: dict[str, int] = {}
    lossy: dict[str, int] = {}
    for each in objects:
        outcome = trial.judge(each.value)
        tried += outcome.trips
        failed += len(outcome.faults)
        for fault in outcome.faults:
            way = f"{fault.source} to {fault.target}"
            line(f"{each.place}: {_name(each)}: {way}: {fault.message}", err=True)
        for fault in outcome.unmatched:
            way = f"{fault.source} to {fault.target}"
            line(f"note: {each.place}: {_name(each)}: {way}: {fault.message}", err=True)
        for counts, versions in ((aside, outcome.kept_aside), (lossy, outcome.lossy)):
            for version in versions:
                counts[version] = counts.get(version, 0) + 1
    line(f"{count(tried, 'round trip')}, {count(failed, 'failure')}.")
    for version, number in sorted(aside.items()):
        line(f"{count(number, 'object')} needed something kept aside while at {version}.")
    for version, number in sorted(lossy.items()):
        line(f"{count(number, 'object')} lost values at {version} that the rules drop.")
    return failed
