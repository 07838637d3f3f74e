"""The command line `crdkeeper`, also as the kubectl plugin `kubectl crdkeeper`."""

from typing import Any

import click

from crdkeeper import __version__
from crdkeeper.cli.lint import lint
from crdkeeper.cli.migrate import migrate
from crdkeeper.cli.run import run
from crdkeeper.cli.status import status


class _Program(click.Group):
    """Calls itself what the user typed: kubectl runs `kubectl crdkeeper` as kubectl-crdkeeper."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of one invocation."""
        name = "kubectl crdkeeper" if info_name == "kubectl-crdkeeper" else info_name
        return super().make_context(name, args, parent, **extra)


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="crdkeeper %(version)s")
def main() -> None:
    """Keep a cluster's custom resource definitions over their whole life.

    \b
    crdkeeper status --outdated                 which CRDs need a migration
    crdkeeper migrate PLURAL.GROUP --dry-run    what would be refused
    crdkeeper migrate PLURAL.GROUP              migrate one now, without the operator
    crdkeeper lint -f FILE|FOLDER|-             what the API server would say of CRDs, offline
    """


for _command in (status, lint, migrate, run):
    main.add_command(_command)
