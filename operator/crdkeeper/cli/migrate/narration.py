"""A migration in words: changes, progress, result, and what to do next."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from crdkeeper.api.meta import READY, RECONCILING, STALLED, Condition, find_condition
from crdkeeper.api.storagemigration import RefusedObject, StorageMigration, StorageMigrationStatus
from crdkeeper.cli.output.table import table
from crdkeeper.core.text import count

_SWEEPING = frozenset(("Rewriting", "Verifying", "Planning"))
"""Reasons of Succeeded while objects are being processed."""
_SUMMARIES = frozenset((READY, RECONCILING, STALLED))
"""They repeat Succeeded."""
_NEXT_ATTEMPT = re.compile(r" Trying again in \d+ s\.$")
_TELLS_NOTHING = frozenset(("Pending", "PlanOnly", "Allowed", "Resumed", "AlreadyCurrent"))


@dataclass(frozen=True, slots=True)
class Phase:
    """A migration's current phase: `done` of `total` objects or, if there is nothing to count, a message."""

    name: str
    message: str
    done: int = 0
    total: int = 0


def phase(migration: StorageMigration) -> Phase:
    status = migration.status
    summary = find_condition(status.conditions, "Succeeded")
    if summary is None:
        return Phase("Pending", "")
    if summary.reason not in _SWEEPING or status.sweep is None or status.sweep.done:
        return Phase(summary.reason, summary.message)
    progress, done = status.progress, status.sweep.scanned
    if status.sweep.type != "Verify":
        # A checkpoint counts only whole pages; these count objects.
        dealt_with = progress.rewritten + progress.current + progress.gone + progress.quarantined
        done = max(done, dealt_with, progress.percent * progress.total // 100)
    return Phase(summary.reason, summary.message, min(done, progress.total), progress.total)


def figures(migration: StorageMigration) -> str:
    """Rate, requests in flight, refusals, and the remaining time if known."""
    progress = migration.status.progress
    left = f", {progress.remaining} left" if progress.remaining else ""
    return (
        f"{progress.objects_per_second:,}/s, {progress.concurrency} in flight, "
        f"{progress.quarantined:,} refused{left}"
    )


def progress_line(migration: StorageMigration) -> str:
    """The progress; empty if there is nothing to count."""
    now = phase(migration)
    if not now.total:
        return ""
    return f"{now.name}: {now.done:,} of {now.total:,} ({100 * now.done // now.total}%), {figures(migration)}"


def news(before: Sequence[Condition], migration: StorageMigration) -> list[str]:
    """A line for each condition that has changed, except those that repeat another, and the end."""
    lines, reported = [], set(_TELLS_NOTHING)
    # The summary comes last: it repeats one of the others.
    for each in sorted(migration.status.conditions, key=lambda each: each.type == "Succeeded"):
        old = find_condition(before, each.type)
        known = old is not None and (old.status, old.reason) == (each.status, each.reason)
        ended = each.type == "Succeeded" and migration.status.completion_time is not None
        if known or ended or each.reason in reported or each.type in _SUMMARIES:
            continue
        reported.add(each.reason)
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
    """Why the command gives up a migration that did not succeed, and what to do about it."""
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
    if summary is None:
        return f"{resource}: failed."
    # Another attempt is announced to those who see the object; this process makes none.
    said = summary.message if followed else _NEXT_ATTEMPT.sub("", summary.message)
    return f"{resource}: {summary.reason}: {said}"


def interruption(
    migration: StorageMigration | None, *, saved: StorageMigrationStatus | None, followed: bool
) -> str:
    """The progress when the command was told to stop, and how to resume from what is `saved`, if anything."""
    if migration is None:
        return "Interrupted before anything was done."
    name = migration.metadata.name
    if followed:
        return f"Stopped watching; StorageMigration {name} continues."
    if migration.spec.mode == "Plan":
        return "Interrupted. Nothing was written."
    far = _how_far(migration)
    if saved is None:
        return f"Interrupted{far}; nothing is trimmed. To start over, run the same command again."
    before = _how_far(migration.model_copy(update={"status": saved}))
    if before == far:
        return f"Interrupted{far}; saved in StorageMigration {name}. To resume, run the same command again."
    # No answer confirmed the last save, or it was refused, as after someone else has changed the status.
    return (
        f"Interrupted{far}, which may not be saved: StorageMigration {name} is known to be saved{before}. "
        f"To resume, run the same command again."
    )


def _how_far(migration: StorageMigration) -> str:
    now = phase(migration)
    return f" at {now.done:,} of {now.total:,} objects ({now.name})" if now.total else f" ({now.name})"


def refused_table(
    refused: Sequence[tuple[str, RefusedObject]], total: int, *, with_resource: bool = False
) -> list[str]:
    """The refused objects, each with its resource, one per line; `total` also counts those without a name."""
    rows = [
        (
            *((resource,) if with_resource else ()),
            f"{each.namespace}/{each.name}" if each.namespace else each.name,
            str(each.code),
            each.denied_by,
            each.field,
            " ".join(each.message.split()),
        )
        for resource, each in refused
    ]
    headers = ("OBJECT", "CODE", "DENIED BY", "FIELD", "MESSAGE")
    shown = table(("RESOURCE", *headers) if with_resource else headers, rows)
    more = total - len(refused)
    return [*shown, f"… and {count(more, 'more object')}, not listed by name"] if more > 0 else shown
