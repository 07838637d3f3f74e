"""What the diagnosis of one CRD starts from: facts that others have gathered, and nothing that is large.

CRDs with their schemas run to a megabyte each. What needs the schema is computed once for each revision
(`assessment.py`); what needs requests comes from probes, later or never.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

import orjson

from crdkeeper.api.meta import ConditionStatus
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe, WebhookFacts, conversion_webhook
from crdkeeper.core.diagnosis.deletion import Blockers, Deletion, deletion
from crdkeeper.core.diagnosis.deprecation import DeprecatedVersion, deprecated_versions
from crdkeeper.core.diagnosis.nameconflicts import NameClaims, NameConflict, name_claims
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
    """A CRD as the API server returned it, without its schemas."""

    definition: DefinitionFacts
    claims: NameClaims
    conditions: tuple[ServerCondition, ...]
    """Those that a diagnosis looks at. NonStructuralSchema is not among them: we judge schemas ourselves."""
    revision: str
    """Changes whenever what an assessment reads may have changed: uid, spec, labels or annotations."""
    webhook: WebhookFacts | None
    deprecated: tuple[DeprecatedVersion, ...]
    deletion: Deletion | None
    """None unless it is being deleted."""

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.definition.name

    def condition(self, type_: str) -> ServerCondition | None:
        """The server's condition of that type; None if there is none (yet)."""
        return next((each for each in self.conditions if each.type == type_), None)


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """What probes have found by asking; None where they have not asked yet, or need not."""

    conversion: ConversionProbe | None = None
    scale: ScaleProbe | None = None
    census: Census | None = None
    blockers: Blockers | None = None


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """All that a report is made from."""

    seen: SeenDefinition
    assessment: Assessment
    now: datetime
    """By the API server's clock, for certificates that expire."""
    conflicts: tuple[NameConflict, ...] = ()
    """The names that other CRDs keep this one from having."""
    migrations: tuple[StorageMigration, ...] = ()
    """Those of this CRD's resource."""
    live: LiveFacts = field(default_factory=LiveFacts)


def seen_definition(crd: Mapping[str, Any]) -> SeenDefinition:
    """Reduce a CRD object. Raises KeyError on what is no complete CRD as the API server returns it."""
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
    # The generation changes with spec only; the checks read labels and annotations, too.
    rest = orjson.dumps([annotations, metadata.get("labels")], option=orjson.OPT_SORT_KEYS)
    return f"{definition.uid}/{definition.generation}/{blake2b(rest, digest_size=8).hexdigest()}"
