"""What the process passes to each controller at startup."""

from dataclasses import dataclass

from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress


@dataclass(frozen=True, slots=True)
class Context:
    """The cluster, the operator's knowledge of it, and the operator's settings."""

    client: Client
    state: ClusterState
    metrics: OperatorMetrics
    identity: str
    """Identifies this process in Events."""
    namespace: str
    """The operator's own namespace."""
    webhook: WebhookAddress
    """Where API servers reach `crdkeeper webhook`."""
    at_once: int
    """How many migrations may run concurrently."""
    settle_seconds: float
    """How long the API of a definition in deletion refuses new composites before its CRD is deleted."""
    pages_per_second: float = 10.0
    """How many pages of objects' metadata reports may request, for all CRDs together."""
    watch_labels: bool = False
    """Whether the label of a CRD asks for migrations."""
