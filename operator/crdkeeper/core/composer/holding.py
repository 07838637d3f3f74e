"""What a deletion waits for: composites that are being deleted, and the finalizers that hold them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.core.diagnosis.census import object_name
from crdkeeper.core.diagnosis.deletion import CLEANUP
from crdkeeper.core.text import count

_NAMED: Final = 5
_FINALIZERS_NAMED: Final = 3
"""Of one object: it can have thousands."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The composites that are being deleted and wait for their finalizers, among the first ones."""

    number: int = 0
    first: tuple[str, ...] = ()
    """The first five, as `namespace/name (finalizer, …)`."""
    looked_at: int = 0
    """How many composites these are."""


def waiting_among(composites: Iterable[Mapping[str, Any]]) -> Waiting:
    """Those that wait, by their metadata."""
    number = looked_at = 0
    first: list[str] = []
    for each in composites:
        looked_at += 1
        finalizers = each.get("finalizers") or ()
        if "deletionTimestamp" not in each or not finalizers:
            continue
        number += 1
        if len(first) < _NAMED:
            first.append(f"{object_name(each)} ({_listed(finalizers)})")
    return Waiting(number, tuple(first), looked_at)


def waits(found: Waiting, composites: int | None) -> str:
    """Who waits for which finalizers, as a sentence; empty if nobody does. `composites` is how many exist."""
    if not found.number:
        return ""
    said = count(found.number, "composite")
    if composites is not None and composites > found.looked_at:
        said = f"Of the first {found.looked_at:,}, {said}"
    verb = "waits for its finalizers" if found.number == 1 else "wait for their finalizers"
    more = found.number - len(found.first)
    return f"{said} {verb}: {', '.join(found.first)}{f' and {more:,} more' if more else ''}."


def holds_crd(crd: Mapping[str, Any]) -> str:
    """Which finalizers hold a CRD in deletion besides the API server's own; empty if none do."""
    metadata = crd["metadata"]
    others = [each for each in metadata.get("finalizers") or () if each != CLEANUP]
    going = "deletionTimestamp" in metadata
    return f"The CRD itself has the finalizers {_listed(others)}." if going and others else ""


def _listed(finalizers: Sequence[str]) -> str:
    more = len(finalizers) - _FINALIZERS_NAMED
    return ", ".join(finalizers[:_FINALIZERS_NAMED]) + (f" and {more:,} more" if more > 0 else "")
