"""A retirement in words and tables: where it stands, who still uses the version, and what is due."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from crdkeeper.api.meta import READY, find_condition, format_time
from crdkeeper.api.versionretirement import REMOVED, STEPS, DueChange, VersionEvidence, VersionRetirement
from crdkeeper.cli.output.table import age, table
from crdkeeper.core.text import count

HEADERS = ("NAME", "RESOURCE", "VERSION", "MODE", "DUE", "WRITERS", "READY", "REASON", "AGE")
_STEP_HEADERS = ("STEP", "STATUS", "REASON", "MESSAGE")
_WRITER_HEADERS = ("WRITER", "OPERATION", "NAMESPACE", "OBJECTS", "LAST")
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


def details(retirement: VersionRetirement) -> Iterator[str]:
    """Everything about one retirement, in lines."""
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


def _next(retirement: VersionRetirement, due: DueChange | None) -> Iterator[str]:
    ready = find_condition(retirement.status.conditions, READY)
    if due is None:
        if ready is not None:
            yield ""
            yield f"{ready.reason}: {_line(ready.message)}"
        return
    yield ""
    yield f"Due: {_line(due.message)}"
    if due.manifest:
        yield "In the manifest:"
        yield from (f"  {each}" for each in due.manifest.splitlines())
    if due.patch:
        resource = shlex.quote(str(retirement.spec.resource))
        yield "Or:"
        yield f"  kubectl patch crd {resource} --type=json -p {shlex.quote(due.patch)}"


def _more(number: int, noun: str) -> Sequence[str]:
    return [f"… and {count(number, f'more {noun}')}"] if number > 0 else []


def _line(text: str) -> str:
    return " ".join(text.split())
