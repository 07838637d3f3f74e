"""Where the demo runs: its own control plane, or the user's cluster, which it cleans up."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pykube.http import HTTPClient

from crdkeeper.api.meta import GROUP as OUR_GROUP
from crdkeeper.scripting import connect
from demo.databases import GROUP, NAMESPACES, PLURAL
from demo.terminal import ROOT, Terminal
from tests.cluster.harness.installation import NAMESPACE
from tests.cluster.harness.operator import Operator
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.external import ExternalCluster
from tests.controlplane.plane import ControlPlane

KUBECONFIG: Final = "CRDKEEPER_DEMO_KUBECONFIG"
CRD: Final = f"{PLURAL}.{GROUP}"


class Occupied(Exception):
    """The user's cluster contains something that the demo would disturb."""


@dataclass(slots=True)
class Stage:
    """The cluster, a terminal whose kubectl uses it, a client for it, and the operator once it runs."""

    cluster: Cluster
    terminal: Terminal
    api: HTTPClient
    operator: Operator | None = None
    composer: Operator | None = None
    webhook: WebhookPod | None = None

    @property
    def plane(self) -> ControlPlane | None:
        """The cluster if it is our own control plane, with access to its etcd."""
        return self.cluster if isinstance(self.cluster, ControlPlane) else None

    @property
    def has_nodes(self) -> bool:
        """Whether pods can run."""
        return bool(self.cluster.kubectl("get", "nodes", "--output=name").strip())

    def start_operator(self) -> Operator:
        """Starts it as a process on this machine, with the account from the manifests."""
        flags = {"webhook-url": self.webhook.url} if self.webhook is not None else None
        self.operator = Operator(self.cluster, identity="demo", flags=flags)
        self.operator.start()
        return self.operator

    def start_composer(self) -> Operator:
        """Starts it in the same way."""
        self.composer = Operator(
            self.cluster, identity="composer", account="crdkeeper-composer", command=("compose", "run")
        )
        self.composer.start()
        return self.composer

    def add_webhook(self) -> WebhookPod:
        """A conversion webhook, which can start when the operator has created its certificate."""
        self.webhook = WebhookPod(self.cluster, self.cluster.directory / "webhook")
        return self.webhook

    def stop(self) -> None:
        """Stops what is running."""
        if self.webhook is not None:
            self.webhook.close()
        for each in (self.composer, self.operator):
            if each is not None:
                each.close()
        self.api.session.close()


@contextmanager
def stage(*, own: bool = False) -> Iterator[Stage]:
    """Sets up the stage, and clears it however the demo ends. `own`: never on the user's cluster."""
    with tempfile.TemporaryDirectory(prefix="crdkeeper-demo-") as name:
        directory = Path(name)
        external = None if own else os.environ.get(KUBECONFIG)
        with _borrowed(Path(external), directory) if external else _own(directory) as set_up:
            try:
                yield set_up
            finally:
                set_up.stop()


@contextmanager
def _own(directory: Path) -> Iterator[Stage]:
    kubectl = binaries.find().kubectl
    with ControlPlane(directory) as plane:
        yield Stage(plane, terminal(plane, kubectl.parent), connect(plane.kubeconfig))


@contextmanager
def _borrowed(kubeconfig: Path, directory: Path) -> Iterator[Stage]:
    cluster = ExternalCluster(kubeconfig, directory)
    _refuse_to_disturb(cluster)
    try:
        yield Stage(cluster, terminal(cluster), connect(cluster.kubeconfig))
    finally:
        _tidy(cluster)


def terminal(cluster: Cluster, *programs: Path) -> Terminal:
    """A terminal whose kubectl uses the cluster, with further folders of programs in its PATH."""
    # The command `crdkeeper` is next to the interpreter for which its package is installed.
    path = [*map(str, programs), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return Terminal(
        {
            "PATH": os.pathsep.join(path),
            "KUBECONFIG": str(cluster.kubeconfig),
            "KUBECACHEDIR": str(cluster.directory / "kubectl-cache"),
            "KUBERC": "off",
        }
    )


def _refuse_to_disturb(cluster: Cluster) -> None:
    definitions = cluster.kubectl("get", "crd", "--output=name").split()
    namespaces = cluster.kubectl("get", "namespace", "--output=name").split()
    found = [
        each
        for each in (*definitions, *namespaces)
        if each.endswith((f".{OUR_GROUP}", f"/{CRD}"))
        or each in {f"namespace/{name}" for name in (NAMESPACE, *NAMESPACES)}
    ]
    if found:
        raise Occupied(
            f"The cluster of {KUBECONFIG} already has {', '.join(found)}. The demo installs these, and "
            "removes them at its end: give it a cluster without them."
        )


def _tidy(cluster: Cluster) -> None:
    """Removes everything that the demo has created in a cluster that remains."""
    for what in (
        ("crd", CRD),
        ("namespace", *NAMESPACES),
        ("clusterrole", "crdkeeper-rewrite-platform"),
        ("--kustomize", str(ROOT / "manifests")),
    ):
        cluster.kubectl("delete", "--ignore-not-found", *what, check=False)
