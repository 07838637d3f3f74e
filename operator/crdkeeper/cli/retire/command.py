"""`crdkeeper retire`: takes a version out of service, and shows what the operator's retirements do."""

import click

from crdkeeper.cli.retire.listing import status
from crdkeeper.cli.retire.running import version
from crdkeeper.cli.retire.undoing import undo


class _Retire(click.Group):
    """A group whose first argument may be a resource instead of a command: no resource of a CRD is a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Understand arguments that begin with no command as those of `version`."""
        if args and args[0] not in (*self.commands, *self.get_help_option_names(ctx)):
            args = [str(version.name), *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Retire,
    short_help="Take a version of a CRD out of service.",
    subcommand_metavar="PLURAL.GROUP VERSION [OPTIONS] | COMMAND",
)
def retire() -> None:
    """Take a version of a CRD out of service: deprecate it, wait until nobody uses it, stop serving it,
    migrate the objects, and remove it.

    \b
    crdkeeper retire PLURAL.GROUP VERSION          who still uses the version, and what is due
    crdkeeper retire PLURAL.GROUP VERSION --yes    take the steps that are due
    crdkeeper retire undo PLURAL.GROUP VERSION     serve the version again, until it is removed
    crdkeeper retire status                        the VersionRetirements of the operator

    `crdkeeper retire version --help` lists the options.
    """


retire.add_command(status)
retire.add_command(undo)
retire.add_command(version)
