"""ConversionReady on a real API server: its own messages for each way in which a webhook can fail."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.probes.certificates import parse_bundle, served_certificate
from crdkeeper.cluster.probes.conversions import probe_conversion
from crdkeeper.core.diagnosis.conditions.conversion import ConversionFacts, judge
from crdkeeper.core.diagnosis.conversionfacts import WebhookFacts, conversion_webhook
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.certificates import Authority
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admission import closed_port, silent_port
from tests.cluster.reports.live.scene import WITHOUT, change, let_read, through
from tests.cluster.reports.live.webhook import Behaviour, Review, answers, converts, serving_webhook
from tests.cluster.reports.reports import condition_of, report_with

DAY = timedelta(days=1)
DRAWN_OUT = 1.0
"""Seconds after which a probe is given up here: the API server would wait for 30."""
PATIENT = 60.0
"""The same where one handshake must succeed, on a machine that may stop for a while."""


async def verdict(admin: Admin, kind: CustomKind) -> Verdict:
    """Our current verdict on the CRD."""
    crd = await admin.definition(kind)
    facts, webhook = definition_facts(crd), conversion_webhook(crd)
    probe = await probe_conversion(admin.client, facts, webhook) if webhook is not None else None
    return judge(ConversionFacts(facts, webhook, probe, admin.client.now()))


async def verdict_of(admin: Admin, kind: CustomKind, reason: str) -> Verdict:
    """Our verdict, as soon as that is the reason.

    The API server applies a change of a CRD with a delay, and what is slow for once is not what is tested.
    """
    said: list[Verdict] = []

    async def look() -> Verdict | None:
        said[:] = [await verdict(admin, kind)]
        return said[0] if said[0].reason.name == reason else None

    return await eventually(look, otherwise=lambda: f"not {reason}, but {said}")


async def becomes(admin: Admin, kind: CustomKind, reason: str) -> str:
    """The message, as soon as that is the reason."""
    return (await verdict_of(admin, kind, reason)).message


@pytest.fixture
async def kind(admin: Admin, group: str) -> CustomKind:
    """Served at v1 and v2, with one object that is stored at v1."""
    made = CustomKind(group)
    await admin.apply_definition(made)
    await admin.create_objects(made, 1)
    return made


@pytest.fixture
async def clean(admin: Admin, kind: CustomKind) -> AsyncIterator[None]:
    """Removes the webhook from the CRD at the end: with it, nothing could be deleted."""
    yield
    await change(admin, kind, WITHOUT)


def objects_of(review: Review, **fields: Any) -> list[dict[str, Any]]:
    """The converted objects, with changes."""
    wanted = review["request"]["desiredAPIVersion"]
    return [{**each, "apiVersion": wanted, **fields} for each in review["request"]["objects"]]


REVIEW = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
MISBEHAVIOUR: dict[str, tuple[Behaviour, str]] = {
    "500": (lambda _: (500, b"{}"), "WebhookAnswerInvalid"),
    "404": (lambda _: (404, b"no such page"), "WebhookAnswerInvalid"),
    "403": (lambda _: (403, b"no"), "WebhookAnswerInvalid"),
    "503": (lambda _: (503, b"no"), "WebhookAnswerInvalid"),
    "empty": (lambda _: (200, b""), "WebhookAnswerInvalid"),
    "text": (lambda _: (200, b"hello"), "WebhookAnswerInvalid"),
    "a list": (lambda _: (200, b"[]"), "WebhookAnswerInvalid"),
    "no kind": (lambda _: (200, b"{}"), "WebhookAnswerInvalid"),
    "no response": (lambda _: (200, json.dumps(REVIEW).encode()), "WebhookAnswerInvalid"),
    "another uid": (lambda review: answers(review, objects_of(review), uid="x"), "WebhookAnswerInvalid"),
    "fewer objects": (lambda review: answers(review, []), "WebhookAnswerInvalid"),
    "another kind": (lambda review: answers(review, objects_of(review, kind="X")), "WebhookAnswerInvalid"),
    "another name": (
        lambda review: answers(review, objects_of(review, metadata={"name": "x"})),
        "WebhookAnswerInvalid",
    ),
    "not converted": (lambda review: answers(review, review["request"]["objects"]), "WebhookAnswerInvalid"),
    "a failure without a word": (
        lambda review: answers(review, [], result={"status": "Failed"}),
        "WebhookAnswerInvalid",
    ),
    "a refusal": (
        lambda review: answers(review, [], result={"status": "Failed", "message": "x509: no, says tls: me"}),
        "ConversionFailed",
    ),
}


@pytest.mark.usefixtures("clean")
async def test_webhooks_that_answer_badly(admin: Admin, kind: CustomKind, tmp_path: Path) -> None:
    with serving_webhook(tmp_path) as (webhook, bundle):
        await change(admin, kind, through(webhook.client_config(bundle)))
        assert "was read at v1, v2 through the webhook" in await becomes(admin, kind, "Converted")
        for what, (behaviour, reason) in MISBEHAVIOUR.items():
            webhook.behaviour = behaviour
            found = await verdict_of(admin, kind, reason)
            assert found.reason.status == "False", (what, found.message)
            assert f"conversion webhook for {kind.group}/v1, Kind=Database" in found.message, what
        webhook.behaviour = converts
        await becomes(admin, kind, "Converted")


@pytest.mark.usefixtures("clean")
async def test_a_list_does_not_show_what_a_read_does(admin: Admin, kind: CustomKind, tmp_path: Path) -> None:
    """Why we GET: the API server lists from its cache, which was filled while the webhook worked."""
    with serving_webhook(tmp_path) as (webhook, bundle):
        await change(admin, kind, through(webhook.client_config(bundle)))
        await becomes(admin, kind, "Converted")

        async def cached() -> bool:
            await admin.get(f"{kind.path(version='v2')}?limit=1")
            webhook.behaviour = lambda _: (500, b"{}")
            answer = await admin.client.send("GET", f"{kind.path(version='v2')}?limit=1")
            broken = await admin.client.send("GET", kind.path("db-00000", version="v2"))
            webhook.behaviour = converts
            assert broken.code == 500
            return answer.code == 200

        await eventually(cached, otherwise=lambda: "lists are not answered from a cache")
        webhook.behaviour = lambda _: (500, b"{}")
        await becomes(admin, kind, "WebhookAnswerInvalid")
        webhook.behaviour = converts


@pytest.fixture(params=["closed", "silent"])
def unfit_port(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """A port without a webhook."""
    port = {"closed": closed_port, "silent": silent_port}[request.param]
    with port() as number:
        yield request.param, number


@pytest.mark.usefixtures("clean")
async def test_nobody_answers(
    admin: Admin, kind: CustomKind, unfit_port: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crdkeeper.cluster.probes.looking.SECONDS", DRAWN_OUT)
    monkeypatch.setattr("crdkeeper.cluster.probes.certificates.SECONDS", DRAWN_OUT)
    how, port = unfit_port
    await change(admin, kind, through({"url": f"https://127.0.0.1:{port}/"}))
    if how == "closed":
        assert "connection refused" in await becomes(admin, kind, "WebhookUnreachable")
    else:
        assert "no response within" in await becomes(admin, kind, "WebhookTimeout")


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("service", "words"),
    [
        ({"name": "missing", "namespace": "default"}, 'service "missing" not found'),
        ({"name": "kubernetes", "namespace": "default", "port": 444}, "no service port 444 found"),
    ],
    ids=["no service", "no port"],
)
async def test_services_that_lead_nowhere(
    admin: Admin, kind: CustomKind, service: dict[str, Any], words: str
) -> None:
    await change(admin, kind, through({"service": service}))
    message = await becomes(admin, kind, "WebhookUnreachable")
    assert words in message
    assert f"webhook Service default/{service['name']}" in message


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("make", "reason", "words"),
    [
        (lambda ca: (ca.issue(["webhook.example.com"]), ca.pem), "WebhookCertificateRefused", "IP SANs"),
        (lambda ca: (ca.issue(), Authority("other").pem), "WebhookCertificateRefused", "unknown authority"),
        (lambda ca: (ca.issue(), None), "WebhookCertificateRefused", "unknown authority"),
        (
            lambda ca: (ca.issue(lifetime=timedelta(minutes=30)), ca.pem),
            "CertificateExpired",
            "certificate has expired",
        ),
        (
            lambda ca: (ca.issue(begin=datetime.now(UTC) - 85 * DAY, lifetime=90 * DAY), ca.pem),
            "CertificateExpiring",
            "The certificate of the webhook (CN=webhook) expires on",
        ),
        (
            lambda ca: (ca.issue(begin=datetime.now(UTC) - 70 * DAY, lifetime=90 * DAY), ca.pem),
            "CertificateExpiresSoon",
            "The certificate of the webhook (CN=webhook) expires on",
        ),
        # A leaf that is its own anchor, and one bundle with an old and a new CA.
        (lambda ca: ((own := ca.issue()), own.certificate), "Converted", "was read"),
        (lambda ca: (ca.issue(), Authority("old").pem + ca.pem), "Converted", "was read"),
    ],
    ids=["host", "authority", "no bundle", "expired", "5 days", "20 days", "leaf", "rotation"],
)
async def test_certificates(
    admin: Admin, kind: CustomKind, tmp_path: Path, make: Callable[[Authority], Any], reason: str, words: str
) -> None:
    issued, bundle = make(Authority())
    with serving_webhook(tmp_path, issued) as (webhook, _):
        await change(admin, kind, through(webhook.client_config(bundle)))
        assert words in await becomes(admin, kind, reason)


async def test_the_handshake_agrees_with_the_api_server_and_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crdkeeper.cluster.probes.certificates.SECONDS", PATIENT)
    authority = Authority()
    with serving_webhook(tmp_path, authority.issue()) as (webhook, _):
        url = f"https://127.0.0.1:{webhook.port}/convert"
        good = await served_certificate(WebhookFacts(url, "", "", 443, authority.pem))
        bad = await served_certificate(WebhookFacts(url, "", "", 443, Authority("other").pem))
        assert webhook.methods == []
    assert (good.error, good.untrusted) == ("", False)
    assert (bad.error, bad.untrusted) == ("unable to get local issuer certificate", True)
    for each in (good, bad):
        assert each.certificate is not None
        assert each.certificate.subject == "CN=webhook"
    (certificate,), error = parse_bundle(authority.pem)
    assert (certificate.subject, error) == ("CN=test-ca", "")


async def test_an_empty_kind_proves_nothing(admin: Admin, group: str, tmp_path: Path) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    with serving_webhook(tmp_path) as (webhook, bundle):
        await change(admin, kind, through(webhook.client_config(bundle)))
        await becomes(admin, kind, "NotProvenByAnObject")
        await admin.create_objects(kind, 1)
        await becomes(admin, kind, "Converted")
        await change(admin, kind, {"versions": [(await admin.definition(kind))["spec"]["versions"][0]]})
        await becomes(admin, kind, "NothingToConvert")
        await change(admin, kind, WITHOUT)
    await becomes(admin, kind, "StrategyNone")


@pytest.mark.usefixtures("clean")
async def test_the_report(
    admin: Admin, operator: Operator, kind: CustomKind, group: str, tmp_path: Path
) -> None:
    with serving_webhook(tmp_path) as (webhook, bundle):
        good = through(webhook.client_config(bundle))
        await change(admin, kind, good)
        report = await report_with(admin, kind.name, ConversionReady="Unknown/NotPermitted")
        message = condition_of(report, "ConversionReady").message
        assert f'cannot list resource "databases" in API group "{group}"' in message
        assert "rbac.crdkeeper.dev/aggregate-to-reader" in message

        await let_read(admin, group)
        await change(admin, kind, {"versions": touched(await admin.definition(kind))})
        await report_with(admin, kind.name, ConversionReady="True/Converted")

        with closed_port() as port:
            await change(admin, kind, through({"url": f"https://127.0.0.1:{port}/"}))
            await report_with(
                admin,
                kind.name,
                ConversionReady="False/WebhookUnreachable",
                Ready="False/WebhookUnreachable",
            )
        await change(admin, kind, good)
        await report_with(admin, kind.name, ConversionReady="True/Converted", Ready="True/Healthy")
    await change(admin, kind, WITHOUT)
    await report_with(admin, kind.name, ConversionReady="True/StrategyNone")


def touched(crd: dict[str, Any]) -> list[dict[str, Any]]:
    """spec.versions with another description: a change that triggers a new check of everything."""
    versions: list[dict[str, Any]] = crd["spec"]["versions"]
    for each in versions:
        each["schema"]["openAPIV3Schema"]["description"] = "touched"
    return versions
