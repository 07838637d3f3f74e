"""The flags of each program, and why the unusual ones are set."""

from collections.abc import Sequence
from pathlib import Path

from tests.controlplane.pki import LOOPBACK, Pki

Flags = dict[str, str]
SERVICES = "10.0.0.0/24"


def etcd(data: Path, *, client_port: int, peer_port: int, fsync: bool) -> Flags:
    """One member, on disk; without fsync, which is faster, the data do not survive a power failure."""
    client, peer = f"http://{LOOPBACK}:{client_port}", f"http://{LOOPBACK}:{peer_port}"
    return {
        "name": "default",
        "data-dir": str(data),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "false" if fsync else "true",
        # The default of 2 GiB is full after a rewrite or two of a million objects.
        "quota-backend-bytes": str(8 << 30),
        # As in real clusters: they tell the API server's watch cache how fresh it is.
        "watch-progress-notify-interval": "5s",
        "log-level": "warn",
    }


def kube_apiserver(
    pki: Pki, directory: Path, *, etcd_url: str, address: str, port: int, emulated_version: str | None
) -> Flags:
    """As in production where clients notice it: RBAC, watch cache, priority and fairness."""
    return {
        "etcd-servers": etcd_url,
        "bind-address": address,
        "advertise-address": address,
        "secure-port": str(port),
        "cert-dir": str(directory),
        "tls-cert-file": str(pki.serving_certificate),
        "tls-private-key-file": str(pki.serving_key),
        "client-ca-file": str(pki.ca_file),
        "kubelet-client-certificate": str(pki.kubelet_client_certificate),
        "kubelet-client-key": str(pki.kubelet_client_key),
        "kubelet-certificate-authority": str(pki.ca_file),
        "kubelet-preferred-address-types": "InternalIP",
        "authorization-mode": "RBAC",
        "token-auth-file": str(pki.token_file),
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(pki.service_account_public_key),
        "service-account-signing-key-file": str(pki.service_account_key),
        "service-cluster-ip-range": SERVICES,
        "allow-privileged": "true",
        # Nothing uses the `kubernetes` Service to reach a loopback address.
        **({"endpoint-reconciler-type": "none"} if address == LOOPBACK else {}),
        "shutdown-delay-duration": "0s",
        **_emulated(emulated_version),
    }


def kube_controller_manager(
    pki: Pki,
    directory: Path,
    *,
    kubeconfig: Path,
    port: int,
    controllers: Sequence[str],
    emulated_version: str | None,
) -> Flags:
    """Only the named controllers, each with its own ServiceAccount as in production."""
    return {
        "kubeconfig": str(kubeconfig),
        "bind-address": LOOPBACK,
        "secure-port": str(port),
        "cert-dir": str(directory),
        "tls-cert-file": str(pki.serving_certificate),
        "tls-private-key-file": str(pki.serving_key),
        "use-service-account-credentials": "true",
        "service-account-private-key-file": str(pki.service_account_key),
        "root-ca-file": str(pki.ca_file),
        "leader-elect": "false",
        "controllers": ",".join(controllers),
        **_emulated(emulated_version),
    }


def _emulated(version: str | None) -> Flags:
    return {"emulated-version": f"kube={version}"} if version else {}
