"""What reports ask of a cluster, and how often: conversion, /scale, field managers, blocked deletions."""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from crdkeeper.api.definitionreport import CountInProgress
from crdkeeper.cluster.probes.census import (
    CensusWalk,
    Pacer,
    probe_blockers,
    probe_status_writers,
)
from crdkeeper.cluster.probes.conversions import probe_conversion
from crdkeeper.cluster.probes.scaling import list_scalers, probe_scaling
from crdkeeper.cluster.probes.subresources import probe_scale
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionreport.probes import Probe, Subject
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conditions import (
    conversion,
    scaling,
    statuswriters,
    subresources,
    terminating,
    versions,
)
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe
from crdkeeper.core.diagnosis.deprecation import needs_census
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from crdkeeper.core.diagnosis.scalers import Scalers
from crdkeeper.core.diagnosis.scaling import Scaling
from crdkeeper.core.diagnosis.statuswriters import StatusWriters
from crdkeeper.core.diagnosis.subresourcefacts import ScaleProbe

_SOON = 1.0
_AFTER_CHANGE = 5.0
_RETRY = 30.0
"""A broken webhook is probed again soon, so that the report recovers soon after the webhook does."""
_FORBIDDEN = 300.0
"""Permissions seldom change, and without them there is nothing to do for hundreds of CRDs."""
_CONVERSION = 300.0
_DELETION = 5.0
"""While few objects are left; deleting many takes a while anyway."""
_SCALE = 3600.0
_SCALING = 300.0
_SCALING_OF_TROUBLE = 60.0
_LISTED = 0.5
_LISTED_SHARE = 50
"""A list of autoscalers stays valid so many times as long as it took: large ones are made seldom."""
_STATUS = 6 * 3600.0
_STATUS_OF_WRITERS = 600.0
"""While objects show a writer through the main resource: a new release may end it."""
_CENSUS = 6 * 3600.0
_CENSUS_OF_SEVERAL = 600.0
_SMALL = 1000
"""Up to this many objects are counted often while writers use several versions: they may be migrating."""
_MOST_WALKS = 100
_TOLD_SECONDS = 10.0
"""What a kill costs of a count, at most, beside the pages of one turn."""
_OLDEST_COUNT = timedelta(seconds=_CENSUS)
"""A count that began before is not continued: it would be as old as a census that is to be renewed."""
_NO_PROGRESS = 60.0
"""A rewrite whose status has not changed for so long does not run. It is saved every few seconds."""
_PAGES = 20
"""Pages of one census before another CRD has its turn."""


def live_probes(
    client: Client,
    pacer: Pacer | None = None,
    recorded: Callable[[str], CountInProgress | None] = lambda _: None,
    rewritten: Callable[[str, datetime, datetime], bool] = lambda *_: False,
    rewriting: Callable[[str], str] = lambda _: "",
) -> Sequence[Probe]:
    """All probes of one operator.

    `recorded` is how far the count of a CRD's objects had got before a restart; `rewritten`, whether a
    rewrite of them has ended between two times; `rewriting`, what identifies the progress of one at work.
    """
    pacer = pacer or Pacer()
    censuses = _Censuses(client, pacer, recorded, rewritten, _Rewrites(rewriting))
    scalings = _Scalings(client)
    return (
        Probe(
            condition=terminating.CONDITION,
            seconds=lambda found: _DELETION if found.complete or not found.objects else _RETRY,
            about=lambda subject: subject.seen.deletion and subject.seen.definition.uid,
            ask=lambda subject, _: probe_blockers(client, subject.seen.definition),
        ),
        Probe(
            condition=conversion.CONDITION,
            seconds=_conversion_seconds,
            about=lambda subject: subject.seen.webhook and (_revision(subject), subject.seen.webhook),
            ask=lambda subject, _: _conversion(client, subject),
        ),
        Probe(
            condition=subresources.CONDITION,
            seconds=_scale_seconds,
            about=lambda subject: _revision(subject) if subject.assessment.subresources.read else None,
            ask=lambda subject, _: probe_scale(
                client, subject.seen.definition, subject.assessment.subresources
            ),
        ),
        Probe(
            condition=scaling.CONDITION,
            seconds=_scaling_seconds,
            about=_scaling_about,
            ask=scalings.of,
        ),
        Probe(
            condition=statuswriters.CONDITION,
            seconds=_status_seconds,
            about=lambda subject: (
                _revision(subject)
                if subject.assessment.subresources.stateful and _has_objects(subject)
                else None
            ),
            ask=lambda subject, _: probe_status_writers(
                client, subject.seen.definition, subject.assessment.subresources, pacer
            ),
        ),
        Probe(
            condition=versions.CONDITION,
            seconds=_census_seconds,
            about=_census_about,
            ask=censuses.go_on,
        ),
    )


def _revision(subject: Subject) -> tuple[str, int, tuple[str, ...], bool]:
    """Identifies the state of a CRD for probes: storedVersions changes when a migration ends."""
    definition = subject.seen.definition
    return definition.uid, definition.generation, definition.stored_versions, definition.established


async def _conversion(client: Client, subject: Subject) -> ConversionProbe:
    webhook = subject.seen.webhook
    assert webhook is not None
    return await probe_conversion(client, subject.seen.definition, webhook)


def _conversion_seconds(found: ConversionProbe) -> float:
    return _seconds(found, _CONVERSION)


def _scale_seconds(found: ScaleProbe) -> float:
    return _seconds(found, _SCALE)


def _seconds(found: ConversionProbe | ScaleProbe, settled: float) -> float:
    if found.early:
        return _AFTER_CHANGE
    failures = [each for each in (found.failure, *(read.failure for read in found.reads)) if each is not None]
    if any(each.trouble is ProbeTrouble.FORBIDDEN for each in failures):
        return _FORBIDDEN
    return settled if found.reads and not failures else _RETRY


def _census_about(subject: Subject) -> Any:
    wanted = needs_census(subject.seen.definition, subject.seen.deprecated)
    return _revision(subject) if wanted and _has_objects(subject) else None


def _has_objects(subject: Subject) -> bool:
    """There is nothing to count before a place to list exists, and the last count is kept at the end."""
    return subject.seen.definition.established and subject.seen.deletion is None


def _scaling_about(subject: Subject) -> Any:
    # An assessment on record does not say which versions have /scale.
    return _revision(subject) if _has_objects(subject) and not subject.assessment.recorded else None


def _scaling_seconds(found: Scaling) -> float:
    if any(each.failure.trouble is ProbeTrouble.FORBIDDEN for each in found.unseen):
        return _FORBIDDEN
    if found.unseen:
        return _RETRY
    return _SCALING_OF_TROUBLE if found.troubles else _SCALING


def _status_seconds(found: StatusWriters) -> float:
    if found.failure is not None:
        return _FORBIDDEN if found.failure.trouble is ProbeTrouble.FORBIDDEN else _RETRY
    some = found.ignored.objects or found.without.objects or found.before.objects
    return _STATUS_OF_WRITERS if some else _STATUS


def _census_seconds(found: Census) -> float:
    if found.failure is not None:
        return _FORBIDDEN if found.failure.trouble is ProbeTrouble.FORBIDDEN else _RETRY
    if found.held_up:
        return _RETRY
    if found.renewing or not found.complete:
        return _SOON
    often = len(found.versions) > 1 and found.objects <= _SMALL
    return _CENSUS_OF_SEVERAL if often else _CENSUS


class _Censuses:
    """The censuses in progress. A restarted operator continues those of which its reports have a record."""

    def __init__(
        self,
        client: Client,
        pacer: Pacer,
        recorded: Callable[[str], CountInProgress | None],
        rewritten: Callable[[str, datetime, datetime], bool],
        rewrites: "_Rewrites",
    ) -> None:
        self._client = client
        self._pacer = pacer
        self._recorded = recorded
        self._rewritten = rewritten
        self._rewrites = rewrites
        self._walks: dict[str, tuple[Any, CensusWalk]] = {}
        self._asked: set[str] = set()
        """The CRDs whose record was asked for: what it says later is old."""
        self._told: dict[str, tuple[float, Census]] = {}
        """When each walk's progress was last told, and what."""

    async def go_on(self, subject: Subject, former: Census | None) -> Census:
        """Count some more pages of the census in progress, or of a new one.

        Until it is complete, the previous census, if any, remains valid.
        """
        definition, about = subject.seen.definition, _revision(subject)
        suspects = tuple(each.name for each in subject.seen.deprecated)
        name, mark = definition.name, _mark(about, suspects)
        known, walk = self._walks.get(name, (None, None))
        if walk is None or known != about or self._is_outdated(name, walk):
            self._drop(name)
            walk = CensusWalk(definition, suspects, before=self._before(name, mark))
            self._walks[name] = about, walk
            if len(self._walks) > _MOST_WALKS:
                # The CRD is gone, or the census goes on where its record is.
                oldest = next(iter(self._walks))
                self._drop(oldest)
                self._asked.discard(oldest)
        end = asyncio.get_running_loop().time() + _TOLD_SECONDS
        # What is counted before a rewrite ends counts for nothing, and both load the API server.
        for _ in range(0 if self._rewrites.at_work(name) else _PAGES):
            await self._pacer.turn()
            if await walk.step(self._client) or asyncio.get_running_loop().time() >= end:
                break
        if walk.complete:
            found, outdated = walk.census(self._client.now()), self._is_outdated(name, walk)
            self._drop(name)
            if not outdated:
                return found
            # Objects were rewritten after they had been counted.
            under_way = replace(found, complete=False)
        else:
            under_way = self._progress(name, walk, mark)
        lasting = walk.failure is not None and walk.failure.trouble is ProbeTrouble.FORBIDDEN
        if former is None or not former.complete or lasting:
            return under_way
        held_up = walk.failure is not None
        return replace(former, renewing=True, held_up=held_up, counting=under_way.counting)

    def _before(self, name: str, mark: str) -> CountInProgress | None:
        """What a former operator has counted, if that may be continued."""
        before = self._recorded(name) if name not in self._asked else None
        self._asked.add(name)
        if before is None or before.about != mark:
            return None
        now = self._client.now()
        if not now - _OLDEST_COUNT <= before.started_at <= now:
            return None
        return None if self._rewritten(name, before.started_at, now) else before

    def _is_outdated(self, name: str, walk: CensusWalk) -> bool:
        return walk.started is not None and self._rewritten(name, walk.started, self._client.now())

    def _progress(self, name: str, walk: CensusWalk, mark: str) -> Census:
        """How far it has got, told seldom: each time is a write of the report."""
        now = asyncio.get_running_loop().time()
        told, found = self._told.get(name, (float("-inf"), None))
        if found is None or now - told >= _TOLD_SECONDS or found.failure != walk.failure:
            found = replace(walk.census(self._client.now()), counting=walk.progress(mark))
            self._told[name] = now, found
        return found

    def _drop(self, name: str) -> None:
        self._walks.pop(name, None)
        self._told.pop(name, None)


class _Rewrites:
    """Which CRDs' objects are being rewritten."""

    def __init__(self, progress: Callable[[str], str]) -> None:
        self._progress = progress
        self._seen: dict[str, tuple[str, float]] = {}
        """The last progress of each, and when it was new."""

    def at_work(self, name: str) -> bool:
        """Whether a rewrite of a CRD's objects has made progress of late."""
        progress = self._progress(name)
        if not progress:
            self._seen.pop(name, None)
            return False
        now = asyncio.get_running_loop().time()
        known, since = self._seen.get(name, ("", now))
        if progress != known:
            self._seen[name] = progress, now
            return True
        return now - since < _NO_PROGRESS


def _mark(about: Hashable, suspects: tuple[str, ...]) -> str:
    """Identifies what a census is about across restarts."""
    return blake2b(repr((about, suspects)).encode(), digest_size=16).hexdigest()


class _Scalings:
    """Lists autoscalers and budgets once for all CRDs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listing = asyncio.Lock()
        self._scalers = Scalers()
        self._valid_until = float("-inf")

    async def of(self, subject: Subject, former: Scaling | None) -> Scaling:
        """What was found for a CRD."""
        declared = subject.assessment.subresources
        scalers = await self._listed()
        return await probe_scaling(self._client, subject.seen.definition, declared, scalers, former)

    async def _listed(self) -> Scalers:
        loop = asyncio.get_running_loop()
        async with self._listing:
            if loop.time() > self._valid_until:
                began = loop.time()
                self._scalers = await list_scalers(self._client, self._scalers)
                took = loop.time() - began
                self._valid_until = loop.time() + min(max(_LISTED, _LISTED_SHARE * took), _SCALING)
            return self._scalers
