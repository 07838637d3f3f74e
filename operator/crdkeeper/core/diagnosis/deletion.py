"""The facts behind Terminating: the progress of a CRD's deletion, and the objects that are left."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crdkeeper.core.diagnosis.census import EXAMPLES, object_name
from crdkeeper.core.diagnosis.probes import Failure

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The API server's own finalizer on a CRD: it is removed when no object is left."""

_SHOWN = 10
_MOST_FINALIZERS = 100


@dataclass(frozen=True, slots=True)
class Deletion:
    """The progress of a CRD's deletion, according to the CRD."""

    since: datetime
    finalizers: tuple[str, ...]
    """The finalizers of the CRD."""
    message: str
    """The message of the API server's condition Terminating; empty if it is not set yet."""


@dataclass(frozen=True, slots=True)
class FinalizerUse:
    """A finalizer on the remaining objects."""

    name: str
    objects: int
    examples: tuple[str, ...]
    """The first few, as `namespace/name` or `name`."""


@dataclass(frozen=True, slots=True)
class Blockers:
    """The remaining objects."""

    objects: int
    """How many were seen."""
    complete: bool
    """Whether these are all; otherwise there are more."""
    finalizers: tuple[FinalizerUse, ...] = ()
    """The most frequent first; at most ten."""
    finalizers_total: int = 0
    examples: tuple[str, ...] = ()
    """The first few objects."""
    failure: Failure | None = None
    """Why not all of them could be seen."""


@dataclass(slots=True)
class BlockerTally:
    """Counts the remaining objects, in bounded memory."""

    objects: int = 0
    _examples: list[str] = field(default_factory=list)
    _finalizers: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def add(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count objects by their metadata."""
        for each in items:
            self.objects += 1
            name = object_name(each["metadata"])
            if len(self._examples) < EXAMPLES:
                self._examples.append(name)
            for finalizer in each["metadata"].get("finalizers") or ():
                if finalizer not in self._finalizers and len(self._finalizers) >= _MOST_FINALIZERS:
                    continue
                number, examples = self._finalizers.get(finalizer, (0, ()))
                if len(examples) < EXAMPLES:
                    examples = (*examples, name)
                self._finalizers[finalizer] = (number + 1, examples)

    def blockers(self, *, complete: bool, failure: Failure | None = None) -> Blockers:
        """What was counted."""
        top = sorted(self._finalizers.items(), key=lambda item: (-item[1][0], item[0]))[:_SHOWN]
        return Blockers(
            objects=self.objects,
            complete=complete,
            finalizers=tuple(FinalizerUse(name, *found) for name, found in top),
            finalizers_total=len(self._finalizers),
            examples=tuple(self._examples),
            failure=failure,
        )


def deletion(crd: Mapping[str, Any]) -> Deletion | None:
    """The progress of a CRD's deletion; None if it is not being deleted."""
    metadata = crd["metadata"]
    since = metadata.get("deletionTimestamp")
    if since is None:
        return None
    conditions = (crd.get("status") or {}).get("conditions") or ()
    said = next((each.get("message") or "" for each in conditions if each["type"] == "Terminating"), "")
    return Deletion(datetime.fromisoformat(since), tuple(metadata.get("finalizers") or ()), said)
