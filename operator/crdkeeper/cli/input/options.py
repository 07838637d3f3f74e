"""Options that several commands share, with kubectl's names, and how coroutines are run."""

import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from crdkeeper.cli.output.printing import Trouble

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

DEFAULT_NAMESPACE: Final = "crdkeeper-system"
"""Where the manifests install crdkeeper."""


def connection_options(command: _F) -> _F:
    """--kubeconfig and --context, as kubectl has them."""
    command = click.option("--context", help="The kubeconfig's context to use.")(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The kubeconfig to use. [default: $KUBECONFIG, a pod's ServiceAccount, or ~/.kube/config]",
    )(command)


def listen_address(text: str) -> tuple[str, int]:
    """Host and port of --listen; all addresses without a host. Raises BadParameter."""
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--listen")
    return host or "0.0.0.0", int(port)


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end; trouble with the cluster becomes one line and exit code 1."""
    # Imported only here: not every command has to do with a cluster.
    import uvloop

    from crdkeeper.cluster.transport.client import ApiError, Unreachable
    from crdkeeper.cluster.transport.connection import ConfigurationError

    try:
        return uvloop.run(work)
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    except (ConfigurationError, ApiError, Unreachable) as error:
        raise Trouble(str(error)) from error
