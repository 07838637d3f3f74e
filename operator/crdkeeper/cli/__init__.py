"""The command line `crdkeeper`, also as the kubectl plugin `kubectl crdkeeper`."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from crdkeeper import __version__
from crdkeeper.cli.output.logs import one_line_logs
from crdkeeper.cli.output.printing import line, show

_COMMANDS = {
    "compose": "compose",
    "convert": "convert",
    "diff": "diff",
    "finalizers": "finalizers",
    "lint": "lint",
    "migrate": "migrate",
    "rehearse": "rehearse",
    "retire": "retire",
    "run": "run",
    "status": "status",
    "upgrade-manifest": "upgrademanifest",
    "webhook": "webhook",
}
"""Commands by name, and their packages: each has a module `command`."""


class _Program(click.Group):
    """Uses the name that the user typed, and imports only the requested command: all take a second."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of one invocation. kubectl runs `kubectl crdkeeper` as kubectl-crdkeeper."""
        name = "kubectl crdkeeper" if info_name == "kubectl-crdkeeper" else info_name
        with _shown_safely():
            return super().make_context(name, args, parent, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in order."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        _have_home()
        found: click.Command = getattr(
            import_module(f"crdkeeper.cli.{module}.command"), cmd_name.replace("-", "_")
        )
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run the requested command."""
        with _shown_safely():
            return super().invoke(ctx)


class _Shown(click.ClickException):
    """Another exception of click's, printed by `output.show`."""

    def __init__(self, error: click.ClickException) -> None:
        super().__init__(error.message)
        self.exit_code = error.exit_code  # type: ignore[misc]  # click declares it for classes only
        self._error = error

    def show(self, file: Any = None) -> None:
        """Print the error on stderr."""
        show(self._error)


@contextmanager
def _shown_safely() -> Iterator[None]:
    try:
        yield
    except NoArgsIsHelpError:
        raise  # our own words, in lines: the help of a group of commands
    except click.ClickException as error:
        raise _Shown(error) from error
    except (KeyboardInterrupt, click.Abort) as error:
        # A prompt raises Abort also at the end of its input, when nobody is there any more.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__context__, KeyboardInterrupt):
            raise
        line(err=True)  # the terminal has shown ^C
        raise SystemExit(128 + signal.SIGINT) from None


def _have_home() -> None:
    """Set HOME to runc's default if neither the environment nor /etc/passwd has a home directory.

    The Kubernetes client looks for one when it is imported. A container's user id is often not in
    /etc/passwd.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="crdkeeper %(version)s")
def main() -> None:
    """Migrate, check and convert custom resources and their definitions (CRDs).

    \b
    crdkeeper status --outdated                 which CRDs need a migration
    crdkeeper migrate PLURAL.GROUP --dry-run    which objects would be refused
    crdkeeper migrate PLURAL.GROUP              migrate a resource now, without the operator
    crdkeeper migrate --all-outdated            migrate all CRDs that need it
    crdkeeper retire PLURAL.GROUP VERSION       take a version out of service, step by step
    crdkeeper finalizers PLURAL.GROUP           which finalizers hold objects in deletion
    crdkeeper lint -f FILE|FOLDER|-             check CRDs offline, as the API server would
    crdkeeper diff OLD NEW                      who is affected by a change to CRDs
    crdkeeper rehearse -f FILE                  what a new CRD would do to existing objects
    crdkeeper convert -f FILE --rules R --to V  convert objects to another version, by rules
    crdkeeper upgrade-manifest FILE             rewrite a v1beta1 CRD for v1
    crdkeeper compose crd -f FILE               print the CRD of a CompositeResourceDefinition
    crdkeeper compose preview -f FILE           what a Composition would change in live composites
    crdkeeper compose trace KIND NAME           what a composite stands for, as a tree
    crdkeeper compose import FILE               rewrite composite APIs of Crossplane and kro
    """
    one_line_logs()
