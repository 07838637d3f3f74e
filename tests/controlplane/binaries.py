"""The source of the control plane's programs: the user's envtest directory, or our own build."""

import os
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.build import Module, build

CONTROL_PLANE = Module(
    name="controlplane",
    directory=Path(__file__).parent / "module",
    programs=("etcd", "kube-apiserver", "kube-controller-manager", "kubectl"),
    renamed={"server": "etcd"},
    kubernetes=True,
    otherwise=", or set KUBEBUILDER_ASSETS to a directory with envtest's programs",
)


class BinariesMissing(RuntimeError):
    """The directory that the user named lacks an essential program."""


@dataclass(frozen=True)
class Binaries:
    """The programs. Without kube-controller-manager, which envtest lacks, nothing collects garbage, deletes
    namespaces or creates ServiceAccounts.
    """

    etcd: Path
    kube_apiserver: Path
    kubectl: Path
    kube_controller_manager: Path | None


def find() -> Binaries:
    """The programs in KUBEBUILDER_ASSETS if that is set, else those built from `module/` (once: cached)."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return _from_assets(Path(assets)) if assets else _in(build(CONTROL_PLANE))


def _from_assets(directory: Path) -> Binaries:
    missing = [name for name in ("etcd", "kube-apiserver", "kubectl") if not (directory / name).is_file()]
    if missing:
        raise BinariesMissing(
            f"KUBEBUILDER_ASSETS={directory} has no {', '.join(missing)}. Point it to a complete envtest "
            "directory, or unset it to have the programs built from source (needs Go, some minutes, once)."
        )
    return _in(directory)


def _in(directory: Path) -> Binaries:
    controller_manager = directory / "kube-controller-manager"
    return Binaries(
        etcd=directory / "etcd",
        kube_apiserver=directory / "kube-apiserver",
        kubectl=directory / "kubectl",
        kube_controller_manager=controller_manager if controller_manager.is_file() else None,
    )
