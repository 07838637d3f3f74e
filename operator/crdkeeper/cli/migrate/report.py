"""How migrations ended: results on stdout, failures on stderr, and the exit code."""

from collections.abc import Sequence
from typing import Any

from crdkeeper.api.meta import API_VERSION
from crdkeeper.api.storagemigration import RefusedObject, StorageMigration
from crdkeeper.cli.migrate.narration import failure, interruption, outcome, refused_table
from crdkeeper.cli.output.printing import line, lines, print_json
from crdkeeper.cluster.resources.kinds import OfAnotherRelease
from crdkeeper.cluster.resources.shards import NotInstalled
from crdkeeper.cluster.transport.client import ApiError, Unreachable
from crdkeeper.core.migration.choice import NameTaken
from crdkeeper.core.text import count, shortened
from crdkeeper.operations.migration.standalone import UnknownResource, succeeded
from crdkeeper.operations.migration.together import Attempt
from crdkeeper.operations.rights import NotPermitted

_EXPECTED = (UnknownResource, NotInstalled, NameTaken, NotPermitted, OfAnotherRelease, ApiError, Unreachable)


def has_failed(attempt: Attempt) -> bool:
    """Whether it ended without success."""
    migration = attempt.work.migration
    return attempt.trouble is not None or migration is None or not succeeded(migration)


def report(attempts: Sequence[Attempt], output: str, *, several: bool) -> int:
    """Print the results in the order of the command. Returns the exit code, the worst of all.

    `several` is False for a command that can be about one resource only.
    """
    begun = [(each, each.work.migration) for each in attempts if each.work.migration is not None]
    if output == "json":
        documents = [_document(*each) for each in begun]
        if several:
            print_json({"apiVersion": API_VERSION, "kind": "StorageMigrationList", "items": documents})
        elif documents and attempts[0].trouble is None:
            print_json(documents[0])
    else:
        objects = [(str(made.spec.resource), each) for attempt, made in begun for each in _refused(attempt)]
        if objects:
            total = sum(made.status.progress.quarantined for _, made in begun)
            lines(refused_table(objects, total, with_resource=several))
    unread = sorted({name for each in attempts for name in each.work.unread})
    if unread:
        line(f"StorageMigrations of another release were left alone: {shortened(unread)}", err=True)
    failed = 0
    for each in attempts:
        failed += has_failed(each)
        _report_end(each, output, several=several)
    if failed and several:
        line(f"Error: {failed:,} of {count(len(attempts), 'resource')} failed.", err=True)
    return 1 if failed else 0


def report_interruption(attempts: Sequence[Attempt], output: str, *, several: bool) -> None:
    """Print how far they got when the command was told to stop, and how to resume."""
    if not attempts:
        line(interruption(None, saved=None, followed=False), err=True)
    for each in attempts:
        if each.ended:
            _report_end(each, output, several=several)
            continue
        work = each.work
        told = interruption(work.migration, saved=work.saved, followed=work.followed)
        line(f"{work.request.resource}: {told}" if several else told, err=True)


def _told(trouble: Exception) -> str:
    expected = isinstance(trouble, _EXPECTED)
    return str(trouble) if expected else f"{type(trouble).__name__}: {trouble}"


def _refused(attempt: Attempt) -> list[RefusedObject]:
    return sorted(attempt.work.refused, key=lambda each: (each.namespace, each.name))


def _document(attempt: Attempt, migration: StorageMigration) -> dict[str, Any]:
    migration.status.quarantine.objects = _refused(attempt)
    return migration.to_object()


def _report_end(attempt: Attempt, output: str, *, several: bool) -> None:
    work = attempt.work
    if attempt.trouble is not None:
        named = not several or isinstance(attempt.trouble, UnknownResource)
        first, *more = _told(attempt.trouble).splitlines() or [""]
        line(f"Error: {'' if named else f'{work.request.resource}: '}{first}", err=True)
        lines(more, err=True)
    elif work.migration is not None and not has_failed(attempt):
        line(outcome(work.migration), err=output == "json")
    elif work.migration is not None:
        line(f"Error: {failure(work.migration, gone=work.gone, followed=work.followed)}", err=True)
