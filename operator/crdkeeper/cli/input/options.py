"""Options that several commands share, with kubectl's names, and a runner for coroutines."""

import signal
from collections.abc import Callable, Coroutine
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from crdkeeper.cli.output.logs import LOG_FORMATS
from crdkeeper.cli.output.printing import Trouble

_LAST_PORT: Final = 65535

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

DEFAULT_NAMESPACE: Final = "crdkeeper-system"
"""Where the manifests install crdkeeper."""


def connection_options(command: _F) -> _F:
    """--kubeconfig and --context, as in kubectl."""
    command = click.option("--context", help="The kubeconfig's context to use.")(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The kubeconfig to use. [default: $KUBECONFIG, a pod's ServiceAccount, or ~/.kube/config]",
    )(command)


def replica_options(command: _F) -> _F:
    """What operator and composer share: the Lease and its times, the identity, --listen, and the logs."""
    for option in (
        click.option(
            "--retry-period",
            type=click.FloatRange(min=0, min_open=True),
            default=2.0,
            show_default=True,
            help="Seconds between attempts to acquire or renew the Lease.",
        ),
        click.option(
            "--renew-deadline",
            type=click.FloatRange(min=0, min_open=True),
            default=10.0,
            show_default=True,
            help="Seconds after which a leader that cannot renew its Lease steps down.",
        ),
        click.option(
            "--lease-duration",
            # Whole ones, as in the API: cut off, a fraction would let a standby take over too early.
            type=click.IntRange(min=1, max=2**31 - 1),
            default=15,
            show_default=True,
            help="Seconds after which a standby takes over from an unresponsive leader.",
        ),
        click.option("--verbose", "-v", is_flag=True, help="Also log what Kopf does."),
        click.option("--log-format", type=click.Choice(LOG_FORMATS), default="text", show_default=True),
        click.option(
            "--listen", default=":8080", show_default=True, help="Address of /healthz, /readyz and /metrics."
        ),
        click.option(
            "--identity",
            envvar="POD_NAME",
            callback=lambda _context, _option, value: value or process_identity(),
            help="Identity of the Lease holder. [default: hostname and a random suffix]",
        ),
        click.option(
            "--namespace",
            "-n",
            envvar="POD_NAMESPACE",
            default=DEFAULT_NAMESPACE,
            show_default=True,
            help="The namespace of the Lease.",
        ),
    ):
        command = option(command)
    return command


def check_lease_times(lease_duration: int, renew_deadline: float, retry_period: float) -> None:
    """Raises UsageError unless a leader can try again before it steps down, and others wait for longer."""
    if not lease_duration > renew_deadline > retry_period:
        raise click.UsageError(
            "--lease-duration must be greater than --renew-deadline, and that greater than --retry-period"
        )


def process_identity() -> str:
    """A name of this process that no other one has."""
    # Imported only here: few commands are replicas.
    import socket
    from uuid import uuid4

    return f"{socket.gethostname()}-{uuid4().hex[:8]}"


def listen_address(text: str) -> tuple[str, int]:
    """Host and port of --listen; an empty host means all addresses. Raises BadParameter."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= _LAST_PORT):
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--listen")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        try:
            IPv6Address(host)
        except ValueError:
            raise click.BadParameter(f"{host!r} is no IPv6 address", param_hint="--listen") from None
    elif ":" in host or "[" in host:
        raise click.BadParameter(f"{text!r} is not [IPV6]:PORT", param_hint="--listen")
    return host, int(port)


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end; a problem with the cluster becomes one line and exit code 1."""
    # Imported only here: not every command uses a cluster.
    import uvloop

    from crdkeeper.cluster.transport.client import ApiError, Unreachable
    from crdkeeper.cluster.transport.connection import ConfigurationError
    from crdkeeper.operations.rights import NotPermitted

    try:
        return uvloop.run(work)
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    except (ConfigurationError, ApiError, Unreachable) as error:
        raise Trouble(str(error)) from error
    except NotPermitted as error:
        raise Trouble(*str(error).splitlines()) from error
