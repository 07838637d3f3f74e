"""`crdkeeper compose`: the commands about composite APIs."""

from importlib import import_module
from typing import Final

import click

_COMMANDS: Final = {
    "crd": ("crd", "crd"),
    "import": ("importing", "import_definitions"),
    "preview": ("preview", "preview"),
    "render": ("render", "render"),
    "run": ("running", "run"),
    "trace": ("trace", "trace"),
}
"""Commands by name: their modules, and their names in these."""


class _Commands(click.Group):
    """Imports only the requested command: the composer does without what the others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in order."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        found: click.Command = getattr(import_module(f"crdkeeper.cli.compose.{module}"), name)
        return found


@click.group(cls=_Commands, short_help="Define composite APIs.")
def compose() -> None:
    """Define composite APIs: a CompositeResourceDefinition becomes a CRD.

    docs/composites.md explains how to write one.
    """
