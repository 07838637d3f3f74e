"""ConversionReady: can every object be read at every served version, and for how much longer?

The proof is a read by the API server itself, of an object that is stored at another version. An expiring
certificate is reported in advance, because once it expires, no object of the kind can be read at all.
"""

from dataclasses import dataclass
from datetime import datetime

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.certificates import next_expiry
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe, Read, WebhookFacts
from crdkeeper.core.diagnosis.conversionfailures import (
    Cause,
    blames_webhook,
    classify,
    essence,
    is_unconverted,
)
from crdkeeper.core.diagnosis.probes import PERMIT, Failure, ProbeTrouble, not_permitted
from crdkeeper.core.diagnosis.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class ConversionFacts:
    """All facts that ConversionReady depends on."""

    definition: DefinitionFacts
    webhook: WebhookFacts | None
    """None with the strategy None."""
    probe: ConversionProbe | None
    """None before the first probe."""
    now: datetime


_TYPE = "ConversionReady"
STRATEGY_NONE = Reason(
    _TYPE, "True", "StrategyNone", "There is no webhook: the versions differ only in apiVersion."
)
CONVERTED = Reason(_TYPE, "True", "Converted", "The webhook converted an object to each served version.")
NOTHING_TO_CONVERT = Reason(
    _TYPE,
    "True",
    "NothingToConvert",
    "The only served version is the only stored one, so the webhook is never called.",
)
EXPIRES_SOON = Reason(
    _TYPE,
    "True",
    "CertificateExpiresSoon",
    "Conversion works, but a certificate of the webhook expires within 30 days, or is in the last third of "
    "its lifetime where that is shorter.",
    "Nothing if the certificate is renewed automatically. Otherwise, renew it.",
)
PENDING = Reason(_TYPE, "Unknown", "Pending", "The webhook has not been checked yet.")
NOT_PROVEN = Reason(
    _TYPE,
    "Unknown",
    "NotProvenByAnObject",
    "There is no object to try the webhook with.",
    "Create an object, so that crdkeeper can try the webhook.",
)
NOT_PERMITTED = Reason(
    _TYPE,
    "Unknown",
    "NotPermitted",
    "crdkeeper is not allowed to read the objects, so it cannot try the webhook.",
    PERMIT,
)
NOT_ASKED = Reason(
    _TYPE,
    "Unknown",
    "APIServerUnavailable",
    "The API server did not answer, was too busy, or does not serve the kind; this says nothing of the "
    "webhook.",
    "Nothing: crdkeeper tries again.",
)
UNREACHABLE = Reason(
    _TYPE,
    "False",
    "WebhookUnreachable",
    "The API server cannot connect to the webhook.",
    "Check that the webhook's pods are running and ready, that the Service in clientConfig exists and has "
    "the port, and that no network policy blocks the API server.",
    healthy=False,
)
CERTIFICATE_REFUSED = Reason(
    _TYPE,
    "False",
    "WebhookCertificateRefused",
    "The webhook's certificate is not accepted: an unknown authority signed it, or it names another host.",
    "Set clientConfig.caBundle to the authority that signed the webhook's certificate, and see that the "
    "certificate names the host that clientConfig does (SERVICE.NAMESPACE.svc).",
    healthy=False,
)
TIMEOUT = Reason(
    _TYPE,
    "False",
    "WebhookTimeout",
    "The webhook does not respond in time.",
    "Check the webhook's log and load: every read and write of these objects waits for it.",
    healthy=False,
)
BAD_ANSWER = Reason(
    _TYPE,
    "False",
    "WebhookAnswerInvalid",
    "The endpoint is not a conversion webhook, or the API server cannot accept its ConversionReview.",
    "Compare clientConfig's path with the one that the webhook serves, and fix the webhook: it must return "
    "each object under the same name, uid and kind at the wanted version.",
    healthy=False,
)
REFUSED = Reason(
    _TYPE,
    "False",
    "ConversionFailed",
    "The webhook, or the API server itself, fails to convert an object.",
    "Read the message, and fix the webhook's conversion or the object.",
    healthy=False,
)
CERTIFICATE_EXPIRED = Reason(
    _TYPE,
    "False",
    "CertificateExpired",
    "A certificate of the webhook has expired, or is not valid yet. Open connections may keep working for a "
    "little longer.",
    "Renew it. If the authority changed, update clientConfig.caBundle too.",
    healthy=False,
)
CERTIFICATE_EXPIRING = Reason(
    _TYPE,
    "False",
    "CertificateExpiring",
    "A certificate of the webhook expires within 7 days, or is in the last tenth of its lifetime where that "
    "is shorter; after that no object can be read.",
    "Renew it, and find out why it was not renewed automatically.",
    healthy=False,
)
CA_BUNDLE_INVALID = Reason(
    _TYPE,
    "False",
    "CABundleInvalid",
    "clientConfig.caBundle is not a PEM bundle of certificates. A new CRD with it is not established.",
    "Set it to the PEM certificates of the authority that signed the webhook's certificate.",
    healthy=False,
)
CA_BUNDLE_MISSING = Reason(
    _TYPE,
    "False",
    "CABundleMissing",
    "The webhook is a Service, but there is no caBundle: the API server trusts the authorities of its "
    "host only, and these do not sign names of Services.",
    "Set clientConfig.caBundle, or see why whoever injects it (cert-manager's cainjector, for one) has not.",
    healthy=False,
)
_BY_CAUSE = {
    Cause.UNREACHABLE: UNREACHABLE,
    Cause.CERTIFICATE: CERTIFICATE_REFUSED,
    Cause.EXPIRED: CERTIFICATE_EXPIRED,
    Cause.TIMEOUT: TIMEOUT,
    Cause.ANSWER: BAD_ANSWER,
    Cause.REFUSED: REFUSED,
}

_Found = tuple[Reason, str]


def judge(facts: ConversionFacts) -> Verdict:
    """The condition. What certainly fails comes before what soon will, and that before what is unknown."""
    webhook, probe = facts.webhook, facts.probe
    if webhook is None:
        return Verdict(STRATEGY_NONE, "The strategy is None: the API server changes only apiVersion.")
    if probe is None:
        return Verdict(PENDING, f"The {webhook} has not been checked yet.")
    reason, said = (
        _failed_read(webhook, probe)
        or _unusable_bundle(probe)
        or _unneeded(facts.definition, webhook)
        or _bad_certificate(webhook, probe, facts.now)
        or _no_answer(facts.definition, probe)
        or _unproven(facts.definition, webhook, probe)
        or _proven(webhook, probe, facts.now)
    )
    return Verdict(reason, " ".join(filter(None, (said, *_notes(probe, facts.now, said), reason.remedy))))


def _unusable_bundle(probe: ConversionProbe) -> _Found | None:
    if not probe.bundle_error or any(each.outcome is Read.CONVERTED for each in probe.reads):
        return None
    return CA_BUNDLE_INVALID, f"The caBundle cannot be parsed: {probe.bundle_error}."


def _failed_read(webhook: WebhookFacts, probe: ConversionProbe) -> _Found | None:
    failed = [(each.version, each.failure) for each in probe.reads if each.failure is not None]
    blamed = [(version, failure) for version, failure in failed if _is_conversions(failure)]
    if blamed:
        version, failure = blamed[0]
        what = f"{probe.example} cannot be read at {version}, through the {webhook}"
        others = ", ".join(each for each, _ in blamed[1:])
        more = f" It cannot be read at {others} either." if others else ""
    elif probe.failure is not None and blames_webhook(probe.failure.message):
        failure, more = probe.failure, ""
        what = f"Objects cannot be listed, through the {webhook}"
    else:
        return None
    # The preceding list succeeded, so the webhook causes the delay.
    reason = TIMEOUT if failure.late else _BY_CAUSE[classify(failure.message)]
    return reason, f"{what}: {essence(failure.message)}.{more}"


def _is_conversions(failure: Failure) -> bool:
    """Whether an object could not be read because it could not be converted."""
    return failure.late or is_unconverted(failure.message)


def _unneeded(definition: DefinitionFacts, webhook: WebhookFacts) -> _Found | None:
    """Nothing waits for the certificate of a webhook that is not called."""
    if len(definition.served_versions) != 1 or definition.stored_versions != definition.served_versions:
        return None
    said = f"{definition.storage_version} is the only version that is served and stored"
    return NOTHING_TO_CONVERT, f"{said}: the {webhook} is not called."


def _bad_certificate(webhook: WebhookFacts, probe: ConversionProbe, now: datetime) -> _Found | None:
    expiry, serving = next_expiry(probe.bundle, probe.serving, now), probe.serving
    if expiry is not None and expiry.expired:
        return CERTIFICATE_EXPIRED, expiry.sentence
    if serving is not None and serving.untrusted and webhook.ca_bundle:
        said = f"The caBundle does not accept the certificate that {serving.address} serves: {serving.error}."
        return CERTIFICATE_REFUSED, said
    if expiry is not None and expiry.urgent:
        return CERTIFICATE_EXPIRING, expiry.sentence
    return None


def _no_answer(definition: DefinitionFacts, probe: ConversionProbe) -> _Found | None:
    failures = [probe.failure, *(each.failure for each in probe.reads)]
    failure = next((each for each in failures if each is not None), None)
    if failure is None:
        return None
    if failure.trouble is ProbeTrouble.FORBIDDEN:
        return NOT_PERMITTED, not_permitted(definition, failure)
    return NOT_ASKED, f"{definition.name} could not be read: {failure.message.rstrip('.')}."


def _unproven(definition: DefinitionFacts, webhook: WebhookFacts, probe: ConversionProbe) -> _Found | None:
    called = any(each.outcome is Read.CONVERTED for each in probe.reads)
    # Objects may be stored at two versions, but each only at one of them.
    if called or sum(each.outcome is Read.UNCERTAIN for each in probe.reads) > 1:
        return None
    if webhook.service and not webhook.ca_bundle:
        return (
            CA_BUNDLE_MISSING,
            f"The {webhook} has no caBundle, and no read proves that it works without one.",
        )
    if not probe.reads:
        said = f"There is no object of {definition.name}, so that nothing proves the {webhook}."
    else:
        said = f"{probe.example} may be stored at the one version it was read at: no proof of the {webhook}."
    return NOT_PROVEN, said


def _proven(webhook: WebhookFacts, probe: ConversionProbe, now: datetime) -> _Found:
    uncertain = [each.version for each in probe.reads if each.outcome is Read.UNCERTAIN]
    versions = ", ".join(each.version for each in probe.reads)
    said = f"{probe.example} was read at {versions} through the {webhook}."
    if uncertain:
        said += f" It is stored at one of {', '.join(uncertain)}, where nothing was converted."
    expiry = next_expiry(probe.bundle, probe.serving, now)
    if expiry is not None:
        return EXPIRES_SOON, f"{said} {expiry.sentence}"
    return CONVERTED, said


def _notes(probe: ConversionProbe, now: datetime, said: str) -> list[str]:
    """Further notes to append to the message."""
    notes = []
    expiry = next_expiry(probe.bundle, probe.serving, now)
    if expiry is not None and expiry.sentence not in said:
        notes.append(expiry.sentence)
    old = [each.subject or "without a name" for each in probe.bundle if each.not_after <= now]
    if old and len(old) < len(probe.bundle):
        notes.append(f"The caBundle also holds what has expired: {', '.join(old[:3])}.")
    serving = probe.serving
    if serving is not None and serving.certificate is None and serving.error and not serving.untrusted:
        notes.append(
            f"From here {serving.address} is not to be reached ({serving.error}), so that the expiry of the "
            "webhook's own certificate is not known."
        )
    return notes


CONDITION = ConditionType(
    _TYPE,
    lambda facts: judge(
        ConversionFacts(facts.seen.definition, facts.seen.webhook, facts.live.conversion, facts.now)
    ),
    reasons=(
        STRATEGY_NONE,
        CONVERTED,
        NOTHING_TO_CONVERT,
        EXPIRES_SOON,
        PENDING,
        NOT_PROVEN,
        NOT_PERMITTED,
        NOT_ASKED,
        UNREACHABLE,
        CERTIFICATE_REFUSED,
        TIMEOUT,
        BAD_ANSWER,
        REFUSED,
        CERTIFICATE_EXPIRED,
        CERTIFICATE_EXPIRING,
        CA_BUNDLE_INVALID,
        CA_BUNDLE_MISSING,
    ),
    fact="conversion",
)
