"""Which revisions of a Composition may be deleted: never one in use, nor one that may come into use next."""

from collections.abc import Collection, Mapping
from typing import Any

from crdkeeper.api.definitionpolicy import LabelSelector
from crdkeeper.core.policy.selection import matches
from crdkeeper.core.revisions.content import SeenRevision, newest


def superfluous(
    revisions: Collection[SeenRevision],
    limit: int | None,
    in_use: Collection[str] = (),
    selector: LabelSelector | None = None,
) -> tuple[SeenRevision, ...]:
    """Those of one Composition's revisions that may be deleted, oldest first.

    `limit` is the number to keep besides the newest and those in use; None once the Composition is gone.
    `in_use` has names. New composites use the newest revision that the `selector` matches, if there is one.
    """
    kept = set(in_use)
    if limit is not None:
        matching = [each for each in revisions if selector is not None and matches(selector, each.labels)]
        for each in (newest(revisions), newest(matching)):
            if each is not None:
                kept.add(each.name)
    others = sorted(
        (each for each in revisions if each.name not in kept and not each.deleted),
        key=lambda each: (each.number, each.name),
    )
    return tuple(others[: max(0, len(others) - (limit or 0))])


def revisions_in_use(composite: Mapping[str, Any]) -> set[str]:
    """The names of the revisions by which a composite runs, and that it wants to run by.

    Both fields are in a schema that the API server enforces, but anybody may have made the CRD.
    """
    wanted = _mapping(_mapping(composite.get("spec")).get("crdkeeper")).get("compositionRevisionRef")
    return {
        each
        for each in (_mapping(wanted).get("name"), running_by(composite))
        if isinstance(each, str) and each
    }


def running_by(composite: Mapping[str, Any]) -> str:
    """The name of the revision by which a composite runs; empty if there is none."""
    used = _mapping(_mapping(composite.get("status")).get("crdkeeper")).get("revision")
    return used if isinstance(used, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
