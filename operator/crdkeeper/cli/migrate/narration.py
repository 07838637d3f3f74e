"""A migration in words: what changed, how far it is, how it ended, and what to do then."""

from collections.abc import Sequence
from dataclasses import dataclass

from crdkeeper.api.meta import READY, RECONCILING, STALLED, Condition, find_condition
from crdkeeper.api.storagemigration import RefusedObject, StorageMigration
from crdkeeper.cli.output.table import table
from crdkeeper.core.text import count

_SWEEPING = frozenset(("Rewriting", "Verifying", "Planning"))
"""Reasons of Succeeded while objects are being dealt with."""
_SUMMARIES = frozenset((READY, RECONCILING, STALLED))
"""They say what Succeeded says."""
_TELLS_NOTHING = frozenset(("Pending", "PlanOnly", "Allowed", "Resumed", "AlreadyCurrent"))


@dataclass(frozen=True, slots=True)
class Phase:
    """What a migration is at: `done` of `total` objects, or where there is nothing to count a message."""

    name: str
    message: str
    done: int = 0
    total: int = 0


def phase(migration: StorageMigration) -> Phase:
    """What a migration is at."""
    status = migration.status
    summary = find_condition(status.conditions, "Succeeded")
    if summary is None:
        return Phase("Pending", "")
    if summary.reason not in _SWEEPING or status.sweep is None or status.sweep.done:
        return Phase(summary.reason, summary.message)
    progress, done = status.progress, status.sweep.scanned
    if status.sweep.type != "Verify":
        # A checkpoint counts whole pages only; these count objects.
        dealt_with = progress.rewritten + progress.current + progress.gone + progress.quarantined
        done = max(done, dealt_with, progress.percent * progress.total // 100)
    return Phase(summary.reason, summary.message, min(done, progress.total), progress.total)


def figures(migration: StorageMigration) -> str:
    """Rate, requests in flight, refusals, and the time to the end where it is known."""
    progress = migration.status.progress
    left = f", {progress.remaining} left" if progress.remaining else ""
    return (
        f"{progress.objects_per_second:,}/s, {progress.concurrency} in flight, "
        f"{progress.quarantined:,} refused{left}"
    )


def progress_line(migration: StorageMigration) -> str:
    """How far it is; empty where there is nothing to count."""
    now = phase(migration)
    if not now.total:
        return ""
    return f"{now.name}: {now.done:,} of {now.total:,} ({100 * now.done // now.total}%), {figures(migration)}"


def news(before: Sequence[Condition], migration: StorageMigration) -> list[str]:
    """A line for each condition that has changed, without those that repeat another, and without the end."""
    lines, told = [], set(_TELLS_NOTHING)
    # The summary comes last: it repeats one of the others.
    for each in sorted(migration.status.conditions, key=lambda each: each.type == "Succeeded"):
        old = find_condition(before, each.type)
        known = old is not None and (old.status, old.reason) == (each.status, each.reason)
        ended = each.type == "Succeeded" and migration.status.completion_time is not None
        if known or ended or each.reason in told or each.type in _SUMMARIES:
            continue
        told.add(each.reason)
        lines.append(f"{each.type}={each.status} {each.reason}: {each.message}")
    return lines


def outcome(migration: StorageMigration) -> str:
    """What a migration that succeeded has done."""
    conditions = migration.status.conditions
    summary, trimmed = find_condition(conditions, "Succeeded"), find_condition(conditions, "Trimmed")
    parts = [summary.message] if summary is not None else []
    if summary is not None and summary.reason == "AlreadyCurrent":
        parts.insert(0, "Nothing to do:")
    if trimmed is not None and trimmed.reason in ("Trimmed", "NotRequested", "NotApplicable"):
        parts.append(trimmed.message)
    return f"{migration.spec.resource}: {' '.join(parts)}"


def failure(migration: StorageMigration, *, gone: bool, followed: bool) -> str:
    """Why a migration that did not succeed is over for the command, and what to do about it."""
    status, resource = migration.status, migration.spec.resource
    summary = find_condition(status.conditions, "Succeeded")
    refused = status.progress.quarantined
    if gone:
        return f"{resource}: StorageMigration {migration.metadata.name} was deleted; nothing more was done."
    if migration.spec.mode == "Plan" and refused:
        return (
            f"{resource}: {refused:,} of {count(status.progress.total, 'object')} would be refused. "
            f"Nothing was written. Fix the causes, then migrate."
        )
    if refused and summary is not None and summary.reason in ("RetriesExhausted", "ObjectsRefused"):
        go_on = (
            "the migration keeps retrying"
            if followed
            else "then run the same command again to retry only these objects"
        )
        return (
            f"{resource}: {count(refused, 'object')} refused, also in "
            f"{count(status.quarantine.rounds, 'round')} of retries. All others are done; nothing is trimmed "
            f"until all are. Fix the causes; {go_on}."
        )
    return (
        f"{resource}: {summary.reason}: {summary.message}" if summary is not None else f"{resource}: failed."
    )


def interruption(migration: StorageMigration | None, *, stored: bool, followed: bool) -> str:
    """How far it was when the command was told to stop, and how to go on."""
    if migration is None:
        return "Interrupted before anything was done."
    if followed:
        return f"Stopped watching; StorageMigration {migration.metadata.name} continues."
    if migration.spec.mode == "Plan":
        return "Interrupted. Nothing was written."
    now = phase(migration)
    far = f" at {now.done:,} of {now.total:,} objects ({now.name})" if now.total else f" ({now.name})"
    if stored:
        return (
            f"Interrupted{far}; saved in StorageMigration {migration.metadata.name}. "
            f"To resume, run the same command again."
        )
    return f"Interrupted{far}; nothing is trimmed. To start over, run the same command again."


def refused_table(refused: Sequence[RefusedObject], total: int) -> list[str]:
    """The refused objects, one a line; `total` counts also those that are not known by name."""
    rows = [
        (
            f"{each.namespace}/{each.name}" if each.namespace else each.name,
            str(each.code),
            each.denied_by,
            each.field,
            " ".join(each.message.split()),
        )
        for each in refused
    ]
    shown = table(("OBJECT", "CODE", "DENIED BY", "FIELD", "MESSAGE"), rows)
    more = total - len(refused)
    return [*shown, f"… and {count(more, 'more object')}, not listed by name"] if more > 0 else shown
