"""Connects to the cluster: pykube-ng's client, configured like kubectl and the operator.

pykube-ng's own reader leaves private keys under predictable names in the shared temporary directory, trusts
the CAs that it finds there, keeps a pod's first token although the kubelet renews it, and does not support
the current exec plugins. So `kubernetes.config` reads, and pykube-ng gets an address and a session.
"""

import os
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml
from kubernetes import config as kubernetes_config
from kubernetes.client import Configuration
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
from pykube.config import KubeConfig
from pykube.http import HTTPClient
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from requests.structures import CaseInsensitiveDict

from crdkeeper.core.kubeconfig.context import current_context, has_content, user_of
from crdkeeper.core.kubeconfig.credentials import check_plugin, take_id_token
from crdkeeper.core.kubeconfig.error import MALFORMED, KubeconfigError
from crdkeeper.core.kubeconfig.impersonation import impersonation
from crdkeeper.core.kubeconfig.proxies import proxy_of
from crdkeeper.scripting.errors import ConnectError

NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where the kubelet writes the pod's namespace
(https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/).
"""
_DEFAULT_KUBECONFIG: Final = Path("~/.kube/config")
_REQUEST_SECONDS: Final = 65.0
"""Longer than the API server itself works on a request, by default a minute."""


def connect(kubeconfig: str | Path | None = None, *, context: str | None = None) -> HTTPClient:
    """Return a client for the cluster in a kubeconfig file, with its user's permissions.

    Without a file it uses the environment variable KUBECONFIG, which may be a list as for kubectl; else, in a
    pod, its own cluster and ServiceAccount; else ~/.kube/config. `context` replaces the file's current
    context.

    Raises ConnectError.
    """
    chosen = kubeconfig or os.environ.get("KUBECONFIG")
    in_pod = not chosen and not context and "KUBERNETES_SERVICE_HOST" in os.environ
    files = str(chosen or _DEFAULT_KUBECONFIG.expanduser())
    loaded = Configuration(proxy="")  # or the library takes one of the environment, also against NO_PROXY
    headers: Mapping[str, str] = {}
    try:
        with TemporaryDirectory(prefix="crdkeeper-") as directory:  # for certificates and keys given as data
            if in_pod:
                kubernetes_config.load_incluster_config(client_configuration=loaded)
                namespace = NAMESPACE_FILE.read_text(encoding="utf-8").strip()
            else:
                namespace, headers = _read(files, context, loaded, directory)
            adapter = _Adapter(_tls(loaded), loaded.tls_server_name)
        proxy = proxy_of(loaded.host, loaded.proxy, os.environ)
    except (kubernetes_config.ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        where = "This pod's ServiceAccount" if in_pod else files
        raise ConnectError(f"{where} does not point to a cluster: {error}") from error
    except KubeconfigError as error:
        raise ConnectError(str(error)) from error
    except (LookupError, AttributeError) as error:
        raise ConnectError(MALFORMED) from error
    client = HTTPClient(_address(loaded, namespace), timeout=_REQUEST_SECONDS, http_adapter=adapter)
    client.session.auth = _Token(loaded)
    client.session.headers.update(headers)
    client.session.trust_env = False  # whose proxy would count before that of the kubeconfig
    if proxy:
        client.session.proxies = {"http": proxy, "https": proxy}
    return client


def _read(
    files: str, context: str | None, into: Configuration, directory: str
) -> tuple[str, Mapping[str, str]]:
    """Read a context, and return its namespace, and headers that go with its credentials."""
    filled = os.pathsep.join(each for each in files.split(os.pathsep) if not _is_empty(Path(each)))
    merged = KubeConfigMerger(filled or files)  # which says that the file is empty
    documents = merged.config_files.values()
    loader = KubeConfigLoader(
        merged.config,
        active_context=context or current_context(documents),
        config_base_path=None,
        temp_file_path=directory,
    )
    found = loader.current_context["context"]
    user = user_of(documents, found.get("user"))
    headers = _impersonation(user)
    take_id_token(user, time.time())
    loader.load_and_set(into)
    check_plugin(user, into.api_key.get("BearerToken"), into.cert_file)
    return str(found.get("namespace") or "default"), headers


def _is_empty(path: Path) -> bool:
    # What is no file, such as a pipe, can be read only once.
    return path.is_file() and not has_content(path.read_bytes())


def _impersonation(user: Mapping[str, Any]) -> Mapping[str, str]:
    """Headers. Raises KubeconfigError if there are several of a name, as requests sends one."""
    found: CaseInsensitiveDict[str] = CaseInsensitiveDict()
    for name, value in impersonation(user):
        if name in found:
            field = "as-groups" if name == "Impersonate-Group" else "as-user-extra"
            raise KubeconfigError(
                f"Scripts cannot send several values of {field}, as the kubeconfig's user has."
            )
        found[name] = value.encode().decode("latin-1")  # requests encodes it by that; Go sends UTF-8
    return found


def _address(loaded: Configuration, namespace: str) -> KubeConfig:
    return KubeConfig(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "namespace": namespace}}],
            "clusters": [{"name": "c", "cluster": {"server": loaded.host.rstrip("/")}}],
        }
    )


class _Token(AuthBase):
    """The current token: it is read again from its file or plugin before it expires."""

    def __init__(self, loaded: Configuration) -> None:
        self._loaded = loaded

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        token = self._loaded.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            request.headers["Authorization"] = token.strip()
        return request


class _Adapter(HTTPAdapter):
    """Uses one TLS context for all connections; expects `server_name`, if given, in the certificate."""

    def __init__(self, tls: ssl.SSLContext, server_name: str | None) -> None:
        self._tls = {"ssl_context": tls, "server_hostname": server_name}
        self._verifies = tls.verify_mode != ssl.CERT_NONE
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Called by requests when the adapter is created."""
        super().init_poolmanager(*args, **{**kwargs, **self._tls})

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Called by requests when there is a proxy."""
        return super().proxy_manager_for(proxy, **{**kwargs, **self._tls})

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Called by requests with the CAs from the environment; only those of the kubeconfig count."""
        return super().send(request, *args, **{**kwargs, "verify": self._verifies})

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Adds nothing: requests would trust public CAs besides the cluster's own."""


def _tls(loaded: Configuration) -> ssl.SSLContext:
    """Verify host name and chain as kubectl does: by the kubeconfig's CA, or by the system's."""
    context = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
    # Since Python 3.13 this rejects CAs without key identifiers, and before it rejects a CA file with only an
    # intermediate CA; Go, and with it kubectl, accepts both. Go ignores common names.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    if not loaded.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if loaded.cert_file:
        context.load_cert_chain(loaded.cert_file, loaded.key_file)
    return context
