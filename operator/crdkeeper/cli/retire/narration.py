"""A retirement in words and tables: where it stands, who still uses the version, and what is due."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from crdkeeper.api.meta import READY, find_condition, format_time
from crdkeeper.api.versionretirement import (
    MIGRATED,
    REMOVED,
    STEPS,
    DueChange,
    VersionEvidence,
    VersionRetirement,
)
from crdkeeper.cli.output.table import age, table
from crdkeeper.core.retirement.evidence import AuditedUses
from crdkeeper.core.text import count

HEADERS = ("NAME", "RESOURCE", "VERSION", "MODE", "DUE", "WRITERS", "READY", "REASON", "AGE")
_STEP_HEADERS = ("STEP", "STATUS", "REASON", "MESSAGE")
_WRITER_HEADERS = ("WRITER", "OPERATION", "NAMESPACE", "OBJECTS", "LAST")
_REQUESTER_HEADERS = ("USER", "WHOSE", "PROGRAM", "NAMESPACE", "READS", "WRITES", "LAST")
_HOLD_HEADERS = ("HELD STEP", "REASON", "NAME", "MESSAGE")
_OWNER_HEADERS = ("APPLIED BY", "MANAGER", "MESSAGE")


def row(retirement: VersionRetirement, now: datetime) -> list[str]:
    """The cells of one retirement."""
    ready = find_condition(retirement.status.conditions, READY)
    created, due = retirement.metadata.creation_timestamp, retirement.status.due
    return [
        retirement.metadata.name,
        str(retirement.spec.resource),
        retirement.spec.version,
        retirement.spec.mode,
        due.step if due is not None else "",
        str(retirement.status.evidence.writer_count),
        ready.status if ready is not None else "Unknown",
        ready.reason if ready is not None else "Pending",
        age((now - created).total_seconds()) if created is not None else "",
    ]


def details(retirement: VersionRetirement, audit: AuditedUses | None = None) -> Iterator[str]:
    """Everything about one retirement, in lines; `audit` is what audit logs say."""
    status = retirement.status
    yield f"{retirement.spec.resource}: retiring {retirement.spec.version}"
    yield ""
    steps = [find_condition(status.conditions, each) for each in STEPS]
    yield from table(
        _STEP_HEADERS, [(each.type, each.status, each.reason, _line(each.message)) for each in steps if each]
    )
    removed = find_condition(status.conditions, REMOVED)
    if removed is not None and removed.status == "True":
        return
    yield from _uses(status.evidence)
    if audit is not None:
        yield from _audited(retirement.spec.version, audit)
    if status.evidence.owners:
        yield ""
        cells = [(each.tool, each.manager, _line(each.detail)) for each in status.evidence.owners]
        yield from table(_OWNER_HEADERS, cells)
    if status.holds:
        yield ""
        yield from table(
            _HOLD_HEADERS, [(each.step, each.reason, each.name, _line(each.message)) for each in status.holds]
        )
        yield from _more(status.hold_count - len(status.holds), "hold")
    for title, sentences in (
        (f"Without {retirement.spec.version}:", status.evidence.warnings),
        ("What cannot be known:", status.evidence.unknown),
    ):
        if sentences:
            yield ""
            yield title
            yield from (f"- {_line(each)}" for each in sentences)
    yield from _next(retirement, status.due)


def _uses(evidence: VersionEvidence) -> Iterator[str]:
    if evidence.taken_time is None:
        return
    yield ""
    counted = count(evidence.counted, "object") + ("" if evidence.complete else " so far")
    yield f"Named by managedFields of {evidence.objects:,} of {counted}, {format_time(evidence.taken_time)}."
    if evidence.failure:
        yield _line(evidence.failure)
    if evidence.writers:
        yield from table(
            _WRITER_HEADERS,
            [
                (
                    each.manager,
                    f"{each.operation} of {each.subresource}" if each.subresource else each.operation,
                    each.namespace,
                    f"{each.objects:,}",
                    format_time(each.last_time) if each.last_time is not None else "",
                )
                for each in evidence.writers
            ],
        )
        yield from _more(evidence.writer_count - len(evidence.writers), "writer")
    for reader in evidence.readers:
        since = f", since {format_time(reader.since)}" if reader.since is not None else ""
        server = f"the API server at {_line(reader.server)}" if reader.server else "an API server"
        yield f"Requests that {server} has counted{since}: {_line(reader.what)}"


def _audited(version: str, audit: AuditedUses) -> Iterator[str]:
    yield ""
    span = ""
    if audit.first is not None and audit.last is not None:
        span = f" from {format_time(audit.first)} to {format_time(audit.last)}"
    none = "" if audit.requesters else " none"
    yield f"Requests at {version} in the audit log, which has {count(audit.events, 'event')}{span}:{none}"
    if audit.requesters:
        yield from table(
            _REQUESTER_HEADERS,
            [
                (
                    each.user,
                    each.whose,
                    ", ".join(each.agents),
                    ", ".join(each.namespaces),
                    f"{each.reads:,}",
                    f"{each.writes:,}",
                    format_time(each.last) if each.last is not None else "",
                )
                for each in audit.requesters
            ],
        )
        yield from _more(audit.requester_count - len(audit.requesters), "user")
    for number, noun, what in (
        (audit.failed, "request", "failed, not shown above."),
        (audit.undated, "request", "without a time: whether the quiet period had begun is not known."),
        (audit.unreadable, "line", "skipped, no event of audit.k8s.io/v1."),
        (audit.too_long, "line", "skipped, too long."),
    ):
        if number:
            yield f"{count(number, noun)} {what}"


def audited_object(audit: AuditedUses) -> dict[str, Any]:
    """What audit logs say, as a part of a document."""

    def time(moment: datetime | None) -> str | None:
        return format_time(moment) if moment is not None else None

    return {
        "events": audit.events,
        "firstTime": time(audit.first),
        "lastTime": time(audit.last),
        "requesters": [
            {
                "user": each.user,
                "whose": each.whose,
                "programs": list(each.agents),
                "namespaces": list(each.namespaces),
                "reads": each.reads,
                "writes": each.writes,
                "lastTime": time(each.last),
            }
            for each in audit.requesters
        ],
        "requesterCount": audit.requester_count,
        "failed": audit.failed,
        "undated": audit.undated,
        "unreadableLines": audit.unreadable,
        "tooLongLines": audit.too_long,
    }


def _next(retirement: VersionRetirement, due: DueChange | None) -> Iterator[str]:
    ready = find_condition(retirement.status.conditions, READY)
    # That of a command's own retirement, which has no object in the cluster, repeats what is due.
    if ready is not None and (due is None or retirement.metadata.uid):
        yield ""
        yield f"{ready.reason}: {_line(ready.message)}"
    if due is None:
        return
    yield ""
    yield f"Due: {_line(due.message)}"
    if due.manifest:
        # The migration's is no piece of the CRD's, but that of an object to create.
        yield "The manifest of the StorageMigration:" if due.step == MIGRATED else "In the manifest:"
        yield from (f"  {each}" for each in due.manifest.splitlines())
    if due.patch:
        resource = shlex.quote(str(retirement.spec.resource))
        yield "Or:"
        yield f"  kubectl patch crd {resource} --type=json -p {shlex.quote(due.patch)}"


def _more(number: int, noun: str) -> Sequence[str]:
    return [f"… and {count(number, f'more {noun}')}"] if number > 0 else []


def _line(text: str) -> str:
    return " ".join(text.split())
