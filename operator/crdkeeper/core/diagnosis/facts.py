"""The input of a CRD's diagnosis: facts that others have gathered, none of them large.

A CRD with its schemas can have a megabyte. Results that need the schema are computed once for each revision
(`assessment.py`); those that need requests come from probes, later or never.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

import orjson

from crdkeeper.api.meta import DEFINITION_UID, ConditionStatus
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conversionfacts import (
    ConversionProbe,
    WebhookFacts,
    conversion_appliers,
    conversion_webhook,
)
from crdkeeper.core.diagnosis.deletion import Blockers, Deletion, deletion
from crdkeeper.core.diagnosis.deprecation import DeprecatedVersion, deprecated_versions
from crdkeeper.core.diagnosis.nameconflicts import NameClaims, NameConflict, name_claims
from crdkeeper.core.diagnosis.scaling import Scaling
from crdkeeper.core.diagnosis.statuswriters import StatusWriters
from crdkeeper.core.diagnosis.subresourcefacts import ScaleProbe

APPROVAL = "KubernetesAPIApprovalPolicyConformant"
_KEPT = frozenset(("Established", "NamesAccepted", "Terminating", APPROVAL))
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class ServerCondition:
    """A condition in a CRD's status, as the API server's own controllers wrote it."""

    type: str
    status: ConditionStatus
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class SeenDefinition:
    """A CRD as returned by the API server, without its schemas."""

    definition: DefinitionFacts
    claims: NameClaims
    conditions: tuple[ServerCondition, ...]
    """Conditions that a diagnosis reads; not NonStructuralSchema, because we check schemas ourselves."""
    revision: str
    """Changes whenever the input of an assessment may have changed: uid, spec, labels or annotations."""
    webhook: WebhookFacts | None
    deprecated: tuple[DeprecatedVersion, ...]
    deletion: Deletion | None
    """None unless it is being deleted."""
    definition_uid: str = ""
    """Of the CompositeResourceDefinition that it belongs to; empty if it belongs to none."""
    appliers: frozenset[str] = frozenset()
    """The field managers that have applied spec.conversion."""

    @property
    def name(self) -> str:
        return self.definition.name

    def condition(self, type_: str) -> ServerCondition | None:
        """The server's condition of that type; None if there is none (yet)."""
        return next((each for each in self.conditions if each.type == type_), None)


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """The results of probes; None if a probe has not run yet, or is not needed."""

    conversion: ConversionProbe | None = None
    scale: ScaleProbe | None = None
    statuswriters: StatusWriters | None = None
    scaling: Scaling | None = None
    census: Census | None = None
    blockers: Blockers | None = None


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Everything from which a report is made."""

    seen: SeenDefinition
    assessment: Assessment
    now: datetime
    """The API server's time, for certificates that expire."""
    conflicts: tuple[NameConflict, ...] = ()
    """The wanted names that belong to other CRDs."""
    migrations: tuple[StorageMigration, ...] = ()
    """The migrations of this CRD's resource."""
    live: LiveFacts = field(default_factory=LiveFacts)
    unknown_label: str = ""
    """Why the label that asks for migrations means nothing; empty if that is not so, or it does not count."""
    overruled_label: str = ""
    """Which policy keeps that label from doing what it asks for; empty if none does."""


def seen_definition(crd: Mapping[str, Any]) -> SeenDefinition:
    """Reduce a CRD object. Raises KeyError if it is not a complete CRD as returned by the API server."""
    definition = definition_facts(crd)
    status = crd.get("status") or {}
    return SeenDefinition(
        definition=definition,
        claims=name_claims(crd),
        conditions=tuple(_conditions(status.get("conditions") or ())),
        revision=_revision(definition, crd["metadata"]),
        webhook=conversion_webhook(crd),
        deprecated=deprecated_versions(crd),
        deletion=deletion(crd),
        definition_uid=(crd["metadata"].get("annotations") or {}).get(DEFINITION_UID, ""),
        appliers=conversion_appliers(crd),
    )


def _conditions(found: Iterable[Mapping[str, Any]]) -> Iterable[ServerCondition]:
    for each in found:
        if each["type"] in _KEPT:
            message = bounded(each.get("message") or "", LINE_BYTES)
            yield ServerCondition(each["type"], each["status"], each.get("reason") or "", message)


def _revision(definition: DefinitionFacts, metadata: Mapping[str, Any]) -> str:
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED
    }
    # The generation changes only with spec; the checks also read labels and annotations.
    rest = orjson.dumps([annotations, metadata.get("labels")], option=orjson.OPT_SORT_KEYS)
    return f"{definition.uid}/{definition.generation}/{blake2b(rest, digest_size=8).hexdigest()}"
