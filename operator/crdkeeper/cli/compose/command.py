"""`crdkeeper compose`: the commands about composite APIs."""

import click

from crdkeeper.cli.compose.crd import crd
from crdkeeper.cli.compose.importing import import_definitions
from crdkeeper.cli.compose.render import render
from crdkeeper.cli.compose.running import run


@click.group(short_help="Define composite APIs.")
def compose() -> None:
    """Define composite APIs: a CompositeResourceDefinition becomes a CRD.

    docs/composites.md explains how to write one.
    """


compose.add_command(crd)
compose.add_command(import_definitions)
compose.add_command(render)
compose.add_command(run)
