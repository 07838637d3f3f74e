"""How long the certificates of a webhook remain valid, and when to warn about their end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crdkeeper.api.meta import format_time

_SOON = timedelta(days=30)
_URGENT = timedelta(days=7)
_SOON_PART = 3
_URGENT_PART = 10
"""Some certificates live for hours only: warn at most for this part of their lifetime."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """One X.509 certificate, reduced to what a report needs. Times are in UTC."""

    subject: str
    """The subject as in RFC 4514, such as `CN=webhook-ca`; empty if there is none."""
    issuer: str
    not_before: datetime
    not_after: datetime

    @property
    def lifetime(self) -> timedelta:
        """The time from its first to its last valid moment."""
        return self.not_after - self.not_before


@dataclass(frozen=True, slots=True)
class Handshake:
    """The result of a TLS handshake with the webhook. No HTTP request is sent."""

    address: str
    """The `host:port` of the connection."""
    certificate: Certificate | None = None
    """The webhook's own; None if there was no handshake at all."""
    error: str = ""
    """What went wrong; empty if the caBundle verifies chain and host name."""
    untrusted: bool = False
    """Whether the certificate was rejected. An error without it means that nothing answers here at such an
    address, which does not prove that the API server cannot reach it.
    """


@dataclass(frozen=True, slots=True)
class Expiry:
    """What expires first, and ends the webhook's trust."""

    sentence: str
    expired: bool
    urgent: bool
    """Within 7 days, or within the last tenth of the lifetime if that is shorter."""


def next_expiry(bundle: Sequence[Certificate], serving: Handshake | None, now: datetime) -> Expiry | None:
    """What soon ends the trust in a webhook, if anything: its own certificate, or the last of its caBundle.

    A bundle is valid as long as one of its certificates is or, if known, one of those that issued the
    webhook's certificate. Near means 30 days, or the last third of the lifetime if that is shorter.
    """
    own = serving.certificate if serving is not None else None
    candidates: list[tuple[str, Certificate]] = []
    if own is not None:
        candidates.append(("certificate of the webhook", own))
    issuers = [each for each in bundle if own is not None and each.subject == own.issuer]
    if bundle:
        last = max(issuers or bundle, key=lambda each: each.not_after)
        candidates.append(
            ("caBundle" if len(bundle) == 1 else "last usable certificate of the caBundle", last)
        )
    near = [(what, each) for what, each in candidates if _is_near(each, now, _SOON, _SOON_PART)]
    if not near:
        return None
    what, first = min(near, key=lambda each: each[1].not_after)
    name = f" ({first.subject})" if first.subject else ""
    expired = first.not_after <= now
    end = format_time(first.not_after)
    if expired:
        sentence = f"The {what}{name} expired on {end}."
    else:
        sentence = f"The {what}{name} expires on {end}, in {_in_words(first.not_after - now)}."
    return Expiry(sentence, expired, expired or _is_near(first, now, _URGENT, _URGENT_PART))


def _is_near(certificate: Certificate, now: datetime, notice: timedelta, part: int) -> bool:
    return certificate.not_after - now <= min(notice, certificate.lifetime / part)


def _in_words(left: timedelta) -> str:
    hours = int(left.total_seconds() // 3600)
    number, unit = (left.days, "day") if left.days > 1 else (hours, "hour")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
