"""`crdkeeper run`: the operator."""

import re
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
from crdkeeper.cli.output.logs import replica_logs
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.controllers.registry import CONTROLLERS
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.process import OperatorOptions, run_operator

WEBHOOK_URL = re.compile(r"https://([^/:?#@\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


@click.command()
@connection_options
@replica_options
@click.option(
    "--max-migrations",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="Maximum number of migrations that write at the same time.",
)
@click.option(
    "--webhook-service",
    default="crdkeeper-webhook",
    show_default=True,
    help="The Service of the conversion webhook, in the same namespace.",
)
@click.option(
    "--webhook-url",
    metavar="https://HOST:PORT",
    help="URL at which API servers reach the conversion webhook, instead of the Service.",
)
@click.option(
    "--pages-per-second",
    type=click.FloatRange(min=0.01, max=1000),
    default=10.0,
    show_default=True,
    help="Pages of 100 objects' metadata that reports request per second, for all CRDs together.",
)
@click.option(
    "--watch-labels",
    is_flag=True,
    envvar="CRDKEEPER_WATCH_LABELS",
    help="Also migrate CRDs that have the label crdkeeper.dev/storage-migration: automatic.",
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
    max_migrations: int,
    webhook_service: str,
    webhook_url: str | None,
    pages_per_second: float,
    watch_labels: bool,
) -> None:
    """Run the operator until it is stopped.

    Of several replicas, only the holder of the Lease works. A replica that loses the Lease exits with code 1,
    so that it restarts as a standby.
    """
    replica_logs(log_format, verbose=verbose)
    host, port = listen_address(listen)
    check_lease_times(lease_duration, renew_deadline, retry_period)
    if webhook_url is not None and not WEBHOOK_URL.fullmatch(webhook_url):
        raise click.BadParameter(f"{webhook_url!r} is not https://HOST:PORT", param_hint="--webhook-url")
    options = OperatorOptions(
        Connection(kubeconfig, context),
        namespace=namespace,
        identity=identity,
        host=host,
        port=port,
        lease_duration=lease_duration,
        renew_deadline=renew_deadline,
        retry_period=retry_period,
        at_once=max_migrations,
        controllers=CONTROLLERS,
        webhook=WebhookAddress(namespace, webhook_service, url=webhook_url or ""),
        pages_per_second=pages_per_second,
        watch_labels=watch_labels,
    )
    sys.exit(run_async(run_operator(options)))
