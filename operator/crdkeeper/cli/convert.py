"""`crdkeeper convert`: objects at another version by rules, and a test that nothing is lost on the way."""

from pathlib import Path
from typing import Any

import click
import orjson
import yaml

from crdkeeper.cli.convertinput import BadInput, Found, read_conversion, read_objects
from crdkeeper.cli.options import connection_options
from crdkeeper.core.conversion.keptaside import PREFIX, differences
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.text import count

_FAILED = 1


def _common(command: Any) -> Any:
    for option in (
        connection_options,
        click.option("--definition", metavar="FILE", help="The CRD. [default: the cluster's]"),
        click.option("--rules", required=True, metavar="FILE", help="The VersionConversion."),
        click.option(
            "--filename",
            "-f",
            "filenames",
            required=True,
            multiple=True,
            metavar="FILE|-",
            help="Objects, also in lists; - for standard input.",
        ),
    ):
        command = option(command)
    return command


@click.command(short_help="Convert objects to another version by rules.")
@_common
@click.option("--to", "version", metavar="VERSION", help="The version to convert to, such as v1.")
@click.option(
    "--test", "testing", is_flag=True, help="Convert each object to every version and back instead."
)
@click.option("--output", "-o", type=click.Choice(("yaml", "json")), default="yaml", show_default=True)
def convert(
    filenames: tuple[str, ...],
    *,
    rules: str,
    definition: str | None,
    version: str | None,
    testing: bool,
    output: str,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Convert objects to another version by the rules of a VersionConversion.

    What the new version cannot hold is kept in an annotation, from which it comes back on the way back.

    With --test each object goes to every other version and back, and must be what it was.

    Exits with 0 if all went well, 1 if an object cannot be converted or comes back changed, 2 if something
    cannot be read or the rules do not cover every field.
    """
    if testing == (version is not None):
        raise click.UsageError("say --to VERSION, or --test")
    conversion = read_conversion(rules, definition, kubeconfig, context)
    if version is not None and version not in conversion.versions:
        raise BadInput(f"--to: {version} is none of {', '.join(conversion.versions)}")
    objects = read_objects(filenames)
    failed = _test(conversion, objects) if version is None else _convert(conversion, objects, version, output)
    if failed:
        raise SystemExit(_FAILED)


def _name(found: Found) -> str:
    metadata = found.value.get("metadata") or {}
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name")))) or found.place


def _convert(conversion: Conversion, objects: Any, version: str, output: str) -> int:
    made, failed = [], 0
    for each in objects:
        try:
            made.append(conversion.convert(each.value, version))
        except Unconvertible as error:
            failed += 1
            click.echo(f"{each.place}: {_name(each)}: {error}", err=True)
    if output == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": made}
        click.echo(orjson.dumps(listed, option=orjson.OPT_INDENT_2).decode())
    elif made:
        click.echo(yaml.safe_dump_all(made, sort_keys=False), nl=False)
    return failed


def _test(conversion: Conversion, objects: Any) -> int:
    tried = failed = 0
    aside: dict[str, int] = {}
    for each in objects:
        source = str(each.value.get("apiVersion")).rpartition("/")[2]
        for version in conversion.versions:
            if version == source:
                continue
            tried += 1
            try:
                there = conversion.convert(each.value, version)
                back = conversion.convert(there, source)
            except Unconvertible as error:
                failed += 1
                click.echo(f"{each.place}: {_name(each)}: {source} to {version}: {error}", err=True)
                continue
            if PREFIX + source in ((there.get("metadata") or {}).get("annotations") or {}):
                aside[version] = aside.get(version, 0) + 1
            for entry in differences(each.value, back, None):
                failed += 1
                path = ".".join(map(str, entry["at"]))
                click.echo(
                    f"{each.place}: {_name(each)}: {source} to {version} and back changes {path}", err=True
                )
    click.echo(f"{count(tried, 'round trip')}, {count(failed, 'failure')}.")
    for version, number in aside.items():
        click.echo(f"{count(number, 'object')} had to keep something aside while at {version}.")
    return failed
