"""When the quiet period of a version began: the later of its deprecation and of its last use."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from crdkeeper.api.versionretirement import VersionEvidence, VersionReader
from crdkeeper.core.retirement.evidence import Evidence, Reader

_UNITS: Mapping[str, int] = {"h": 3600, "m": 60, "s": 1}


def period_of(text: str) -> timedelta:
    """The length of a quiet period, such as `168h` or `1h30m`."""
    return timedelta(
        seconds=sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", text))
    )


@dataclass(frozen=True, slots=True)
class Use:
    """The last use of a version, as far as the evidence shows."""

    last: datetime | None
    by: str = ""
    """Who it was, as a part of a sentence."""


def last_use(evidence: Evidence, taken: datetime, before: VersionEvidence, *, reads_count: bool) -> Use:
    """The last use: a write or an audited request by its time, a counted one by that of the evidence.

    `before` is the evidence before this one. Without `reads_count`, counted requests are not uses: an API
    server does not say whose they are, and ours may be among them.
    """
    if reads_count and _requested(evidence, before):
        return Use(taken, "a client whose request an API server has counted")
    written, audited = _written(evidence), _audited(evidence, taken)
    if written.last is None or (audited.last is not None and audited.last > written.last):
        return audited if audited.last is not None else written
    return written


def _audited(evidence: Evidence, taken: datetime) -> Use:
    """The last request of a client by audit logs. API servers set the time: one to come is of a wrong clock,
    and the request may have come just now.
    """
    audit = evidence.audit
    if audit is None or audit.newest is None:
        return Use(None)
    return Use(min(audit.newest, taken), f"{audit.newest_by}, as an audit log shows")


def _written(evidence: Evidence) -> Use:
    writer = next((each for each in evidence.writers if each.last == evidence.newest), None)
    if writer is None:
        return Use(evidence.newest, "a client")
    where = f" in namespace {writer.namespace}" if writer.namespace else ""
    ahead = ""
    if writer.ahead:
        ahead = f" (managedFields have a time to come, which counts as now: {writer.ahead})"
    return Use(evidence.newest, f"{writer.manager or 'a manager without a name'}{where}{ahead}")


def _requested(evidence: Evidence, before: VersionEvidence) -> bool:
    """Whether an API server has counted requests since the evidence `before`.

    One that is not known may have counted for years, unless it has started since then.
    """
    looked = before.taken_time
    return looked is not None and any(
        sum(each.counts.values()) > counted
        for each in evidence.readers
        if each.since is not None
        and (counted := _counted(each, before, 0 if each.since > looked else None)) is not None
    )


def _counted(reader: Reader, before: VersionEvidence, otherwise: int | None) -> int | None:
    """What this API server had counted by the evidence `before`; `otherwise` if it is not known.

    Where none of its address is known, it is one that started at the same time: a request for the address may
    have failed, or a balancer may have led it to another server. If it is not, this is a use too many.
    """
    server, since = counting(reader)
    same = [each for each in before.readers if counting(each)[1] == since]
    own = [each.requests for each in same if each.server == server]
    return max(own or (each.requests for each in same), default=otherwise)


def counting(reader: Reader | VersionReader) -> tuple[str, datetime | None]:
    """Which process counts: by its address, and when it started, to the second, as status stores it."""
    since = reader.since
    return reader.server, since.replace(microsecond=0) if since is not None else None
