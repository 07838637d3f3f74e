"""The command line `crdkeeper`, also as the kubectl plugin `kubectl crdkeeper`."""

import click

from crdkeeper import __version__
from crdkeeper.cli.run import run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="crdkeeper")
def main() -> None:
    """Keep a cluster's custom resource definitions over their whole life."""


main.add_command(run)
