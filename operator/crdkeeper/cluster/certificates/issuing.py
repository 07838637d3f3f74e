"""Creates and parses certificates. Keys are random, so this cannot be in the core.

ECDSA on P-256, which Go and OpenSSL verify fastest; extensions as RFC 5280 requires.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----")
_MOST_BLOCKS = 64
_LONGEST_CHAIN = 8
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)
"""What cryptography raises for what it cannot parse."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate alone."""
        return to_pem(self.certificate)

    @property
    def key_pem(self) -> bytes:
        """The key, as PKCS #8 without a password."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def make_authority(not_before: datetime, not_after: datetime) -> KeyPair:
    """Create a CA that may sign for servers, but for no other CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # A unique name: clients find the issuer by its name while they trust two CAs.
    name = _named(f"crdkeeper-webhook-ca-{serial % 2**32:08x}")
    builder = (
        _builder(name, name, key, serial, not_before, not_after)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return KeyPair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: KeyPair, names: Sequence[str], not_before: datetime, not_after: datetime) -> KeyPair:
    """Issue a server certificate for these DNS names and IP addresses, which expires no later than its CA.

    Raises ValueError for what is not a DNS name in ASCII.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    end = min(not_after, issuer.not_valid_after_utc)
    begin = max(not_before, issuer.not_valid_before_utc)
    serial = x509.random_serial_number()
    builder = (
        _builder(_named("crdkeeper-webhook"), issuer.subject, key, serial, begin, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([general_name(each) for each in names]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
        )
    )
    return KeyPair(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    serial: int,
    not_before: datetime,
    not_after: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def general_name(name: str) -> x509.GeneralName:
    """An IP address or a DNS name in the form that certificates use. Raises ValueError."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def to_pem(certificate: x509.Certificate) -> bytes:
    """Encode certificates in the form that we write."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: x509.Certificate) -> str:
    """Identifies a certificate: its SHA-256 in hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """All certificates that can be parsed, without duplicates; the others are skipped."""
    found: dict[bytes, x509.Certificate] = {}
    for kind, block in _blocks(pem):
        if kind != b"CERTIFICATE":
            continue
        try:
            certificate = x509.load_pem_x509_certificate(block)
            # Their parts are decoded on access.
            _ = certificate.public_key(), certificate.extensions, certificate.subject, certificate.issuer
        except _UNREADABLE:
            continue
        found.setdefault(certificate.fingerprint(hashes.SHA256()), certificate)
    return list(found.values())


def pairs_in(certificates: bytes, keys: bytes) -> list[KeyPair]:
    """The certificates whose key is present; in their order."""
    by_public: dict[bytes, ec.EllipticCurvePrivateKey] = {}
    for kind, block in _blocks(keys):
        if not kind.endswith(b"PRIVATE KEY"):
            continue
        try:
            key = serialization.load_pem_private_key(block, None)
        except _UNREADABLE:
            continue
        if isinstance(key, ec.EllipticCurvePrivateKey):
            by_public[_public(key.public_key())] = key
    made = [(each, by_public.get(_public(each.public_key()))) for each in certificates_in(certificates)]
    return [KeyPair(each, key) for each, key in made if key is not None]


def key_fits(certificate: x509.Certificate, key: bytes) -> bool:
    """Whether that PEM is the certificate's key, of any type."""
    try:
        loaded = serialization.load_pem_private_key(key, None)
    except _UNREADABLE:
        return False
    return _public(loaded.public_key()) == _public(certificate.public_key())


def anchor_of(
    certificate: x509.Certificate, chain: Sequence[x509.Certificate], trusted: Sequence[x509.Certificate]
) -> x509.Certificate | None:
    """The trusted certificate in which the chain, with the other served certificates, ends; None if none."""
    current = certificate
    for _ in range(_LONGEST_CHAIN):
        for each in trusted:
            # As Go does it: any certificate in the pool is an anchor, even the served one itself.
            if each == current or _issued(current, each):
                return each
        above = next((each for each in chain if each != current and _issued(current, each)), None)
        if above is None:
            return None
        current = above
    return None


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names and IP addresses that it is valid for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = names.get_values_for_type(x509.IPAddress)
    return frozenset(names.get_values_for_type(x509.DNSName)) | {str(each) for each in addresses}


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (*_UNREADABLE, InvalidSignature):
        return False
    return True


def _public(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _blocks(pem: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and text of each block, one by one: a parser of the whole text stops at the first bad one."""
    place = 0
    for _ in range(_MOST_BLOCKS):
        begin = _BEGIN.search(pem, place)
        if begin is None:
            return
        end = b"-----END " + begin[1] + b"-----"
        stop = pem.find(end, begin.end())
        if stop < 0 or _BEGIN.search(pem, begin.end(), stop):
            place = begin.end()  # truncated
            continue
        place = stop + len(end)
        yield begin[1], pem[begin.start() : place]
