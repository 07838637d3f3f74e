"""What tests can use in any cluster: our own control plane, or the user's cluster."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tests.controlplane import kubeconfig
from tests.controlplane.etcd import Etcd
from tests.controlplane.kubectl import Kubectl

if TYPE_CHECKING:
    from tests.controlplane.plane import ApiServer
    from tests.controlplane.processes import Process

TOKEN_DURATION = "8h"


class Cluster(ABC):
    """A running cluster with admin access. Files for it are created in its directory."""

    directory: Path

    @property
    @abstractmethod
    def url(self) -> str:
        """The (first) API server."""

    @property
    @abstractmethod
    def ca_file(self) -> Path | None:
        """The CA of the API server's certificate, in PEM; None if the system trusts it."""

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """An admin's kubeconfig."""

    @property
    @abstractmethod
    def etcd(self) -> Etcd:
        """Reads what is really stored."""

    @property
    @abstractmethod
    def api_servers(self) -> Sequence["ApiServer"]:
        """The API servers as processes that can be paused, killed and restarted."""

    @property
    @abstractmethod
    def controller_manager(self) -> "Process | None":
        """The controllers' process, None if the cluster runs without controllers."""

    @property
    @abstractmethod
    def _kubectl_program(self) -> Path: ...

    @cached_property
    def kubectl(self) -> Kubectl:
        """`kubectl(*args, input=None, check=True, kubeconfig=None) -> str`, as the admin by default."""
        return Kubectl(
            self._kubectl_program, kubeconfig=self.kubeconfig, cache=self.directory / "kubectl-cache"
        )

    def kubeconfig_for(self, name: str, *, token: str, server: int = 0) -> Path:
        """Writes a kubeconfig for another user, or for another of the API servers."""
        path = self.directory / "kubeconfigs" / f"{name}.kubeconfig"
        return kubeconfig.write(path, url=self._server_url(server), ca_file=self.ca_file, token=token)

    def service_account_kubeconfig(self, namespace: str, name: str, *, server: int = 0) -> Path:
        """Writes a kubeconfig for an existing ServiceAccount, with a token that outlasts a long test."""
        token = self.kubectl(
            "create", "token", name, f"--namespace={namespace}", f"--duration={TOKEN_DURATION}"
        )
        return self.kubeconfig_for(f"{namespace}-{name}-{server}", token=token.strip(), server=server)

    def _server_url(self, server: int) -> str:
        return self.api_servers[server].url if server else self.url
