"""`crdkeeper compose run`: the composer, a process beside the operator with rights of its own."""

import sys
from pathlib import Path

import click

from crdkeeper.cli.input.options import (
    check_lease_times,
    connection_options,
    listen_address,
    replica_options,
    run_async,
)


@click.command(short_help="Run the composer.")
@connection_options
@replica_options
@click.option(
    "--settle-seconds",
    type=click.FloatRange(3, 300),
    default=5,
    show_default=True,
    help="How long an API without composites refuses new ones before it is deleted (deletion: Protect).",
)
def run(
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    identity: str,
    listen: str,
    log_format: str,
    verbose: bool,
    lease_duration: int,
    renew_deadline: float,
    retry_period: float,
    settle_seconds: float,
) -> None:
    """Run the composer until it is stopped: it makes the CRDs of CompositeResourceDefinitions.

    Of several replicas, only the holder of the Lease works. A replica that loses the Lease exits with code 1,
    so that it restarts as a standby.
    """
    # Imported only here: the other commands need neither Kopf nor the controllers.
    from crdkeeper.api.compositekinds import COMPOSITE_KINDS
    from crdkeeper.cli.output.logs import replica_logs
    from crdkeeper.cluster.transport.connection import Connection
    from crdkeeper.controllers.composerregistry import COMPOSER_CONTROLLERS
    from crdkeeper.core.conversion.target import WebhookAddress
    from crdkeeper.process import OperatorOptions, run_operator

    replica_logs(log_format, verbose=verbose)
    host, port = listen_address(listen)
    check_lease_times(lease_duration, renew_deadline, retry_period)
    options = OperatorOptions(
        Connection(kubeconfig, context),
        namespace=namespace,
        identity=identity,
        host=host,
        port=port,
        webhook=WebhookAddress(namespace, "crdkeeper-webhook", url=""),
        lease_name="crdkeeper-composer",
        lease_duration=lease_duration,
        renew_deadline=renew_deadline,
        retry_period=retry_period,
        kinds=COMPOSITE_KINDS,
        controllers=COMPOSER_CONTROLLERS,
        settle_seconds=settle_seconds,
    )
    sys.exit(run_async(run_operator(options)))
