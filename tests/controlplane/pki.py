"""The secrets of one control plane: a CA, a serving certificate, the ServiceAccounts' key, static tokens."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = "127.0.0.1"
ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
LIFETIME = timedelta(days=365)
NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class Pki:
    """Files in the control plane's directory, and the tokens in one of them."""

    ca_file: Path
    serving_certificate: Path
    serving_key: Path
    service_account_key: Path
    service_account_public_key: Path
    kubelet_client_certificate: Path
    """Used by API servers to authenticate to kubelets."""
    kubelet_client_key: Path
    token_file: Path
    tokens: Mapping[str, str]
    """By user."""

    @property
    def admin_token(self) -> str:
        """The token of a member of system:masters."""
        return self.tokens[ADMIN]

    @property
    def controller_manager_token(self) -> str:
        """The token of kube-controller-manager."""
        return self.tokens[CONTROLLER_MANAGER]


def create(
    directory: Path, *, addresses: Sequence[str] = (), users: Mapping[str, Sequence[str]] | None = None
) -> Pki:
    """Creates all secrets again.

    All programs share one serving certificate, for 127.0.0.1 and for these addresses. The users, each with
    their groups, get a token in addition to the two of every control plane.
    """
    everybody = {ADMIN: ("system:masters",), CONTROLLER_MANAGER: (), **(users or {})}
    directory.mkdir(parents=True, mode=0o700)
    pki = Pki(
        ca_file=directory / "ca.crt",
        serving_certificate=directory / "serving.crt",
        serving_key=directory / "serving.key",
        service_account_key=directory / "service-account.key",
        service_account_public_key=directory / "service-account.pub",
        token_file=directory / "tokens.csv",
        kubelet_client_certificate=directory / "kubelet-client.crt",
        kubelet_client_key=directory / "kubelet-client.key",
        tokens={user: secrets.token_urlsafe(24) for user in everybody},
    )
    _write_certificates(pki, (LOOPBACK, *addresses))
    service_account_key = ec.generate_private_key(ec.SECP256R1())
    pki.service_account_key.write_bytes(_private(service_account_key))
    pki.service_account_public_key.write_bytes(
        service_account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    pki.token_file.write_text(
        "".join(
            f'{pki.tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in everybody.items()
        )
    )
    return pki


def _write_certificates(pki: Pki, addresses: Sequence[str]) -> None:
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("crdkeeper test control plane")
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    pki.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))

    key = ec.generate_private_key(ec.SECP256R1())
    serving = (
        _certificate(_name("kube-apiserver"), ca_name, key.public_key())
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    *map(x509.DNSName, NAMES),
                    *(x509.IPAddress(ip_address(each)) for each in dict.fromkeys(addresses)),
                ],
            ),
            critical=False,
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pki.serving_certificate.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
    pki.serving_key.write_bytes(_private(key))

    key = ec.generate_private_key(ec.SECP256R1())
    client = (
        _certificate(_name("kube-apiserver-kubelet-client", "system:masters"), ca_name, key.public_key())
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pki.kubelet_client_certificate.write_bytes(client.public_bytes(serialization.Encoding.PEM))
    pki.kubelet_client_key.write_bytes(_private(key))


def _name(common_name: str, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
