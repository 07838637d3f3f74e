"""Gathers the evidence for a retirement. What cannot be read is part of it, with the missing right."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import GROUP
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.api.versionretirement import STEPS, RetirementHold
from crdkeeper.apiserver.definitions.facts import DefinitionFacts, definition_facts
from crdkeeper.cluster.probes.census import Pacer, Walk
from crdkeeper.cluster.probes.versionuse import count_writers, read_beside, read_requests
from crdkeeper.cluster.resources.admissionrules import read_admission_uses
from crdkeeper.cluster.resources.apiservers import list_leases
from crdkeeper.cluster.resources.compositions import list_named_kinds
from crdkeeper.cluster.resources.versionconversions import read_conversion
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.conversionfacts import conversion_webhook
from crdkeeper.core.diagnosis.probes import ProbeTrouble, not_permitted
from crdkeeper.core.retirement.admission import AdmissionUses, hidden_holds
from crdkeeper.core.retirement.evidence import AuditedUses, Evidence, HeldStep, Obstacle
from crdkeeper.core.retirement.holds import (
    MOST_HOLDS,
    composition_holds,
    conversion_holds,
    definition_holds,
    hidden,
    webhook_holds,
)
from crdkeeper.core.retirement.owners import owners
from crdkeeper.core.retirement.unknown import unknown
from crdkeeper.core.retirement.writers import WriterTally

_PAGES_PER_SECOND: Final = 10.0


async def gather_evidence(
    client: Client,
    crd: Mapping[str, Any],
    version: str,
    pacer: Pacer | None = None,
    audit: AuditedUses | None = None,
) -> Evidence:
    """Look at everything that shows who uses a version of a CRD, and what names it.

    `audit` is what audit logs say. Reads the metadata of all objects, a page at a time. Raises ApiError and
    Unreachable if the holds cannot be read, except for a missing right.
    """
    definition = definition_facts(crd)
    walk = await count_writers(client, definition, version, pacer or Pacer(_PAGES_PER_SECOND))
    servers = await _servers(client)
    requests = await read_requests(client, definition, version, servers)
    admission = await read_admission_uses(client, definition, version)
    return Evidence(
        writers=walk.tally.writers(),
        writer_count=walk.tally.writer_count,
        objects=walk.tally.objects,
        counted=walk.tally.counted,
        complete=walk.complete,
        failure=_incomplete(definition, walk),
        newest=walk.tally.newest,
        readers=requests.readers,
        owners=owners(crd),
        holds=await _holds(client, crd, version, admission),
        warnings=tuple(admission.warnings),
        unknown=unknown(
            requests.failure,
            requests.answered,
            servers,
            converts=conversion_webhook(crd) is not None,
            scales=_scales(crd, version),
            hidden=admission.hidden,
            audited=audit is not None,
        ),
        audit=audit,
        forbidden=walk.failure is not None and walk.failure.trouble is ProbeTrouble.FORBIDDEN,
    )


async def gather_holds(
    client: Client, crd: Mapping[str, Any], version: str, before: Sequence[RetirementHold] = ()
) -> tuple[Obstacle, ...]:
    """What in the cluster names the version; `before` is what did by the look before. A few requests.

    There are at most MOST_HOLDS, and as many by admission rules for each step. A missing right holds, too;
    that for admission rules only if some of them did before: the evidence says what is not known without it.
    Raises ApiError and Unreachable: then nothing is known.
    """
    admission = await read_admission_uses(client, definition_facts(crd), version)
    return (*await _holds(client, crd, version, admission), *hidden_holds(before, admission))


async def _holds(
    client: Client, crd: Mapping[str, Any], version: str, admission: AdmissionUses
) -> tuple[Obstacle, ...]:
    definition = definition_facts(crd)
    found = list(definition_holds(crd, version))
    async for each in _named(client, definition, version):
        found.append(each)
        if len(found) >= MOST_HOLDS:
            break
    webhook = conversion_webhook(crd)
    if webhook is not None and len(definition.served_versions) > 1:
        example, reads = await read_beside(client, definition, version)
        found += webhook_holds(str(webhook), reads, example, definition, version)
    # A status shows the first ones: those of the next step.
    return (*found, *sorted(admission.holds, key=lambda each: STEPS.index(each.step)))


async def _named(client: Client, definition: DefinitionFacts, version: str) -> AsyncIterator[Obstacle]:
    try:
        conversion = await read_conversion(client, definition.name)
        for each in conversion_holds(conversion, version):
            yield each
    except ApiError as error:
        yield _permitted(error, (VersionConversion.plural,), "Removed")
    try:
        async for naming in list_named_kinds(client):
            for each in composition_holds((naming,), definition, version):
                yield each
    except ApiError as error:
        yield _permitted(error, (Composition.plural, CompositionRevision.plural), "NotServed")


def _permitted(error: ApiError, plurals: Sequence[str], step: HeldStep) -> Obstacle:
    if error.code != 403:
        raise error
    return hidden(plurals, GROUP, step)


def _incomplete(definition: DefinitionFacts, walk: Walk[WriterTally]) -> str:
    failure = walk.failure
    if walk.complete or failure is None:
        return ""
    if failure.trouble is ProbeTrouble.FORBIDDEN:
        return bounded(not_permitted(definition, failure), LINE_BYTES)
    return bounded(f"The list ended after {walk.tally.counted:,} objects: {failure.message}", LINE_BYTES)


def _scales(crd: Mapping[str, Any], version: str) -> bool:
    """Whether the version has /scale."""
    return any(
        each["name"] == version and (each.get("subresources") or {}).get("scale") is not None
        for each in crd["spec"]["versions"]
    )


async def _servers(client: Client) -> int | None:
    """How many API servers there are; None if that is unknown."""
    try:
        leases = await list_leases(client)
    except (ApiError, Unreachable):
        return None
    now = client.now()
    return None if leases is None else sum(each.expires_at > now for each in leases)
