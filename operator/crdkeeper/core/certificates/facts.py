"""What the two Secrets hold, reduced to what a decision needs. Times are in UTC; a CA is known by an id.

Whatever cannot be read is not there: an authority without its key, a serving certificate whose key does not
fit, a part of a bundle that is no certificate.
"""

from dataclasses import dataclass
from datetime import datetime

from crdkeeper.core.certificates.times import renewed_at


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA: the fingerprint of its certificate, and for how long it is good."""

    id: str
    not_before: datetime
    not_after: datetime

    def good(self, now: datetime) -> bool:
        """Whether what it signs can be trusted."""
        return self.not_before <= now < self.not_after

    def due(self, now: datetime) -> bool:
        """Whether it is time for a new one."""
        return now >= renewed_at(self.not_before, self.not_after)


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """The certificate that the webhook serves."""

    id: str
    issuer: str
    """The id of the CA that its chain ends in, of the bundle or one of ours; empty if there is none."""
    names: frozenset[str]
    """DNS names and IP addresses."""
    not_before: datetime
    not_after: datetime
    since: datetime
    """When it came into the Secret: replicas serve it some time after that."""

    def good(self, now: datetime) -> bool:
        """Whether it is good by its dates."""
        return self.not_before <= now < self.not_after

    def due(self, now: datetime) -> bool:
        """Whether it is time for a new one."""
        return now >= renewed_at(self.not_before, self.not_after)


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What is on record."""

    authorities: tuple[Authority, ...] = ()
    """Those that we can sign by, newest first."""
    bundle: tuple[Authority, ...] = ()
    """What clients are told to trust, newest first."""
    serving: StoredCertificate | None = None
    tidy: bool = True
    """False if the bundle is not on record in the form in which we write it."""
