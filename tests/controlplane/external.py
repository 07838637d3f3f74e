"""The user's cluster, given by CRDKEEPER_TEST_KUBECONFIG: kind, envtest, or any other."""

import base64
import json
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.etcd import Etcd
from tests.controlplane.plane import ApiServer
from tests.controlplane.processes import Process


class ExternalCluster(Cluster):
    """A running cluster without access to its machines: tests that need that are skipped."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self.directory = directory
        self._source = kubeconfig.expanduser().absolute()

    @property
    def kubeconfig(self) -> Path:
        return self._source

    @property
    def url(self) -> str:
        return str(self._settings["server"])

    @cached_property
    def ca_file(self) -> Path | None:
        data = self._settings.get("certificate-authority-data")
        if data is None:
            return None
        path = self.directory / "external-ca.crt"
        path.write_bytes(base64.b64decode(data))
        return path

    @property
    def etcd(self) -> Etcd:
        _skip("looks into etcd")

    @property
    def api_servers(self) -> Sequence[ApiServer]:
        _skip("handles the API servers' processes")

    @property
    def controller_manager(self) -> Process | None:
        _skip("handles the controller manager's process")

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """The cluster in the kubeconfig's current context, with the contents of referenced files."""
        view = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json"))
        settings: dict[str, Any] = view["clusters"][0]["cluster"]
        return settings

    @property
    def _kubectl_program(self) -> Path:
        program = shutil.which("kubectl")
        if program is None:
            raise RuntimeError("CRDKEEPER_TEST_KUBECONFIG is set, so the tests need `kubectl` in PATH")
        return Path(program)


def _skip(what: str) -> NoReturn:
    pytest.skip(
        f"this test {what}: not possible with CRDKEEPER_TEST_KUBECONFIG, only on our own control plane"
    )
