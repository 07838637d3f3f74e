"""Authorities and the certificates that they sign, as valid or invalid as a test needs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

YEAR = timedelta(days=365)
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Issued:
    """A serving certificate with its key, in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A CA with a certificate that is valid from `begin` for `lifetime`; by default from an hour ago.

    Its certificates have no key identifiers, like those of many clusters. Python 3.13 rejects that by
    default.
    """

    def __init__(
        self,
        name: str = "test-ca",
        *,
        begin: datetime | None = None,
        lifetime: timedelta = YEAR,
        above: Self | None = None,
    ) -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        signer = above or self
        own = _builder(self._name, signer._name, self._key.public_key(), begin, lifetime).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.pem = own.sign(signer._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        hosts: Sequence[str] = (LOOPBACK,),
        *,
        common_name: str = "webhook",
        begin: datetime | None = None,
        lifetime: timedelta = YEAR,
        by_rsa: bool = False,
    ) -> Issued:
        """A serving certificate for IP addresses and DNS names, or for its common name only."""
        key = rsa.generate_private_key(65537, 2048) if by_rsa else ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        names = [
            x509.IPAddress(ip_address(each)) if each[0].isdigit() or ":" in each else x509.DNSName(each)
            for each in hosts
        ]
        unsigned = _builder(name, self._name, key.public_key(), begin, lifetime)
        if names:
            unsigned = unsigned.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = unsigned.sign(self._key, hashes.SHA256())
        return Issued(
            signed.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
    begin: datetime | None,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    begin = begin or datetime.now(UTC) - timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + lifetime)
    )
