"""What the process gives to each controller when it begins."""

from dataclasses import dataclass

from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress


@dataclass(frozen=True, slots=True)
class Context:
    """The cluster, what is known of it, and how this operator is to work."""

    client: Client
    state: ClusterState
    metrics: OperatorMetrics
    identity: str
    """Of this process, for Events."""
    namespace: str
    """The operator's."""
    webhook: WebhookAddress
    """Where API servers reach `crdkeeper webhook`."""
    at_once: int
    """How many migrations run at the same time."""
