"""Makes certificates and reads them back: keys are random, so that this is no part of the core.

ECDSA on P-256, which Go and OpenSSL verify fastest; extensions as RFC 5280 wants them.
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
"""What cryptography raises for what it cannot make sense of."""


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
    """A CA that signs for servers and for no other CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # A name of its own for each: clients find the issuer by its name while two are trusted.
    name = _named(f"crdkeeper-webhook-ca-{serial % 2**32:08x}")
    builder = (
        _builder(name, name, key, serial, not_before, not_after)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return KeyPair(builder.sign(key, hashes.SHA256()), key)


def issue(authority: KeyPair, names: Sequence[str], not_before: datetime, not_after: datetime) -> KeyPair:
    """A server's certificate for these DNS names and IP addresses, good for no longer than its CA.

    Raises ValueError for what is no DNS name in ASCII.
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
    """An IP address or a DNS name as certificates have it. Raises ValueError."""
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def to_pem(certificate: x509.Certificate) -> bytes:
    """The form in which we write certificates."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def fingerprint(certificate: x509.Certificate) -> str:
    """What a certificate is known by: its SHA-256 in hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """All that can be read; what cannot is passed over, and what comes twice is there once."""
    found: dict[bytes, x509.Certificate] = {}
    for kind, block in _blocks(pem):
        if kind != b"CERTIFICATE":
            continue
        try:
            certificate = x509.load_pem_x509_certificate(block)
            # Parts are decoded when they are asked for.
            _ = certificate.public_key(), certificate.extensions, certificate.subject, certificate.issuer
        except _UNREADABLE:
            continue
        found.setdefault(certificate.fingerprint(hashes.SHA256()), certificate)
    return list(found.values())


def pairs_in(certificates: bytes, keys: bytes) -> list[KeyPair]:
    """The certificates of which there is a key; in their order."""
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
    """Whether that PEM is the certificate's key, of whatever type."""
    try:
        loaded = serialization.load_pem_private_key(key, None)
    except _UNREADABLE:
        return False
    return _public(loaded.public_key()) == _public(certificate.public_key())


def anchor_of(
    certificate: x509.Certificate, chain: Sequence[x509.Certificate], trusted: Sequence[x509.Certificate]
) -> x509.Certificate | None:
    """The trusted one that a chain ends in, which goes over the certificates served beside; None if none."""
    current = certificate
    for _ in range(_LONGEST_CHAIN):
        for each in trusted:
            # As Go does it: any certificate in the pool is an anchor, be it that very one.
            if each == current or _issued(current, each):
                return each
        above = next((each for each in chain if each != current and _issued(current, each)), None)
        if above is None:
            return None
        current = above
    return None


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names and IP addresses that it is for."""
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
    """Kind and text of each block, one by one: a parser of the whole gives up at the first bad one."""
    place = 0
    for _ in range(_MOST_BLOCKS):
        begin = _BEGIN.search(pem, place)
        if begin is None:
            return
        end = b"-----END " + begin[1] + b"-----"
        stop = pem.find(end, begin.end())
        if stop < 0 or _BEGIN.search(pem, begin.end(), stop):
            place = begin.end()  # cut off
            continue
        place = stop + len(end)
        yield begin[1], pem[begin.start() : place]
