"""DefinitionReports: one for each CRD, written when something changes and restored when others change it.

Gather the facts, let the core plan the report, apply the difference. Slow facts are gathered elsewhere
(`assessor.py`, `probes.py`), which add the CRD's name to the queue when they are available.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import CountInProgress, DefinitionReport
from crdkeeper.api.meta import ObjectMeta
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.census import Pacer
from crdkeeper.cluster.resources.definitions import get_revision
from crdkeeper.cluster.resources.events import send_event
from crdkeeper.cluster.resources.kinds import (
    REPORTS,
    apply_report,
    list_reports,
    parse_report,
    put_report_status,
)
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.watches import follow
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.definitionreport.assessor import Assessor
from crdkeeper.controllers.definitionreport.liveprobes import live_probes
from crdkeeper.controllers.definitionreport.probes import Probe, Probes, Subject
from crdkeeper.controllers.definitionreport.refusals import Refusals
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.workqueue import WorkQueue
from crdkeeper.core.diagnosis.assessment import Assessment
from crdkeeper.core.diagnosis.conditions.storage import being_rewritten, were_rewritten
from crdkeeper.core.diagnosis.facts import ReportFacts, SeenDefinition
from crdkeeper.core.diagnosis.nameconflicts import NameConflict, find_conflicts
from crdkeeper.core.diagnosis.report import (
    ReportedCondition,
    StoredReport,
    Wanted,
    nothing_stored,
    on_record,
    report_metadata,
    wanted_report,
)
from crdkeeper.core.diagnosis.verdict import Reason
from crdkeeper.core.policy.labels import MIGRATION_LABEL, overruled_label, unknown_label

_GATHERING_SECONDS = 0.1
"""A new CRD's status changes three times in a row."""
_VERIFYING_SECONDS = 0.25


class DefinitionReports:
    """Keeps the reports of all CRDs up to date."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        metrics: OperatorMetrics,
        *,
        identity: str,
        probes: Sequence[Probe] = (),
        watch_labels: bool = False,
    ) -> None:
        self._client = client
        self._state = state
        self._metrics = metrics
        self._identity = identity
        self._watch_labels = watch_labels
        self._policies: dict[str, int] = {}
        """The generation of each policy: a change of its status is no news for reports."""
        self._reported: dict[str, tuple[str, Mapping[str, ReportedCondition]]] = {}
        """For each CRD name, the uid and the conditions that this process last announced."""
        self._counted: dict[str, tuple[Reason, ...]] = {}
        self._being_written: dict[str, tuple[str, Mapping[str, Any]] | None] = {}
        """The reports that are being written, with the last event of each: mostly, it shows that write."""
        self._groups: dict[str, set[str]] = {}
        self._wanting: dict[str, set[str]] = {}
        """By group, the CRDs of which the API server refuses a name."""
        self._unverified: dict[str, None] = {}
        self._loaded = asyncio.Event()
        self._queue = WorkQueue(self._reconcile, workers=8)
        self._refusals = Refusals(self._queue.add)
        self._assessor = Assessor(client, self._queue.add)
        self._probes = Probes(probes, self._subject, self._queue.add, self._assessor.is_crowded)
        state.listen(self._saw)
        state.read_definitions(self._saw_content)

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for each in (self._follow, self._work, self._verify):
                    group.create_task(each())
                for queue in (self._assessor.queue, self._probes.queue):
                    group.create_task(queue.run())
        finally:
            self._assessor.close()

    async def _follow(self) -> None:
        """Load the existing reports: without them, each would be considered missing and written again."""

        async def saw(type_: str, found: Mapping[str, Any]) -> None:
            name = found["metadata"]["name"]
            if name in self._being_written:
                self._being_written[name] = type_, found
            else:
                self._saw_report(type_, found)

        await follow(self._client, REPORTS, self._load, saw)

    def _saw_report(self, type_: str, found: Mapping[str, Any]) -> None:
        name = found["metadata"]["name"]
        known = self._state.reports.get(name)
        if type_ != "DELETED" and known is not None and known.includes(found):
            return  # mostly our own write, whose answer was read already
        record = on_record(parse_report(found)) if type_ != "DELETED" else None
        self._state.saw_report(name, record)

    async def _load(self) -> str:
        gone = set(self._state.reports)

        def take(report: DefinitionReport) -> None:
            gone.discard(report.metadata.name)
            self._state.saw_report(report.metadata.name, on_record(report))

        version = await list_reports(self._client, take)
        for name in gone:
            self._state.saw_report(name, None)
        self._loaded.set()
        return version

    async def _work(self) -> None:
        await self._loaded.wait()
        await self._queue.run()

    # What changed, and which CRDs it affects

    def _saw(self, kind: str, name: str) -> None:
        if kind == "definitions":
            self._saw_definition(name)
        elif kind in ("migrated", "reports") and name in self._state.seen:
            self._queue.add_within(name, _GATHERING_SECONDS)
        elif kind == DefinitionPolicy.plural and self._watch_labels:
            self._saw_policy(name)

    def _saw_policy(self, name: str) -> None:
        """A policy may overrule labels now, or no longer."""
        policy = self._state.of(DefinitionPolicy).get(name)
        now = policy.metadata.generation if policy is not None else None
        before = self._policies.pop(name, None)
        if now is not None:
            self._policies[name] = now
        if now == before:
            return
        for each in self._state.seen.values():
            if MIGRATION_LABEL in each.definition.labels:
                self._queue.add_within(each.name, _GATHERING_SECONDS)

    def _saw_content(self, seen: SeenDefinition, crd: Mapping[str, Any]) -> None:
        # Before the reports are known, that of nearly each CRD may turn out to be on record.
        if self._loaded.is_set() and self._assessor.known(seen) is None and self._recorded(seen) is None:
            self._assessor.saw(seen, crd)

    def _saw_definition(self, name: str) -> None:
        seen = self._state.seen.get(name)
        group = name.partition(".")[2]
        _mark(self._groups, group, name, seen is not None)
        _mark(self._wanting, group, name, _wants_names(seen))
        if seen is None:
            self._forget(name)
        else:
            self._queue.add_within(name, _GATHERING_SECONDS)
        # The change may have freed a name that other CRDs wait for.
        for each in self._wanting.get(group, ()):
            if each != name:
                self._queue.add_within(each, _GATHERING_SECONDS)

    def _forget(self, name: str) -> None:
        self._reported.pop(name, None)
        self._unverified.pop(name, None)
        self._assessor.forget(name)
        self._probes.forget(name)
        self._refusals.forget(name)
        self._count(name, None)

    # Gather, plan, apply

    def _subject(self, name: str) -> Subject | None:
        """A CRD with its assessment, or what is recorded of it; None while it is being assessed."""
        seen = self._state.seen.get(name)
        if seen is None:
            return None
        assessment = self._assessor.known(seen)
        if assessment is None:
            assessment = self._recorded(seen)
            if assessment is None:
                self._assessor.order(name)
                return None
            self._unverified[name] = None
        self._assessor.needless(name)
        return Subject(seen, assessment)

    def _recorded(self, seen: SeenDefinition) -> Assessment | None:
        record = self._state.reports.get(seen.name)
        return record.assessment(seen) if record is not None else None

    async def _verify(self) -> None:
        """Delete or restores reports that do not match what is known."""
        while True:
            await asyncio.sleep(_VERIFYING_SECONDS)
            if self._unverified:
                name = next(iter(self._unverified))
                del self._unverified[name]
                self._assessor.verify(name)

    async def _reconcile(self, name: str) -> None:
        subject = self._subject(name)
        if subject is None:
            if name not in self._state.seen:
                # It may have been deleted while it was being assessed.
                self._assessor.forget(name)
            return
        seen = subject.seen
        pending = self._probes.pending(name, subject)
        facts = ReportFacts(
            seen=seen,
            assessment=subject.assessment,
            now=self._client.now(),
            conflicts=self._conflicts(seen),
            migrations=self._state.migrations_of(name),
            live=self._probes.live(name, subject),
            unknown_label=unknown_label(seen.definition) if self._watch_labels else "",
            overruled_label=self._overruled(seen.definition),
        )
        record = self._state.reports.get(name)
        owned = record is not None and seen.definition.uid in record.owners
        counted = record.census if record is not None and owned else None
        counting = record.counting if record is not None and owned else None
        wanted = wanted_report(facts, self._last_reported(seen, record), pending, counted, counting)
        self._count(name, wanted)
        if wanted.recorded and not (record is not None and wanted.is_as(record)):
            self._assessor.order(name)
            return
        if name in self._refusals:
            return
        self._being_written[name] = None
        try:
            await self._apply(seen.definition, wanted, record)
        except ApiError as error:
            if error.code != 403:
                raise
            self._refusals.refused(name, error)
        else:
            self._refusals.written(name)
        finally:
            event = self._being_written.pop(name)
            if event is not None:
                self._saw_report(*event)

    def _last_reported(
        self, seen: SeenDefinition, record: StoredReport | None
    ) -> Mapping[str, ReportedCondition]:
        uid, reported = self._reported.get(seen.name, ("", {}))
        if uid == seen.definition.uid:
            return reported
        owned = record is not None and seen.definition.uid in record.owners
        return record.reported if record is not None and owned else {}

    def _overruled(self, definition: DefinitionFacts) -> str:
        if not self._watch_labels:
            return ""
        return overruled_label(self._state.of(DefinitionPolicy).values(), definition)

    def _conflicts(self, seen: SeenDefinition) -> tuple[NameConflict, ...]:
        if not _wants_names(seen):
            return ()
        peers = (self._state.seen.get(each) for each in self._groups.get(seen.definition.group, ()))
        return find_conflicts(seen.claims, [each.claims for each in peers if each is not None])

    async def _apply(self, definition: DefinitionFacts, wanted: Wanted, record: StoredReport | None) -> None:
        name, uid = definition.name, definition.uid
        if record is None or uid not in record.owners:
            if name in self._reported and await get_revision(self._client, name) is None:
                return  # its report was deleted with it, and the CRD's event is on its way
            record = nothing_stored(await apply_report(self._client, report_metadata(definition)))
            self._state.reports[name] = record
            if wanted.recorded:
                self._assessor.order(name)  # the findings are not at hand, and perhaps no longer on record
                return
        changed = not wanted.is_as(record)
        report = DefinitionReport(metadata=ObjectMeta(name=name, uid=record.uid), status=wanted.status)
        if changed:
            try:
                record = wanted.stored(await put_report_status(self._client, report))
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
                # Deleted, and perhaps re-created: start over.
                self._state.reports.pop(name, None)
                self._queue.add_within(name, _GATHERING_SECONDS)
                return
        if name in self._state.seen:
            self._reported[name] = uid, wanted.reported
        known = self._state.reports.get(name)
        # Changed or deleted in the meantime; then the name is in the queue again.
        if known is not None and not known.is_newer_than(record):
            # Keep one copy of what was announced: ten conditions for each of thousands of CRDs.
            self._state.reports[name] = replace(record, reported=wanted.reported)
        if changed:
            await self._announce(report, wanted)

    async def _announce(self, report: DefinitionReport, wanted: Wanted) -> None:
        for change in wanted.changes:
            await send_event(
                self._client,
                report,
                "Normal" if change.reason.healthy else "Warning",
                change.reason.name,
                f"{change.reason.condition}: {change.message}",
                instance=self._identity,
            )

    def _count(self, name: str, wanted: Wanted | None) -> None:
        """Update the metrics: how many CRDs are in which status of which condition."""
        before = self._counted.pop(name, ())
        now = tuple(wanted.reasons) if wanted is not None else ()
        if now:
            self._counted[name] = now
        if now == before:
            return
        for each in before:
            self._metrics.conditions.labels(each.condition, each.status, each.name).dec()
        for each in now:
            self._metrics.conditions.labels(each.condition, each.status, each.name).inc()


def _mark(names: dict[str, set[str]], group: str, name: str, is_one: bool) -> None:
    """Keep whether a CRD of a group is one of those."""
    if is_one:
        names.setdefault(group, set()).add(name)
    elif name in names.get(group, ()):
        names[group].discard(name)
        if not names[group]:
            del names[group]


def _wants_names(seen: SeenDefinition | None) -> bool:
    """Whether the API server refuses one of the CRD's names."""
    if seen is None:
        return False
    condition = seen.condition("NamesAccepted")
    return condition is not None and condition.status == "False"


def _recorded_count(state: ClusterState, name: str) -> CountInProgress | None:
    record = state.reports.get(name)
    return record.counting if record is not None else None


def _were_rewritten(state: ClusterState, name: str, since: datetime, now: datetime) -> bool:
    return were_rewritten(state.migrations_of(name), since, now)


def _being_rewritten(state: ClusterState, name: str) -> str:
    return being_rewritten(state.migrations_of(name))


def begin_reports(context: Context) -> Coroutine[Any, Any, None]:
    """The task of the DefinitionReport controller."""
    reports = DefinitionReports(
        context.client,
        context.state,
        context.metrics,
        identity=context.identity,
        probes=live_probes(
            context.client,
            Pacer(context.pages_per_second),
            partial(_recorded_count, context.state),
            partial(_were_rewritten, context.state),
            partial(_being_rewritten, context.state),
        ),
        watch_labels=context.watch_labels,
    )
    return reports.run()
