"""What a decision about a VersionRetirement is based on: the CRD, the evidence, and who holds a step."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crdkeeper.api.meta import ConditionStatus
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.retirement.evidence import Evidence, Obstacle

EvidenceKey = tuple[object, ...]


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


def evidence_key(definition: DefinitionFacts, migrations: tuple[StorageMigration, ...]) -> EvidenceKey:
    """What must not have changed since evidence was gathered: it counts only what was stored before."""
    ended = frozenset(each.metadata.uid for each in migrations if each.status.completion_time is not None)
    return definition.uid, definition.generation, definition.stored_versions, ended
