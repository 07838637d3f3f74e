"""`crdkeeper webhook`: serves conversions to the API server."""

import logging
import ssl
import sys
from pathlib import Path

import click

from crdkeeper.cli.input.options import DEFAULT_NAMESPACE, connection_options, listen_address, run_async
from crdkeeper.cli.output.logs import PROCESS_FORMAT, child_logs, one_line_logs
from crdkeeper.cli.output.printing import Trouble
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.webhook.changes.clusterpolicies import ClusterPolicies
from crdkeeper.webhook.processes.cpulimit import MOST_PROCESSES, processes_by_limit
from crdkeeper.webhook.processes.parent import Parent
from crdkeeper.webhook.rules.clusterrules import ClusterRules
from crdkeeper.webhook.rules.rulebook import RuleBook, RuleSource
from crdkeeper.webhook.server import DRAIN_SECONDS, WebhookOptions, run_webhook


@click.command(short_help="Serve conversions to the API server.")
@connection_options
@click.option(
    "--rules",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE|FOLDER",
    help="VersionConversions and their CRDs. [default: the cluster's]",
)
@click.option(
    "--namespace",
    "-n",
    envvar="POD_NAMESPACE",
    default=DEFAULT_NAMESPACE,
    show_default=True,
    help="Namespace in which the operator publishes the rules of the cluster's VersionConversions.",
)
@click.option(
    "--tls-cert-file", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE"
)
@click.option(
    "--tls-private-key-file", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE"
)
@click.option("--listen", default=":9443", show_default=True, help="Address of POST /convert/PLURAL.GROUP.")
@click.option(
    "--probe-port", type=int, default=8081, show_default=True, help="Port of /healthz, /readyz, /metrics."
)
@click.option(
    "--max-request-bytes",
    type=click.IntRange(1 << 10),
    default=16 << 20,
    show_default=True,
    help="Maximum size of a request. The API server sends all objects of a list in one request.",
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(min=0),
    default=DRAIN_SECONDS,
    show_default=True,
    help="Maximum time to keep serving after SIGTERM until all clients have disconnected.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, MOST_PROCESSES),
    help="Number of processes that serve the port. [default: the container's CPU limit, rounded up, or 1]",
)
def webhook(
    kubeconfig: Path | None,
    context: str | None,
    rules: tuple[Path, ...],
    namespace: str,
    tls_cert_file: Path,
    tls_private_key_file: Path,
    listen: str,
    probe_port: int,
    max_request_bytes: int,
    drain_seconds: float,
    processes: int | None,
) -> None:
    """Serve conversions to the API server until stopped.

    The rules come from the cluster's VersionConversions, once the operator has verified them, or from files.
    The webhook picks up new rules and certificates as they change; rules that do not compile never replace
    those being served. A CRD uses the webhook if its spec.conversion.webhook.clientConfig points to
    /convert/PLURAL.GROUP, which the operator sets. It also judges changes of CRDs for DefinitionPolicies that
    want that, if manifests/changes is installed.
    """
    logging.basicConfig(level=logging.INFO, format=PROCESS_FORMAT)
    one_line_logs()
    host, port = listen_address(listen)
    options = WebhookOptions(
        tls_cert_file,
        tls_private_key_file,
        host=host,
        port=port,
        probe_port=probe_port,
        max_bytes=max_request_bytes,
        drain_seconds=drain_seconds,
    )
    processes = processes or processes_by_limit()
    source: RuleSource = RuleBook(rules)
    policies: ClusterPolicies | None = None
    if not rules:
        connection = Connection(kubeconfig, context)
        source, policies = ClusterRules(connection, namespace), ClusterPolicies(connection)
    try:
        if processes > 1:
            status = Parent(options, source, policies, processes, child_logs).run()
        else:
            status = run_async(run_webhook(options, source, policies))
    except (OSError, ssl.SSLError, ValueError) as error:
        raise Trouble(f"cannot serve: {error}") from error
    sys.exit(status)
