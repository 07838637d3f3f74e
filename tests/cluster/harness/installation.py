"""Installs crdkeeper on a cluster as documented."""

from pathlib import Path

from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import GROUP
from tests.controlplane.cluster import Cluster

MANIFESTS = Path(__file__).parents[3] / "manifests"
NAMESPACE = "crdkeeper-system"
SERVICE_ACCOUNT = "crdkeeper-operator"
CRDS = [f"crd/{kind.plural}.{GROUP}" for kind in KINDS]


def install(cluster: Cluster, manifests: Path = MANIFESTS) -> None:
    """Applies manifests and waits for the kinds. The Deployment has no running pods."""
    cluster.kubectl("apply", "--server-side", f"--kustomize={manifests}")
    cluster.kubectl.wait_established(*CRDS)
