"""The secrets of one control plane: a CA, a serving certificate, the service accounts' key, static tokens."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=365)
NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class Pki:
    """Files in the plane's directory, and the tokens that are in one of them."""

    ca_file: Path
    serving_certificate: Path
    serving_key: Path
    service_account_key: Path
    service_account_public_key: Path
    token_file: Path
    admin_token: str
    controller_manager_token: str


def create(directory: Path) -> Pki:
    """Makes all secrets anew. One serving certificate does for all programs: they share one address."""
    directory.mkdir(parents=True, mode=0o700)
    pki = Pki(
        ca_file=directory / "ca.crt",
        serving_certificate=directory / "serving.crt",
        serving_key=directory / "serving.key",
        service_account_key=directory / "service-account.key",
        service_account_public_key=directory / "service-account.pub",
        token_file=directory / "tokens.csv",
        admin_token=secrets.token_urlsafe(24),
        controller_manager_token=secrets.token_urlsafe(24),
    )
    _write_certificates(pki)
    service_account_key = ec.generate_private_key(ec.SECP256R1())
    pki.service_account_key.write_bytes(_private(service_account_key))
    pki.service_account_public_key.write_bytes(
        service_account_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    pki.token_file.write_text(
        f'{pki.admin_token},admin,admin,"system:masters"\n'
        f"{pki.controller_manager_token},system:kube-controller-manager,controller-manager\n"
    )
    return pki


def _write_certificates(pki: Pki) -> None:
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "crdkeeper test control plane")])
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    serving = (
        _certificate(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]), ca_name, key.public_key()
        )
        .add_extension(
            x509.SubjectAlternativeName(
                [*map(x509.DNSName, NAMES), x509.IPAddress(ip_address("127.0.0.1"))],
            ),
            critical=False,
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pki.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    pki.serving_certificate.write_bytes(serving.public_bytes(serialization.Encoding.PEM))
    pki.serving_key.write_bytes(_private(key))


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
