"""The stored data, with one counter of revisions; detects at once when something is lost.

Two things must never happen:

* an object is stored at a version that our trim removed from storedVersions, at the trim or any time later;
* an object is stored at another version than the storage version after a migration said that it has proved
  the contrary for exactly this state of the CRD.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.virtualtime import now

VERSIONS = ("v1", "v2", "v3")

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The only CRD; it serves all of VERSIONS. `changed` is the time of the last change of its spec."""

    uid: str
    generation: int
    revision: int
    storage: str
    stored: tuple[str, ...]
    changed: float
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as stored: the version in which it is encoded, and a counter for its content."""

    version: str
    revision: int
    content: int


@dataclass(slots=True)
class Etcd:
    """All state. `loss` says what was lost first, `history` what led to it."""

    revision: int = 100
    definition: Definition | None = None
    objects: dict[Key, Stored] = field(default_factory=dict)
    leases: dict[str, tuple[int, float]] = field(default_factory=dict)
    migrations: dict[str, dict[str, Any]] = field(default_factory=dict)
    trims: int = 0
    loss: str = ""
    history: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set and cleared whenever the CRD changes."""
    _uids: int = 0
    _trimmed: set[str] = field(default_factory=set)
    _proved: tuple[str, int] | None = None

    def note(self, text: str) -> None:
        """Add a line to the history that explains a counterexample."""
        self.history.append(f"{now():9.3f} {text}")

    def next_revision(self) -> int:
        self.revision += 1
        return self.revision

    def next_uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"

    def put(self, key: Key, version: str, content: int, by: str) -> Stored:
        """Store an object's bytes."""
        stored = self.objects[key] = Stored(version, self.next_revision(), content)
        self.note(f"{by} stores {'/'.join(key)} at {version}, revision {stored.revision}")
        self._judge([key])
        return stored

    def delete(self, key: Key) -> None:
        del self.objects[key]
        self.next_revision()

    def renew(self, server: str) -> None:
        self.leases[server] = (self.next_revision(), now())

    def define(self, storage: str) -> None:
        """Create the CRD."""
        self._set(Definition(self.next_uid(), 1, self.next_revision(), storage, (storage,), now()))

    def flip(self, storage: str) -> None:
        """Apply the CRD with this storage version; if it is the same, something else in its spec changes."""
        old = self.definition
        if old is not None and not old.terminating:
            stored = old.stored if storage in old.stored else (*old.stored, storage)
            self._trimmed.discard(storage)
            self._set(
                replace(
                    old,
                    generation=old.generation + 1,
                    revision=self.next_revision(),
                    storage=storage,
                    stored=stored,
                    changed=now(),
                )
            )

    def label(self) -> None:
        """Change the CRD's metadata: a new revision and time, but no new generation."""
        if self.definition is not None:
            self._set(replace(self.definition, revision=self.next_revision(), changed=now()))

    def terminate(self) -> None:
        """Start deleting the CRD; `remove` completes it."""
        old = self.definition
        if old is not None and not old.terminating:
            self._set(
                replace(old, generation=old.generation + 1, revision=self.next_revision(), terminating=True)
            )

    def remove(self) -> None:
        """Remove the CRD, its objects, and the migrations that it owns."""
        self.objects.clear()
        self.migrations.clear()
        self._trimmed.clear()
        self._proved = None
        self.next_revision()
        self._set(None)

    def trim(self, keep: Sequence[str], *, ours: bool) -> None:
        """Set status.storedVersions. A wrong trim by others is their loss, not ours."""
        old = self.definition
        assert old is not None
        if ours:
            self.trims += 1
            self._trimmed |= set(old.stored) - set(keep)
        self._set(replace(old, revision=self.next_revision(), stored=tuple(keep)))
        self._judge(self.objects)

    def proved(self, uid: str, generation: int) -> None:
        """A migration reported success for this state of the CRD."""
        current = self.definition
        if current is not None and (current.uid, current.generation) == (uid, generation):
            self.note(f"success is reported for generation {generation}")
            self._proved = (uid, generation)
            self._judge(self.objects)

    def _set(self, definition: Definition | None) -> None:
        self.definition = definition
        self.note(f"the CRD is now {definition}")
        self.changed.set()
        self.changed.clear()

    def _judge(self, keys: Sequence[Key] | dict[Key, Stored]) -> None:
        current = self.definition
        if current is None or self.loss:
            return
        proved = self._proved == (current.uid, current.generation)
        for key in keys:
            version = self.objects[key].version
            if version in self._trimmed or (proved and version != current.storage):
                self.loss = f"{'/'.join(key)} is stored at {version}"
                self.note(f"LOSS: {self.loss}")
                return
