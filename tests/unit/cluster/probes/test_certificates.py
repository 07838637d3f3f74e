"""Bundles and handshakes; tests/cluster has those that the API server agrees with."""

from datetime import timedelta

import pytest

from crdkeeper.cluster.probes import certificates
from crdkeeper.cluster.probes.certificates import parse_bundle, served_certificate
from crdkeeper.core.diagnosis.conversionfacts import WebhookFacts
from tests.certificates import Authority
from tests.cluster.harness.admission import closed_port, silent_port

CA = Authority("ca", lifetime=timedelta(days=10))


def test_a_bundle() -> None:
    found, error = parse_bundle(b"# two of them\n" + CA.pem + Authority("other").pem)
    assert ([each.subject for each in found], error) == (["CN=ca", "CN=other"], "")
    assert found[0].issuer == "CN=ca"
    assert found[0].lifetime == timedelta(days=10)


@pytest.mark.parametrize(
    "pem",
    [b"junk", CA.pem[:200], CA.pem.replace(b"M", b"N", 3), CA.pem.replace(b"CERTIFICATE", b"PUBLIC KEY")],
    ids=["no PEM", "cut off", "garbled", "no certificate"],
)
def test_no_bundle(pem: bytes) -> None:
    found, error = parse_bundle(pem)
    assert found == ()
    assert error


def test_nothing_is_no_bad_bundle() -> None:
    assert parse_bundle(b"") == ((), "")


@pytest.mark.parametrize(
    ("webhook", "address"),
    [
        (WebhookFacts("https://127.0.0.1:99999/", "", "", 443, b""), "https://127.0.0.1:99999/"),
        (WebhookFacts("https://[::1/", "", "", 443, b""), "https://[::1/"),
        (WebhookFacts("https:///path", "", "", 443, b""), ":443"),
        (WebhookFacts("", "ns", "missing", 8443, b""), "missing.ns.svc:8443"),
        (WebhookFacts("https://127.0.0.1:1/", "", "", 443, b"junk"), "127.0.0.1:1"),
    ],
)
async def test_addresses_where_nobody_can_be(webhook: WebhookFacts, address: str) -> None:
    found = await served_certificate(webhook)
    assert (found.address, found.certificate, found.untrusted) == (address, None, False)
    assert found.error


async def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "SECONDS", 0.2)
    with closed_port() as port:
        found = await served_certificate(WebhookFacts(f"https://127.0.0.1:{port}/", "", "", 443, CA.pem))
        assert found.error == "connection refused"
    with silent_port() as port:
        found = await served_certificate(WebhookFacts(f"https://127.0.0.1:{port}/", "", "", 443, CA.pem))
        assert found.error == "no TLS handshake within 0.2 seconds"
