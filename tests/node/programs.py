"""The programs of a node, built from the Go modules in `modules/` into the same cache as the control plane's.

Each has its own module, because their dependencies conflict.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import Module, build

MODULES = Path(__file__).parent / "modules"

KUBERNETES = Module(
    name="node-kubernetes",
    directory=MODULES / "kubernetes",
    programs=("kubelet", "kube-proxy", "kube-scheduler"),
    kubernetes=True,
)
CONTAINERD = Module(
    name="node-containerd",
    directory=MODULES / "containerd",
    programs=("containerd", "containerd-shim-runc-v2", "ctr"),
    # Snapshotters that need kernel modules or C libraries; overlayfs is enough.
    tags=("no_btrfs", "no_devmapper", "no_zfs", "no_aufs"),
)
RUNC = Module(
    name="node-runc",
    directory=MODULES / "runc",
    programs=("runc",),
    # Without it a pod with the seccomp profile RuntimeDefault does not start.
    tags=("seccomp",),
    libraries=("libseccomp",),
)
CNI = Module(name="node-cni", directory=MODULES / "cni", programs=("ptp", "loopback", "host-local"))
COREDNS = Module(name="node-coredns", directory=MODULES / "coredns", programs=("coredns",))


@dataclass(frozen=True)
class Programs:
    """Where the programs are."""

    kubelet: Path
    kube_proxy: Path
    kube_scheduler: Path
    containerd: Path
    shim: Path
    ctr: Path
    runc: Path
    cni: Path
    """The directory of the CNI plugins."""
    coredns: Path


def find() -> Programs:
    """The programs, built now if the cache lacks them (about 7 minutes in all). Raises BuildFailed."""
    kubernetes, containerd = build(KUBERNETES), build(CONTAINERD)
    return Programs(
        kubelet=kubernetes / "kubelet",
        kube_proxy=kubernetes / "kube-proxy",
        kube_scheduler=kubernetes / "kube-scheduler",
        containerd=containerd / "containerd",
        shim=containerd / "containerd-shim-runc-v2",
        ctr=containerd / "ctr",
        runc=build(RUNC) / "runc",
        cni=build(CNI),
        coredns=build(COREDNS) / "coredns",
    )
