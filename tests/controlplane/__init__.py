"""A real Kubernetes control plane for the tests: etcd, API servers and controllers, without containers."""

from tests.controlplane.cluster import Cluster
from tests.controlplane.etcd import Etcd
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.plane import ApiServer, ControlPlane
from tests.controlplane.processes import Process, ProcessFailed

__all__ = ["ApiServer", "Cluster", "ControlPlane", "Etcd", "KubectlError", "Process", "ProcessFailed"]
