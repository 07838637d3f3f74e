"""What to do next about the webhook's certificates.

A new CA is introduced without a failed request in three steps: it is added to the bundle next to the old one;
once every API server trusts that bundle, it signs a new serving certificate; once every replica serves that,
the old CA is dropped. Each step is one write, and the stored state determines the next step, so a new leader
continues where the last one stopped.

Two promises hold between the steps. A certificate is signed by a CA only if each API server has this CA in
each bundle that it may still use. A CA leaves the bundle only when no replica can still serve what it signed.
Both are given up only if no stored certificate can be served at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from crdkeeper.core.certificates.facts import Authority, CertificateFacts
from crdkeeper.core.certificates.times import Times, renewed_at


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Put a new CA in front of those that we sign with."""

    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """Write this bundle and, if there is a signer, a new serving certificate with it."""

    bundle: tuple[str, ...]
    signer: str = ""


@dataclass(frozen=True, slots=True)
class Forget:
    """Keep only these of the CAs that we sign with: nobody trusts the others any more."""

    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do for this long."""

    time: timedelta
    problem: str = ""
    """What prevents the renewal of a certificate that is due."""


Action = MakeAuthority | Write | Forget | Wait


def decide(
    facts: CertificateFacts, names: frozenset[str], trusted_for: timedelta | None, now: datetime, times: Times
) -> Action:
    """Decide the next step.

    `trusted_for` is how long every CRD has carried exactly the stored bundle; None if one does not.
    """
    ours = [each for each in facts.authorities if each.good(now)]
    if not ours or ours[0].due(now):
        return MakeAuthority(tuple(each.id for each in ours))
    bundle = _bundle(facts, ours, now, times)
    same = bundle == tuple(each.id for each in facts.bundle)
    settled = same and trusted_for is not None and trusted_for >= times.settle
    signer = _signer(facts, ours, now, settled=settled)
    if _wants(facts, names, signer, now):
        return Write(bundle, signer)
    if not same or not facts.tidy:
        return Write(bundle)
    if any(each.id not in bundle for each in facts.authorities):
        return Forget(tuple(each.id for each in facts.authorities if each.id in bundle))
    return _wait(facts, ours[0], names, trusted_for, now, times)


def _bundle(
    facts: CertificateFacts, ours: Sequence[Authority], now: datetime, times: Times
) -> tuple[str, ...]:
    """The CAs that clients should trust, newest first."""
    serving = facts.serving
    issuer = serving.issuer if serving is not None else ""
    newest = ours[0].id
    if not facts.bundle:
        # Lost: replicas may serve what any of our CAs has signed.
        return tuple(each.id for each in ours)
    wanted = {each.id for each in facts.bundle if now < each.not_after}
    if serving is not None and _works(facts, now) and now - serving.since >= times.spread:
        wanted &= {issuer}
    wanted |= {newest} | {each.id for each in ours if each.id == issuer}
    return tuple(
        each.id for each in (*ours, *(each for each in facts.bundle if each not in ours)) if each.id in wanted
    )


def _signer(facts: CertificateFacts, ours: Sequence[Authority], now: datetime, *, settled: bool) -> str:
    """The CA whose signature every API server accepts; empty to keep the current certificate for now."""
    if settled:
        return ours[0].id
    if facts.serving is not None and _works(facts, now):
        issuer = facts.serving.issuer
        return next((each.id for each in ours if each.id == issuer), "")
    held = {each.id for each in facts.bundle or ours}
    # The oldest one was in the bundle before our other ones.
    return next((each.id for each in reversed(ours) if each.id in held), ours[0].id)


def _wants(facts: CertificateFacts, names: frozenset[str], signer: str, now: datetime) -> bool:
    """Whether a new serving certificate is needed and possible."""
    serving = facts.serving
    if not signer:
        return False
    return (
        serving is None
        or not _works(facts, now)
        or serving.issuer != signer
        or serving.names != names
        or _due(facts, signer, now)
    )


def _works(facts: CertificateFacts, now: datetime) -> bool:
    """Whether the serving certificate is valid and its CA is known."""
    serving = facts.serving
    if serving is None or not serving.good(now):
        return False
    known = {each.id: each for each in (*facts.bundle, *facts.authorities)}
    return serving.issuer in known and known[serving.issuer].good(now)


def _due(facts: CertificateFacts, signer: str, now: datetime) -> bool:
    """Whether to renew. Not if that would change nothing: no certificate outlives its CA."""
    serving = facts.serving
    if serving is None or not serving.due(now):
        return False
    return any(each.id == signer and each.not_after > serving.not_after for each in facts.authorities)


def _wait(
    facts: CertificateFacts,
    newest: Authority,
    names: frozenset[str],
    trusted_for: timedelta | None,
    now: datetime,
    times: Times,
) -> Wait:
    waits = [times.look, renewed_at(newest.not_before, newest.not_after) - now]
    serving, problem = facts.serving, ""
    if serving is not None:
        waits.append(renewed_at(serving.not_before, serving.not_after) - now)
        if len(facts.bundle) > 1:
            waits.append(serving.since + times.spread - now)
        if serving.issuer != newest.id:
            if trusted_for is not None:
                waits.append(times.settle - trusted_for)
            elif serving.due(now) or serving.names != names:
                problem = (
                    "The serving certificate should be renewed, which waits until the caBundle of every "
                    "converted CRD holds the new CA."
                )
    coming = [each for each in waits if each > timedelta(0)]
    return Wait(min(coming), problem)
