"""Certificates that we create, and others that we parse; tests/faults compares with Go."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from crdkeeper.cluster.certificates.issuing import (
    KeyPair,
    anchor_of,
    certificates_in,
    fingerprint,
    issue,
    key_fits,
    make_authority,
    names_of,
    pairs_in,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
NAMES = ("webhook.ns.svc", "::1", "10.0.0.1")


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_authority(BEGIN, BEGIN + YEAR)


@pytest.fixture(scope="module")
def serving(authority: KeyPair) -> KeyPair:
    return issue(authority, NAMES, BEGIN, BEGIN + YEAR / 4)


def test_an_authority_signs_for_servers_only(authority: KeyPair) -> None:
    extensions = authority.certificate.extensions
    basic = extensions.get_extension_for_class(x509.BasicConstraints)
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.key_encipherment) == (True, True, False)
    assert isinstance(authority.key.curve, ec.SECP256R1)
    other = make_authority(BEGIN, BEGIN + YEAR)
    assert other.certificate.subject != authority.certificate.subject


def test_a_serving_certificate(authority: KeyPair, serving: KeyPair) -> None:
    extensions = serving.certificate.extensions
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    above = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    own = authority.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert above == own
    assert names_of(serving.certificate) == set(NAMES)
    # cryptography's own verifier follows the rules of public CAs.
    store = Store([authority.certificate])
    verifier = PolicyBuilder().store(store).time(BEGIN + timedelta(days=1))
    names: list[x509.DNSName | x509.IPAddress] = [x509.DNSName("webhook.ns.svc"), *_addresses(serving)]
    for name in names:
        assert len(verifier.build_server_verifier(name).verify(serving.certificate, [])) == 2


def _addresses(serving: KeyPair) -> list[x509.IPAddress]:
    names = serving.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [x509.IPAddress(each) for each in names.get_values_for_type(x509.IPAddress)]


def test_no_certificate_outlives_its_authority(authority: KeyPair) -> None:
    made = issue(authority, NAMES, BEGIN - YEAR, BEGIN + 9 * YEAR).certificate
    assert (made.not_valid_before_utc, made.not_valid_after_utc) == (BEGIN, BEGIN + YEAR)


@pytest.mark.parametrize("name", ["bücher.example", "a" * 10 + "\u2028"])
def test_a_name_that_cannot_be_one(authority: KeyPair, name: str) -> None:
    with pytest.raises(ValueError, match="A-label"):
        issue(authority, [name], BEGIN, BEGIN + YEAR)


def test_what_can_be_read_is_read(authority: KeyPair, serving: KeyPair) -> None:
    good, other = authority.certificate_pem, serving.certificate_pem
    cut = good.replace(b"-----END", b"-----FIN")
    text = b"# two\n" + cut + good + b"junk" + good.replace(b"M", b"N", 3) + serving.key_pem + other + good
    found = [fingerprint(each) for each in certificates_in(text)]
    assert found == [fingerprint(authority.certificate), fingerprint(serving.certificate)]
    assert certificates_in(b"") == []


def test_junk_takes_bounded_time() -> None:
    assert certificates_in(b"-----BEGIN CERTIFICATE-----\n" * 40_000) == []
    assert pairs_in(b"-----BEGIN A-----" * 50_000, b"-----BEGIN PRIVATE KEY-----" * 30_000) == []


def test_authorities_are_known_by_their_keys(authority: KeyPair) -> None:
    others = [make_authority(BEGIN, BEGIN + YEAR) for _ in range(3)]
    certificates = b"".join(each.certificate_pem for each in (others[0], authority, *others[1:]))
    keys = b"junk" + others[2].key_pem + authority.key_pem.replace(b"M", b"N", 2) + others[0].key_pem
    found = [fingerprint(each.certificate) for each in pairs_in(certificates, keys)]
    assert found == [fingerprint(others[0].certificate), fingerprint(others[2].certificate)]


def test_a_key_fits_or_not(authority: KeyPair, serving: KeyPair) -> None:
    assert key_fits(serving.certificate, serving.key_pem)
    for key in (authority.key_pem, b"", b"junk", serving.certificate_pem):
        assert not key_fits(serving.certificate, key)


def test_a_chain_ends_in_what_is_trusted(authority: KeyPair, serving: KeyPair) -> None:
    stranger = make_authority(BEGIN, BEGIN + YEAR).certificate
    leaf, root = serving.certificate, authority.certificate
    assert anchor_of(leaf, [], [stranger, root]) == root
    assert anchor_of(leaf, [], [stranger]) is None
    assert anchor_of(leaf, [], [leaf]) == leaf
    # Through a certificate that is served with it.
    above = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "top")])
    builder = x509.CertificateBuilder().issuer_name(name).serial_number(1)
    builder = builder.not_valid_before(BEGIN).not_valid_after(BEGIN + YEAR)
    top = builder.subject_name(name).public_key(above.public_key()).sign(above, hashes.SHA256())
    middle = builder.subject_name(root.subject).public_key(authority.key.public_key())
    assert anchor_of(leaf, [stranger, middle.sign(above, hashes.SHA256())], [top]) == top
    assert anchor_of(leaf, [stranger], [top]) is None
