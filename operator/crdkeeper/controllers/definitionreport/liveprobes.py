"""What reports ask of a cluster, and how often: conversion, /scale, field managers, blocked deletions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crdkeeper.cluster.probes.census import CensusWalk, Pacer, probe_blockers
from crdkeeper.cluster.probes.conversions import probe_conversion
from crdkeeper.cluster.probes.subresources import probe_scale
from crdkeeper.cluster.transport.client import Client
from crdkeeper.controllers.definitionreport.probes import Probe, Subject
from crdkeeper.core.diagnosis.census import Census
from crdkeeper.core.diagnosis.conditions import conversion, subresources, terminating, versions
from crdkeeper.core.diagnosis.conversionfacts import ConversionProbe
from crdkeeper.core.diagnosis.deprecation import needs_census
from crdkeeper.core.diagnosis.probes import ProbeTrouble
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
_CENSUS = 6 * 3600.0
_CENSUS_OF_SEVERAL = 600.0
_SMALL = 1000
"""Up to this many objects are counted often while writers use several versions: they may be migrating."""
_MOST_WALKS = 100
_PAGES = 20
"""Pages of one census before another CRD has its turn."""


def live_probes(client: Client, pacer: Pacer | None = None) -> Sequence[Probe]:
    """All probes of one operator."""
    censuses = _Censuses(client, pacer or Pacer())
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
            about=lambda subject: _revision(subject) if subject.assessment.subresources.scaled else None,
            ask=lambda subject, _: probe_scale(
                client, subject.seen.definition, subject.assessment.subresources
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
    # There is nothing to count before a place to list exists, and the last count is kept at the end.
    usable = subject.seen.definition.established and subject.seen.deletion is None
    return _revision(subject) if wanted and usable else None


def _census_seconds(found: Census) -> float:
    if found.failure is not None:
        return _FORBIDDEN if found.failure.trouble is ProbeTrouble.FORBIDDEN else _RETRY
    if found.renewing or not found.complete:
        return _SOON
    often = len(found.versions) > 1 and found.objects <= _SMALL
    return _CENSUS_OF_SEVERAL if often else _CENSUS


class _Censuses:
    """The censuses in progress. A restarted operator starts them over: nothing depends on them."""

    def __init__(self, client: Client, pacer: Pacer) -> None:
        self._client = client
        self._pacer = pacer
        self._walks: dict[str, tuple[Any, CensusWalk]] = {}

    async def go_on(self, subject: Subject, former: Census | None) -> Census:
        """Count some more pages of the census in progress, or of a new one.

        Until it is complete, the previous census, if any, remains valid.
        """
        definition, about = subject.seen.definition, _revision(subject)
        suspects = tuple(each.name for each in subject.seen.deprecated)
        known, walk = self._walks.get(definition.name, (None, None))
        if walk is None or known != about:
            walk = CensusWalk(definition, suspects)
            self._walks[definition.name] = about, walk
            if len(self._walks) > _MOST_WALKS:
                # The CRD is gone, or the census starts over.
                self._walks.pop(next(iter(self._walks)))
        for _ in range(_PAGES):
            await self._pacer.turn()
            if await walk.step(self._client):
                break
        if walk.complete:
            self._walks.pop(definition.name, None)
            return walk.census(self._client.now())
        lasting = walk.failure is not None and walk.failure.trouble is ProbeTrouble.FORBIDDEN
        if former is None or not former.complete or lasting:
            return walk.census(self._client.now())
        return replace(former, renewing=True)
