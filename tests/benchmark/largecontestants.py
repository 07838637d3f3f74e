"""crdkeeper's two ways to run a migration, as processes that can be killed and started again."""

import sys
from pathlib import Path
from typing import Protocol

import yaml

from tests.benchmark.contestants import begin
from tests.benchmark.distance import Distance
from tests.benchmark.subject import CRD, GROUP, PLURAL
from tests.cluster.cli.jobsample import documents
from tests.cluster.harness import CustomKind
from tests.cluster.harness.installation import NAMESPACE
from tests.cluster.harness.operator import Operator
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import Process

_GRACE = 60.0


class Contestant(Protocol):
    """One of the two."""

    title: str

    def begin(self, name: str) -> None:
        """Have it run a new StorageMigration of that name."""

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""

    def resume(self) -> None:
        """Start it again."""

    def end(self) -> None:
        """Wait for its end, or end it."""

    @property
    def process(self) -> "Operator | Process":
        """What runs now."""


class ByOperator:
    """`crdkeeper run`, and a StorageMigration for it."""

    title = "operator"

    def __init__(self, plane: ControlPlane, account: Path) -> None:
        self._plane = plane
        self.process = Operator(plane, identity="bench", flags={"kubeconfig": str(account)})

    def begin(self, name: str) -> None:
        """See Contestant."""
        self.process.start()
        begin(self._plane, name)

    def kill(self) -> None:
        """See Contestant."""
        self.process.kill()

    def resume(self) -> None:
        """See Contestant."""
        self.process.start(wait=False)

    def end(self) -> None:
        """See Contestant."""
        self.process.close()


class ByCommand:
    """`crdkeeper migrate`, with the rights of the sample Job."""

    title = "command"

    def __init__(self, plane: ControlPlane, distance: Distance) -> None:
        self._directory = plane.directory / "commands"
        rights = [each for each in documents(CustomKind(GROUP, PLURAL)) if each["kind"] != "Job"]
        plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(rights))
        (name,) = (each["metadata"]["name"] for each in rights if each["kind"] == "ServiceAccount")
        account = plane.service_account_kubeconfig(NAMESPACE, name)
        self._kubeconfig = distance.kubeconfig(account)
        self.process = self._made("unnamed")

    def begin(self, name: str) -> None:
        """See Contestant."""
        self.process = self._made(name)
        self.process.start()

    def kill(self) -> None:
        """See Contestant."""
        self.process.kill()

    def resume(self) -> None:
        """See Contestant."""
        self.process.start()

    def end(self) -> None:
        """See Contestant."""
        self.process.stop(_GRACE)

    def _made(self, name: str) -> Process:
        return Process(
            name,
            Path(sys.executable),
            {"kubeconfig": str(self._kubeconfig), "name": name, "settle-seconds": "1"},
            arguments=("-m", "crdkeeper", "migrate", CRD, "--ignore-api-server-leases"),
            directory=self._directory,
            ready=lambda: True,
        )
