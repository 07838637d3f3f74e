"""A report as it should be, and what has changed since it was last written: values to compare."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import orjson

from crdkeeper import __version__
from crdkeeper.api.definitionreport import (
    VERSIONS_COUNTED,
    CountInProgress,
    DefinitionReport,
    DefinitionReportStatus,
    ObjectCensus,
    VersionObjects,
)
from crdkeeper.api.meta import READY, RECONCILING, STALLED, Condition, ConditionStatus, ObjectMeta, summarize
from crdkeeper.api.texts import bounded
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conditions import ready, terminating, versions
from crdkeeper.core.diagnosis.facts import ReportFacts, SeenDefinition
from crdkeeper.core.diagnosis.findings import FindingSummary
from crdkeeper.core.diagnosis.registry import ASSESSED, CONDITIONS, PROBED, REASONS
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

_ORDER = {type_: place for place, type_ in enumerate((*REASONS, RECONCILING, STALLED))}
_CARRIED = PROBED | ASSESSED
_VERSION_CHARACTERS = 63
_COUNTED_AGAIN = timedelta(hours=6)
"""How old a census may become that is still right."""
_GENERATION = 1
"""The generation of every report, which has no spec that could change."""


@dataclass(frozen=True, slots=True)
class ReportedCondition:
    """A condition as it was last reported."""

    status: ConditionStatus
    reason: str
    since: datetime
    generation: int
    """The generation of the CRD for which it was reported."""
    message: str = ""
    """The message, kept only for conditions that take long to determine again."""
    known_before: tuple[ConditionStatus, str] | None = field(default=None, compare=False)
    """Status and reason before it became Unknown. They are not stored: a restarted operator has none."""

    @property
    def last_known(self) -> tuple[ConditionStatus, str] | None:
        """Status and reason as they were last known; None if they were not."""
        return self.known_before if self.status == "Unknown" else (self.status, self.reason)


@dataclass(frozen=True, slots=True)
class StoredReport:
    """A report as stored, reduced to what shows whether it is still right."""

    uid: str
    resource_version: str
    owners: tuple[str, ...]
    """uids of its owners."""
    digest: bytes
    """A digest of the status without findings."""
    findings: FindingSummary
    """The findings, reduced to their counts."""
    findings_digest: bytes
    assessed: str
    """What they were computed from, according to the report."""
    reported: Mapping[str, ReportedCondition]
    census: ObjectCensus | None = None
    counting: CountInProgress | None = None
    """How far a count had got when the report was written."""

    def assessment(self, seen: SeenDefinition) -> Assessment | None:
        """A stand-in for the CRD's assessment, from the stored report; None if that is about another CRD.

        A restarted operator has thousands of CRDs to assess, of which hardly any have changed.
        """
        generation = seen.definition.generation
        reported = all(
            type_ in self.reported and _as_reported(type_, self.reported[type_], generation) is not None
            for type_ in ASSESSED
        )
        if not reported or self.assessed != _mark(seen.revision, self.findings_digest):
            return None
        return Assessment(findings=self.findings, recorded=True)

    def includes(self, found: Mapping[str, Any]) -> bool:
        """Whether it was read from this state of the report or a later one: this one need not be read.

        False if that is unknown.
        """
        one, two = self.resource_version, found["metadata"].get("resourceVersion") or ""
        return int(one) >= int(two) if one.isdecimal() and two.isdecimal() else "" != one == two

    def is_newer_than(self, other: "StoredReport") -> bool:
        """Whether it was read from a later state of the API server; True if that is unknown."""
        one, two = self.resource_version, other.resource_version
        return int(one) > int(two) if one.isdecimal() and two.isdecimal() else one != two


@dataclass(frozen=True, slots=True)
class Transition:
    """A condition that differs from what was last reported, which deserves an Event."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A report as it should be."""

    status: DefinitionReportStatus
    digest: bytes
    findings: FindingSummary
    """The findings, reduced to their counts."""
    findings_digest: bytes
    reported: Mapping[str, ReportedCondition]
    changes: Sequence[Transition]
    reasons: Sequence[Reason]
    recorded: bool
    """Whether the findings are those of the stored report, which are not loaded: compare, never write."""

    def is_as(self, record: StoredReport) -> bool:
        """Whether exactly this is already stored."""
        same_findings = (record.assessed, record.findings_digest) == (
            self.status.assessed,
            self.findings_digest,
        )
        return record.digest == self.digest and (self.recorded or same_findings)

    def stored(self, metadata: ObjectMeta) -> StoredReport:
        """What is on record once it was written.

        The CRD of another release may lack some of its fields; what that one drops is not sent again.
        """
        return replace(
            nothing_stored(metadata),
            digest=self.digest,
            findings=self.findings,
            findings_digest=self.findings_digest,
            assessed=self.status.assessed,
            reported=self.reported,
            census=self.status.census,
            counting=self.status.counting,
        )


def nothing_stored(metadata: ObjectMeta) -> StoredReport:
    """A report of which only the metadata is known: any status differs from it."""
    return StoredReport(
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
        owners=tuple(each.uid for each in metadata.owner_references),
        digest=b"",
        findings=FindingSummary(),
        findings_digest=b"",
        assessed="",
        reported={},
    )


def wanted_report(
    facts: ReportFacts,
    reported: Mapping[str, ReportedCondition],
    pending: Collection[str] = (),
    counted: ObjectCensus | None = None,
    counting: CountInProgress | None = None,
) -> Wanted:
    """The report on a CRD; `reported` has its conditions as last reported, and is empty for a new one.

    A condition in `pending` waits for its first probe. After a restart of the operator it stays as it was
    last reported, if that was for the same generation: that the operator has not probed yet is not news about
    the CRD. `counted` is the census on record, which remains until there is a newer one; `counting` is how
    far a count had got according to the record, which remains until it goes on.
    """
    definition, findings = facts.seen.definition, facts.assessment.findings
    kept = {
        type_: verdict
        for type_ in {*pending, *(ASSESSED if facts.assessment.recorded else ())}
        if type_ in reported
        and (verdict := _as_reported(type_, reported[type_], definition.generation)) is not None
        # Terminating waits for a probe only in a deletion, which leaves the generation as it is.
        and verdict.reason is not terminating.NOT_TERMINATING
    }
    judged = [kept.get(each.type) or each.judge(facts) for each in CONDITIONS]
    verdicts = [ready.summarize(judged, findings), *judged]
    generation = definition.generation
    # metav1.Time has whole seconds: what is kept must equal what is read back. One object for all conditions,
    # of which an operator keeps thousands.
    now = facts.now.replace(microsecond=0)
    reported_now = {each.reason.condition: _tell(each, reported, generation, now) for each in verdicts}
    conditions = [
        Condition(
            type=each.reason.condition,
            status=each.reason.status,
            observed_generation=_GENERATION,
            last_transition_time=reported_now[each.reason.condition].since,
            reason=each.reason.name,
            message=each.message,
        )
        for each in verdicts
    ]
    summarize(conditions, stalled=reported_now[READY].status == "False", now=reported_now[READY].since)
    status = DefinitionReportStatus(
        observed_generation=_GENERATION,
        definition_generation=generation,
        conditions=conditions,
        storage_version=definition.storage_version,
        stored_versions=list(definition.stored_versions),
        findings=findings.shown(),
        finding_counts=findings.counts(),
        census=_census(facts.live.census, counted),
        counting=_counting(facts.live.census, counting if versions.CONDITION.type in pending else None),
    )
    findings_digest = _digest_of_findings(status)
    status.assessed = _mark(facts.seen.revision, findings_digest)
    return Wanted(
        status=status,
        digest=_digest(status),
        findings=replace(findings, packed=b""),
        findings_digest=findings_digest,
        recorded=facts.assessment.recorded,
        reported=reported_now,
        changes=[
            Transition(each.reason, bounded(each.message))
            for each in verdicts
            if _is_news(each.reason, reported.get(each.reason.condition))
        ],
        reasons=[each.reason for each in verdicts],
    )


def on_record(report: DefinitionReport) -> StoredReport:
    """Reduce a report that was read. Conditions that others have added are ignored."""
    status = report.status
    ours = sorted(
        (each for each in status.conditions if each.type in _ORDER), key=lambda each: _ORDER[each.type]
    )
    metadata, counts = report.metadata, status.finding_counts
    times = {each.last_transition_time: each.last_transition_time for each in ours}
    return StoredReport(
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
        owners=tuple(each.uid for each in metadata.owner_references),
        digest=_digest(status.model_copy(update={"conditions": ours})),
        findings=FindingSummary(
            refused=counts.refused,
            errors=counts.errors,
            warnings=counts.warnings,
            notes=counts.notes,
            unchecked=counts.unchecked,
        ),
        findings_digest=_digest_of_findings(status),
        assessed=status.assessed,
        reported={
            each.type: ReportedCondition(
                each.status,
                each.reason,
                times[each.last_transition_time],
                status.definition_generation,
                each.message if each.type in _CARRIED else "",
            )
            for each in ours
        },
        census=status.census,
        counting=status.counting,
    )


_FINDINGS = frozenset(("findings", "finding_counts"))


def _digest(status: DefinitionReportStatus) -> bytes:
    return _digest_of(status.model_dump(mode="json", exclude={*_FINDINGS, "assessed"}))


def _digest_of_findings(status: DefinitionReportStatus) -> bytes:
    return _digest_of(status.model_dump(mode="json", include=set(_FINDINGS)))


def _digest_of(content: Mapping[str, Any]) -> bytes:
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _mark(revision: str, findings: bytes) -> str:
    """Identifies the findings of this revision, found by this version of crdkeeper."""
    return blake2b(f"{__version__} {revision} {findings.hex()}".encode(), digest_size=16).hexdigest()


def _census(found: Census | None, before: ObjectCensus | None) -> ObjectCensus | None:
    if found is None or not found.complete:
        return before
    counts = sorted(found.versions.items(), key=lambda each: (-each[1], each[0]))
    # Whoever writes objects can make managedFields name what was never a version.
    named = [(name, number) for name, number in counts if len(name) <= _VERSION_CHARACTERS]
    made = ObjectCensus(
        # As it is read back.
        taken_at=found.taken_at.replace(microsecond=0),
        objects=found.objects,
        versions=[VersionObjects(version=name, objects=number) for name, number in named[:VERSIONS_COUNTED]],
    )
    # Not a write for each count of a cluster at rest.
    if before is not None and before.is_as(made) and made.taken_at - before.taken_at < _COUNTED_AGAIN:
        return before
    return made


def _counting(found: Census | None, before: CountInProgress | None) -> CountInProgress | None:
    return found.counting if found is not None else before


def report_metadata(definition: DefinitionFacts) -> dict[str, Any]:
    """The metadata to apply to a CRD's report: its name and its owner."""
    return {
        "name": definition.name,
        "ownerReferences": [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "name": definition.name,
                "uid": definition.uid,
            }
        ],
    }


def _as_reported(type_: str, before: ReportedCondition, generation: int) -> Verdict | None:
    known = (each for each in REASONS[type_] if (each.name, each.status) == (before.reason, before.status))
    reason = next(known, None)
    if reason is None or before.generation != generation or not before.message:
        return None
    return Verdict(reason, before.message)


def _tell(
    verdict: Verdict, reported: Mapping[str, ReportedCondition], generation: int, now: datetime
) -> ReportedCondition:
    reason = verdict.reason
    before = reported.get(reason.condition)
    same = before is not None and before.status == reason.status
    since = before.since if before is not None and same else now
    message = bounded(verdict.message) if reason.condition in _CARRIED else ""
    known = before.last_known if before is not None and reason.status == "Unknown" else None
    return ReportedCondition(reason.status, reason.name, since, generation, message, known)


def _is_news(reason: Reason, before: ReportedCondition | None) -> bool:
    """Whether to send an Event: for each problem, and when it is over.

    Ready only summarizes what the other conditions have reported. Unknown is not news: what is known after it
    is compared with what was known before.
    """
    if reason.condition == "Ready" or reason.status == "Unknown":
        return False
    known = before.last_known if before is not None else None
    return not reason.healthy if known is None else known != (reason.status, reason.name)
