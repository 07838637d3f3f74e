"""The content of the two Secrets, reduced to what a decision needs. Times are in UTC; a CA has an id.

What cannot be read counts as missing: a CA without its key, a serving certificate whose key does not match, a
part of a bundle that is not a certificate.
"""

from dataclasses import dataclass
from datetime import datetime

from crdkeeper.core.certificates.times import renewed_at


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA: the fingerprint of its certificate, and its period of validity."""

    id: str
    not_before: datetime
    not_after: datetime

    def good(self, now: datetime) -> bool:
        """Whether a certificate that it signs can be trusted."""
        return self.not_before <= now < self.not_after

    def due(self, now: datetime) -> bool:
        """Whether it is time for a new one."""
        return now >= renewed_at(self.not_before, self.not_after)


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """The certificate that the webhook serves."""

    id: str
    issuer: str
    """The id of the CA in which its chain ends, in the bundle or one of ours; empty if there is none."""
    names: frozenset[str]
    """DNS names and IP addresses."""
    not_before: datetime
    not_after: datetime
    since: datetime
    """When it was stored in the Secret: replicas serve it some time later."""

    def good(self, now: datetime) -> bool:
        """Whether its dates are valid."""
        return self.not_before <= now < self.not_after

    def due(self, now: datetime) -> bool:
        """Whether it is time for a new one."""
        return now >= renewed_at(self.not_before, self.not_after)


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What is stored."""

    authorities: tuple[Authority, ...] = ()
    """The CAs whose key we have, newest first."""
    bundle: tuple[Authority, ...] = ()
    """The CAs that clients should trust, newest first."""
    serving: StoredCertificate | None = None
    tidy: bool = True
    """False if the stored bundle is not in the form in which we write it."""
