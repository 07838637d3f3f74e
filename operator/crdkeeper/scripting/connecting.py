"""The way into the cluster: pykube-ng's client, with credentials handled as kubectl handles them.

pykube-ng by itself writes certificates and private keys of a kubeconfig to predictable names in the shared
temporary directory, trusts what it finds there, and keeps the first token of a pod's ServiceAccount although
the kubelet renews it. Python 3.13 besides refuses certificates that kubectl accepts. Not so here.
"""

import os
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml
from pykube.config import BytesOrFile, KubeConfig
from pykube.exceptions import PyKubeError
from pykube.http import HTTPClient, KubernetesHTTPAdapter
from requests import PreparedRequest
from requests.auth import AuthBase

from crdkeeper.scripting.errors import ConnectError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet puts a pod's credentials
(https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/)."""
_DEFAULT_KUBECONFIG: Final = Path("~/.kube/config")
_REQUEST_SECONDS: Final = 65.0
"""As long as the API server itself works on a request by default."""


def connect(kubeconfig: str | Path | None = None, *, context: str | None = None) -> HTTPClient:
    """A client of the cluster that a kubeconfig file names, with the rights of its user.

    Without one it is the file of the environment variable KUBECONFIG, else in a pod its own cluster with its
    ServiceAccount, else ~/.kube/config. `context` is another one than the file's current one.

    Raises ConnectError.
    """
    chosen = kubeconfig or os.environ.get("KUBECONFIG")
    in_cluster = not chosen and not context and "KUBERNETES_SERVICE_HOST" in os.environ
    path = SERVICE_ACCOUNT if in_cluster else Path(chosen or _DEFAULT_KUBECONFIG).expanduser()
    try:
        if in_cluster:
            return _client(KubeConfig.from_service_account(str(path)), path / "token")
        return _client(KubeConfig.from_file(str(path), current_context=context))
    except (PyKubeError, OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise ConnectError(f"{path} does not lead to a cluster: {what}") from error


def _client(config: KubeConfig, token_file: Path | None = None) -> HTTPClient:
    client = HTTPClient(config, timeout=_REQUEST_SECONDS, http_adapter=_Adapter(config))
    if token_file is not None:
        client.session.auth = _TokenFile(token_file)
    return client


class _TokenFile(AuthBase):
    """The token as the kubelet has last written it: it renews a pod's token before it expires."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._path.read_text(encoding='utf-8').strip()}"
        return request


class _Adapter(KubernetesHTTPAdapter):
    """Uses one TLS context for all connections, so that no key or certificate is left in a file."""

    def __init__(self, config: KubeConfig) -> None:
        self._verifies = not config.cluster.get("insecure-skip-tls-verify", False)
        self._tls = _tls(config, verifies=self._verifies)
        super().__init__(config)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, ssl_context=self._tls)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, **kwargs, ssl_context=self._tls)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Nothing to add: requests would have its own bundle of public CAs trusted besides."""

    def _setup_request_certificates(self, config: Any, request: Any, kwargs: dict[str, Any]) -> None:
        kwargs["verify"] = self._verifies
        if self.cert and self.key:  # from an exec plugin, in files that only we can read
            kwargs["cert"] = (self.cert.name, self.key.name)


def _tls(config: KubeConfig, *, verifies: bool) -> ssl.SSLContext:
    """Hostname and chain are verified as kubectl does: by the kubeconfig's CA, or those of the system."""
    authority = _content(config.cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority is not None else None)
    # Since Python 3.13 this refuses CAs without key identifiers; Go, and with it kubectl, accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = (_content(config.user, f"client-{each}") for each in ("certificate", "key"))
    if certificate is not None and key is not None:
        with TemporaryDirectory(prefix="crdkeeper-") as directory:  # OpenSSL reads them from files only
            files = Path(directory, "tls.crt"), Path(directory, "tls.key")
            for file, content in zip(files, (certificate, key), strict=True):
                file.write_bytes(content)
            context.load_cert_chain(*files)
    return context


def _content(section: dict[str, Any], name: str) -> bytes | None:
    found: BytesOrFile | None = section.get(name)
    return found.bytes() if found is not None else None
