"""Keeps the webhook's serving certificate, and the CA bundle that CRDs need to trust it.

Use: the operator's leader creates one `ServingCertificate` and runs `run()` as a task. `bundle` then belongs
in `spec.conversion.webhook.clientConfig.caBundle` of each CRD that our webhook converts, as PEM; `on_bundle`
is called whenever it has changed. `trusted(bundle)` must return whether all of these CRDs already have
exactly that bundle. Call `wake()` whenever its result may have changed: a CRD was written, created or
deleted. `problem` is a sentence for a condition, and empty if there is no problem; `on_problem` is called
with it after each attempt, also while there is no bundle yet.

core/certificates/decision.py decides what to do and when; the state is stored in two Secrets. If another
tool, such as cert-manager, manages the one that is mounted into the webhook's pods, only its ca.crt is read.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cryptography import x509

from crdkeeper.api.meta import format_time
from crdkeeper.cluster.certificates.issuing import (
    KeyPair,
    anchor_of,
    fingerprint,
    general_name,
    issue,
    make_authority,
    names_of,
    to_pem,
)
from crdkeeper.cluster.certificates.secrets import (
    CA_SECRET,
    LABEL,
    OURS,
    TLS_SECRET,
    CertificateSecrets,
    StoredSecrets,
    facts_of,
)
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.certificates.decision import Action, Forget, MakeAuthority, Wait, Write, decide
from crdkeeper.core.certificates.times import Times, validity
from crdkeeper.core.migration.pace import backoff

_log = logging.getLogger(__name__)

_MOST_STEPS = 8
"""Steps in a row without a wait. We never need this many: someone else keeps reverting what we write."""
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 60.0
_TOGETHER_SECONDS = 0.2
"""Seconds after a wake-up during which more are combined: changing many CRDs wakes once."""


class ServingCertificate:
    """Manages the Secrets of `namespace` for a webhook that is called by `names`.

    These are DNS names and IP addresses; raises ValueError for others.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        names: Sequence[str],
        on_bundle: Callable[[], None],
        trusted: Callable[[str], bool],
        on_problem: Callable[[str], None] = lambda problem: None,
        times: Times = Times(),  # noqa: B008 - frozen
    ) -> None:
        self.bundle: str | None = None
        """PEM for caBundle; None while there is none or it is unknown."""
        self.problem = ""
        """Why there is no bundle, or what prevents the certificate's renewal."""
        self._client = client
        self._secrets = CertificateSecrets(client, namespace)
        self._namespace = namespace
        # In the form that a certificate contains: addresses can be written in several ways.
        self._names = tuple(dict.fromkeys(str(general_name(each).value) for each in names))
        self._on_bundle = on_bundle
        self._on_problem = on_problem
        self._trusted = trusted
        self._times = times
        self._woken = asyncio.Event()
        self._trusted_since: float | None = None
        """Monotonic time. A new process starts counting again: it does not know what happened before."""
        self._bundle: tuple[x509.Certificate, ...] = ()
        self._arrived: tuple[str, datetime] | None = None
        """The certificate last seen, and when it first was."""

    def wake(self) -> None:
        """Check again now: the result of `trusted` may have changed."""
        self._look_at_trust()
        self._woken.set()

    async def run(self) -> None:
        """Run until cancelled. Failures are reported in `problem` and retried."""
        failures = steps = 0
        while True:
            self._woken.clear()
            try:
                pause = await self._step()
            except Exception as error:
                failures += 1
                pause = backoff(failures - 1, _FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
                self._failed(error, pause)
                self._on_problem(self.problem)
                await asyncio.sleep(pause)
                continue
            failures = 0
            steps = 0 if pause else steps + 1
            if steps > _MOST_STEPS:
                steps, pause = 0, _LONGEST_RETRY_SECONDS
                self.problem = (
                    f"Another client changes the Secret {TLS_SECRET} or {CA_SECRET} each time that it is "
                    f"written. Remove the label {LABEL}={OURS} if another tool manages it."
                )
                _log.error("%s", self.problem)
            self._on_problem(self.problem)
            await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_TOGETHER_SECONDS)

    def _failed(self, error: Exception, pause: float) -> None:
        if isinstance(error, ApiError) and error.code == 409:
            return  # another operator, or a person, was faster
        known = isinstance(error, ApiError | Unreachable)
        self.problem = f"The webhook's certificates cannot be managed in namespace {self._namespace}: {error}"
        _log.warning("%s; trying again in %.1f s", self.problem, pause, exc_info=not known)

    async def _step(self) -> float:
        """Take the next step. Returns the seconds until there is something to do again, 0 for at once."""
        seen = await self._secrets.read()
        now = self._client.now()
        if not seen.tls_is_ours:
            self._offer(seen.bundle)
            self.problem = foreign_problem(seen, self._names, now, self._namespace)
            return self._times.look.total_seconds()
        if not seen.bundle and self._bundle:
            # Deleted or damaged beyond reading, while clients and replicas keep using it.
            seen = replace(seen, bundle=self._bundle)
        self._offer(seen.bundle)
        if not seen.ca_is_ours:
            self.problem = (
                f"The Secret {self._namespace}/{CA_SECRET} has no label {LABEL}={OURS}: it is not ours to "
                f"write. Rename it, or add the label if it holds nothing that is needed."
            )
            return self._times.look.total_seconds()
        facts = facts_of(seen, self._since(seen, now))
        action = decide(facts, frozenset(self._names), self._trusted_for(), now, self._times)
        return await self._carry_out(action, seen, now)

    async def _carry_out(self, action: Action, seen: StoredSecrets, now: datetime) -> float:
        own = {fingerprint(each.certificate): each for each in seen.authorities}
        match action:
            case MakeAuthority(keep):
                made = make_authority(*validity(now, self._times.authority, self._times.skew))
                await self._secrets.write_authorities(seen, [made, *(own[each] for each in keep)])
                _log.info("Created a new CA, %s.", made.certificate.subject.rfc4514_string())
            case Forget(keep):
                await self._secrets.write_authorities(seen, [own[each] for each in keep])
                _log.info("Deleted the keys of CAs that are no longer trusted.")
            case Write(bundle, signer):
                await self._write(seen, bundle, own.get(signer), now)
            case Wait(pause, problem):
                self.problem = problem
                return pause.total_seconds()
        return 0.0

    async def _write(
        self, seen: StoredSecrets, bundle: Sequence[str], signer: KeyPair | None, now: datetime
    ) -> None:
        known = {fingerprint(each): each for each in seen.bundle}
        known |= {fingerprint(each.certificate): each.certificate for each in seen.authorities}
        made = None
        if signer is not None:
            made = issue(signer, self._names, *validity(now, self._times.serving, self._times.skew))
        await self._secrets.write_serving(seen, [known[each] for each in bundle], made, now)
        if made is None:
            _log.info("Clients of the webhook must trust %d CAs.", len(bundle))
        else:
            self._arrived = (fingerprint(made.certificate), self._client.now())
            _log.info(
                "Issued a new serving certificate, valid until %s.",
                format_time(made.certificate.not_valid_after_utc),
            )

    def _offer(self, bundle: tuple[x509.Certificate, ...]) -> None:
        """Publish what CRDs need to contain, and check whether they do."""
        self._bundle = bundle
        text = b"".join(map(to_pem, bundle)).decode() or None
        if text != self.bundle:
            self.bundle, self._trusted_since = text, None
            self._on_bundle()
        self._look_at_trust()

    def _look_at_trust(self) -> None:
        if self.bundle is None or not self._trusted(self.bundle):
            self._trusted_since = None
        elif self._trusted_since is None:
            self._trusted_since = asyncio.get_running_loop().time()

    def _trusted_for(self) -> timedelta | None:
        if self._trusted_since is None:
            return None
        return timedelta(seconds=asyncio.get_running_loop().time() - self._trusted_since)

    def _since(self, seen: StoredSecrets, now: datetime) -> datetime:
        """When the serving certificate was stored in its Secret, or later if that is uncertain."""
        serving = seen.serving
        if serving is None:
            return now
        id_ = fingerprint(serving)
        if self._arrived is None:
            self._arrived = (id_, min(now, seen.since or now))
        elif self._arrived[0] != id_:
            self._arrived = (id_, now)
        return self._arrived[1]


def foreign_problem(seen: StoredSecrets, names: Sequence[str], now: datetime, namespace: str) -> str:
    """What is wrong with a Secret that another tool manages; empty if nothing is."""
    secret, serving = f"The Secret {namespace}/{TLS_SECRET}, which another tool manages,", seen.serving
    if not seen.bundle:
        return (
            f"{secret} has no certificate in ca.crt, so clients do not know which CA to trust. Have its "
            f"issuer put the CA there, or delete the Secret to have crdkeeper make its own."
        )
    if serving is None:
        return f"{secret} has no tls.crt with a matching tls.key."
    if anchor_of(serving, seen.chain[1:], seen.bundle) is None:
        return f"{secret} has a tls.crt that is not signed by its ca.crt."
    if not serving.not_valid_before_utc <= now < serving.not_valid_after_utc:
        begin, end = format_time(serving.not_valid_before_utc), format_time(serving.not_valid_after_utc)
        return f"{secret} has a certificate that is valid only from {begin} to {end}."
    missing = sorted(each for each in names if not _covered(each, names_of(serving)))
    return f"{secret} has a certificate that is not valid for {', '.join(missing)}." if missing else ""


def _covered(name: str, by: frozenset[str]) -> bool:
    return name in by or f"*.{name.partition('.')[2]}" in by
