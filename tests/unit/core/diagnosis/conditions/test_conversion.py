"""ConversionReady: the meaning of each answer. The API server's messages come from
tests/cluster/reports/test_reports_conversion.py.
"""

from datetime import timedelta
from typing import Any

import pytest

from crdkeeper.core.diagnosis.certificates import Certificate, Handshake
from crdkeeper.core.diagnosis.conditions import conversion
from crdkeeper.core.diagnosis.conditions.conversion import ConversionFacts, judge
from crdkeeper.core.diagnosis.conversionfacts import (
    ConversionProbe,
    Read,
    VersionRead,
    WebhookFacts,
    conversion_webhook,
)
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.builders import NOW, definition
from tests.unit.builders import crd as crd_object

URL = WebhookFacts("https://webhook.example.com/convert", "", "", 443, b"pem")
SERVICE = WebhookFacts("", "ns", "converter", 443, b"")
STORED = VersionRead("v2", Read.STORED)
CONVERTED = VersionRead("v1", Read.CONVERTED)
BLAME = (
    "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /x, ResourceVersion: 0, "
    "AdditionalErrorMsg: object not decodable revision=522: "
    "conversion webhook for example.com/v2, Kind=Widget "
)
POST = 'failed: Post "https://webhook.example.com/convert?timeout=30s": '
LATE = Failure(ProbeTrouble.SILENT, 0, "no response within 10 seconds", late=True)


def failed(message: str = "", trouble: ProbeTrouble = ProbeTrouble.FAILED, code: int = 500) -> VersionRead:
    return VersionRead("v1", Read.FAILED, Failure(trouble, code, message))


def verdict(
    *reads: VersionRead,
    webhook: WebhookFacts = URL,
    served: tuple[str, ...] = ("v1", "v2"),
    stored: tuple[str, ...] = ("v2",),
    **probe: Any,
) -> Verdict:
    found = ConversionProbe(reads=reads, example="ns/w1" if reads else "", **probe)
    return judge(ConversionFacts(definition(served=served, stored=stored), webhook, found, NOW))


def certificate(days: float, subject: str = "CN=webhook") -> Certificate:
    return Certificate(subject, "CN=ca", NOW - timedelta(days=300), NOW + timedelta(days=days))


def test_no_webhook() -> None:
    found = judge(ConversionFacts(definition(), None, None, NOW))
    assert found.reason is conversion.STRATEGY_NONE


def test_before_the_first_probe() -> None:
    assert judge(ConversionFacts(definition(), URL, None, NOW)).reason is conversion.PENDING


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (f"{POST}dial tcp 127.0.0.1:1: connect: connection refused", "WebhookUnreachable"),
        (f"{POST}dial tcp: lookup nope.invalid on 10.0.0.1:53: no such host", "WebhookUnreachable"),
        (f'{POST}service "converter" not found', "WebhookUnreachable"),
        (f'{POST}no endpoints available for service "converter"', "WebhookUnreachable"),
        (f'{POST}no service port 444 found for service "converter"', "WebhookUnreachable"),
        (f"{POST}EOF", "WebhookUnreachable"),
        (f"{POST}dial tcp 10.0.0.1:443: i/o timeout", "WebhookUnreachable"),
        (f"{POST}context deadline exceeded", "WebhookTimeout"),
        (
            f"{POST}net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
            "WebhookTimeout",
        ),
        (
            f"{POST}tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "WebhookCertificateRefused",
        ),
        (f"{POST}http: server gave HTTP response to HTTPS client", "WebhookCertificateRefused"),
        (
            f"{POST}tls: failed to verify certificate: x509: certificate has expired or is not yet valid: "
            "current time 2026-11-21T12:38:16Z is after 2026-11-21T12:08:16Z",
            "CertificateExpired",
        ),
        ("failed: the server could not find the requested resource", "WebhookAnswerInvalid"),
        (
            'failed: an error on the server ("unknown") has prevented the request from succeeding',
            "WebhookAnswerInvalid",
        ),
        ("failed: unknown", "WebhookAnswerInvalid"),
        (
            "failed: 0-length response with status code: 200 and content type: application/json",
            "WebhookAnswerInvalid",
        ),
        ("returned 0 objects, expected 1", "WebhookAnswerInvalid"),
        ("returned invalid object: must have the same name: a != b", "WebhookAnswerInvalid"),
        ('failed: expected response.uid="1", got "2"', "WebhookAnswerInvalid"),
        ("failed: spec.certificate has no x509: part: connection refused by policy", "ConversionFailed"),
        ("failed: cannot convert a Widget with 3 gears", "ConversionFailed"),
    ],
)
def test_the_servers_words(words: str, reason: str) -> None:
    found = verdict(STORED, failed(BLAME + words))
    assert (found.reason.name, found.reason.status, found.reason.healthy) == (reason, "False", False)
    shown = (
        f"ns/w1 cannot be read at v1, through the {URL}: conversion webhook for example.com/v2, Kind=Widget "
    )
    assert found.message == f"{shown}{words}. {found.reason.remedy}"


def test_a_stored_version_that_is_gone() -> None:
    found = verdict(failed("request to convert CR from an invalid group/version: example.com/v0"))
    assert found.reason is conversion.REFUSED


def test_a_list_that_fails_by_the_webhook() -> None:
    refused = Failure(ProbeTrouble.FAILED, 500, BLAME + POST + "connection refused")
    found = verdict(failure=refused)
    assert found.reason is conversion.UNREACHABLE
    assert found.message.startswith("Objects cannot be listed, through the webhook")


def test_more_versions_than_one_fail() -> None:
    second = VersionRead("v3", Read.FAILED, LATE)
    found = verdict(failed(BLAME + "failed: no"), second)
    assert "It cannot be read at v3 either." in found.message


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (LATE, "WebhookTimeout"),
        (Failure(ProbeTrouble.SILENT, 0, "GET /apis/x: Connection reset by peer"), "APIServerUnavailable"),
        (Failure(ProbeTrouble.BUSY, 429, "storage is (re)initializing"), "APIServerUnavailable"),
        (Failure(ProbeTrouble.FAILED, 500, "etcdserver: leader changed"), "APIServerUnavailable"),
        (Failure(ProbeTrouble.FORBIDDEN, 403, "cannot get resource"), "NotPermitted"),
    ],
)
def test_a_read_that_fails_otherwise(failure: Failure, reason: str) -> None:
    assert verdict(STORED, VersionRead("v1", Read.FAILED, failure)).reason.name == reason


@pytest.mark.parametrize("trouble", [each for each in ProbeTrouble if each is not ProbeTrouble.FORBIDDEN])
def test_a_list_without_an_answer_says_nothing(trouble: ProbeTrouble) -> None:
    found = verdict(failure=Failure(trouble, 500, "it is not today"))
    assert (found.reason, found.reason.status) == (conversion.NOT_ASKED, "Unknown")
    assert "widgets.example.com could not be read: it is not today." in found.message


def test_a_missing_right_is_named_with_what_grants_it() -> None:
    words = 'User "u" cannot list resource "widgets" in API group "example.com" at the cluster scope'
    found = verdict(failure=Failure(ProbeTrouble.FORBIDDEN, 403, words))
    assert found.reason is conversion.NOT_PERMITTED
    assert words in found.message
    assert 'rbac.crdkeeper.dev/aggregate-to-reader: "true"' in found.message
    assert 'apiGroups: ["example.com"], resources: ["widgets", "widgets/scale"]' in found.message


@pytest.mark.parametrize(
    ("reads", "stored", "reason"),
    [
        ((), ("v2",), "NotProvenByAnObject"),
        ((STORED, CONVERTED), ("v2",), "Converted"),
        # Stored at v1 or v2, so one of the reads was a conversion.
        ((VersionRead("v1", Read.UNCERTAIN), VersionRead("v2", Read.UNCERTAIN)), ("v1", "v2"), "Converted"),
        ((VersionRead("v1", Read.UNCERTAIN),), ("v1", "v2"), "NotProvenByAnObject"),
    ],
)
def test_what_is_proven(reads: tuple[VersionRead, ...], stored: tuple[str, ...], reason: str) -> None:
    assert verdict(*reads, stored=stored).reason.name == reason


def test_one_version_needs_no_webhook() -> None:
    found = verdict(STORED, served=("v2",))
    assert found.reason is conversion.NOTHING_TO_CONVERT


def test_nothing_waits_for_the_certificate_of_a_webhook_that_is_not_called() -> None:
    found = verdict(STORED, served=("v2",), bundle=(certificate(-1),))
    assert found.reason is conversion.NOTHING_TO_CONVERT
    assert found.message.endswith("is not called. The caBundle (CN=webhook) expired on 2026-01-01T03:04:05Z.")
    refused = Handshake("webhook.example.com:443", certificate(300), "self-signed", untrusted=True)
    assert verdict(STORED, served=("v2",), serving=refused).reason is conversion.NOTHING_TO_CONVERT
    # A new CRD with such a bundle is not established.
    found = verdict(STORED, served=("v2",), bundle_error="no PEM")
    assert found.reason is conversion.CA_BUNDLE_INVALID


def test_a_service_without_a_bundle() -> None:
    assert verdict(webhook=SERVICE).reason is conversion.CA_BUNDLE_MISSING
    # What works, works.
    assert verdict(CONVERTED, webhook=SERVICE).reason is conversion.CONVERTED
    assert verdict(webhook=WebhookFacts("https://x", "", "", 443, b"")).reason is conversion.NOT_PROVEN


def test_a_bundle_that_cannot_be_read() -> None:
    found = verdict(bundle_error="no PEM")
    assert (found.reason, found.reason.healthy) == (conversion.CA_BUNDLE_INVALID, False)
    # Our parser does not decide.
    assert verdict(CONVERTED, bundle_error="no PEM").reason is conversion.CONVERTED


@pytest.mark.parametrize(
    ("days", "reason", "status"),
    [
        (-1.0, "CertificateExpired", "False"),
        (3.0, "CertificateExpiring", "False"),
        (20.0, "CertificateExpiresSoon", "True"),
        (60.0, "Converted", "True"),
    ],
)
def test_certificates_that_end(days: float, reason: str, status: str) -> None:
    ends = certificate(days)
    for found in (
        verdict(CONVERTED, bundle=(ends,)),
        verdict(CONVERTED, serving=Handshake("webhook.example.com:443", ends)),
    ):
        assert (found.reason.name, found.reason.status) == (reason, status)


def test_the_end_of_a_certificate_is_told_beside_other_reasons() -> None:
    found = verdict(bundle=(certificate(20),))
    assert found.reason is conversion.NOT_PROVEN
    assert "The caBundle (CN=webhook) expires on 2026-01-22T03:04:05Z, in 20 days." in found.message


def test_the_rest_of_a_rotation_is_only_mentioned() -> None:
    found = verdict(CONVERTED, bundle=(certificate(-1, "CN=old"), certificate(300, "CN=new")))
    assert found.reason is conversion.CONVERTED
    assert found.message.endswith("The caBundle also holds what has expired: CN=old.")


def test_a_certificate_that_the_bundle_refuses() -> None:
    serving = Handshake(
        "webhook.example.com:443", certificate(300), "self-signed certificate", untrusted=True
    )
    found = verdict(serving=serving)
    assert found.reason is conversion.CERTIFICATE_REFUSED
    assert "webhook.example.com:443 serves: self-signed certificate." in found.message
    # Without a bundle, the API server's host decides, not ours.
    assert (
        verdict(webhook=WebhookFacts("https://x", "", "", 443, b""), serving=serving).reason
        is conversion.NOT_PROVEN
    )


def test_out_of_our_reach_is_not_out_of_reach() -> None:
    found = verdict(CONVERTED, serving=Handshake("converter.ns.svc:443", None, "Name or service not known"))
    assert found.reason is conversion.CONVERTED
    assert "From here converter.ns.svc:443 is not to be reached (Name or service not known)" in found.message


@pytest.mark.parametrize(
    ("stanza", "expected"),
    [
        ({}, None),
        ({"strategy": "None"}, None),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x/y", "caBundle": "Cg=="}}},
            WebhookFacts("https://x/y", "", "", 443, b""),
        ),
        (
            {
                "strategy": "Webhook",
                "webhook": {"clientConfig": {"service": {"namespace": "n", "name": "s"}, "caBundle": "cGVt"}},
            },
            WebhookFacts("", "n", "s", 443, b"pem"),
        ),
        (
            {
                "strategy": "Webhook",
                "webhook": {"clientConfig": {"service": {"namespace": "n", "name": "s", "port": 8443}}},
            },
            WebhookFacts("", "n", "s", 8443, b""),
        ),
    ],
)
def test_the_webhook_of_a_definition(stanza: dict[str, Any], expected: WebhookFacts | None) -> None:
    crd = crd_object()
    crd["spec"]["conversion"] = stanza
    assert conversion_webhook(crd) == expected
