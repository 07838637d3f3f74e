"""What a decision about a VersionRetirement is based on: the CRD, the evidence, and who holds a step."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from crdkeeper.api.meta import ConditionStatus
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, VersionFacts, definition_facts
from crdkeeper.core.retirement.evidence import Evidence, Obstacle

RECOUNT: Final = timedelta(minutes=10)
"""How often objects are counted while time or a person is awaited; at most a twentieth of the time."""
RATIO: Final = 20


class EvidenceKey(NamedTuple):
    """What must not have changed since evidence was gathered: it counts only what was stored before."""

    uid: str
    generation: int
    versions: tuple[VersionFacts, ...]
    stored: tuple[str, ...]
    ended: frozenset[str | None]
    """The migrations that have ended."""


@dataclass(frozen=True, slots=True)
class State:
    """The status, reason and message of a condition."""

    status: ConditionStatus
    reason: str
    message: str

    @property
    def done(self) -> bool:
        """Whether the next step may follow."""
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class TakenEvidence:
    """Evidence, when it began to be gathered, and the state of the CRD that it is about."""

    evidence: Evidence
    taken: datetime
    key: EvidenceKey
    took: timedelta = timedelta()
    """How long it took to gather."""


@dataclass(frozen=True, slots=True)
class RetirementFacts:
    """All that was gathered in one pass."""

    crd: Mapping[str, Any] | None
    """The whole CRD by a consistent read; None if there is none."""
    now: datetime
    holds: tuple[Obstacle, ...] = ()
    taken: TakenEvidence | None = None
    """The latest evidence, also if it is about an earlier state of the CRD."""
    migrations: tuple[StorageMigration, ...] = ()
    """The migrations of the CRD's objects."""
    missing: tuple[str, ...] = ()
    """The rights that the operator lacks to take all steps. Only gathered if it is to change the CRD."""
    rules: str = ""
    """The rules that grant them, in one line."""

    @property
    def definition(self) -> DefinitionFacts | None:
        """The CRD without its schemas."""
        return definition_facts(self.crd) if self.crd is not None else None

    @property
    def current(self) -> TakenEvidence | None:
        """The evidence, if it is about the CRD as it is now and its migrations so far."""
        if self.taken is None or self.crd is None:
            return None
        key = evidence_key(definition_facts(self.crd), self.migrations)
        return self.taken if self.taken.key == key else None

    @property
    def recount_time(self) -> datetime | None:
        """When objects are counted again after a change of the CRD's spec; None if nothing delays that.

        Somebody may change it all the time. A change of a version, by which steps are taken, delays nothing.
        """
        if self.taken is None or self.crd is None or self.current is not None:
            return None
        key = evidence_key(definition_facts(self.crd), self.migrations)
        if self.taken.key._replace(generation=key.generation) != key:
            return None
        return self.taken.taken + self.taken.took + min(RECOUNT, RATIO * self.taken.took)


def evidence_key(definition: DefinitionFacts, migrations: tuple[StorageMigration, ...]) -> EvidenceKey:
    """The state of the CRD and of its migrations that evidence is about."""
    ended = frozenset(each.metadata.uid for each in migrations if each.status.completion_time is not None)
    return EvidenceKey(
        definition.uid, definition.generation, definition.versions, definition.stored_versions, ended
    )
