"""One pass of a retirement: gather what it is about, decide, and make the one change that is due.

The operator and the command line share it. Nothing is kept between passes but the evidence: whoever continues
after a kill finds in the CRD what is done.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from crdkeeper.api.versionretirement import MIGRATED, UNUSED, VersionRetirement
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.definitions import get_definition_object, patch_definition
from crdkeeper.cluster.resources.kinds import (
    OfAnotherRelease,
    create_migration,
    get_migration,
    list_migrations_of,
)
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, may_pass
from crdkeeper.core.migration.evidence import DENIED
from crdkeeper.core.retirement.changes import changed, is_another, pinned
from crdkeeper.core.retirement.evidence import AuditedUses
from crdkeeper.core.retirement.facts import RetirementFacts, State, TakenEvidence, evidence_key
from crdkeeper.core.retirement.migrations import new_migration, wanted_name
from crdkeeper.core.retirement.steps import Decision
from crdkeeper.operations.retirement.evidence import gather_evidence, gather_holds
from crdkeeper.operations.retirement.rights import rights_to_execute
from crdkeeper.operations.rights import rules_in_line

FIELD_MANAGER = "crdkeeper-retirement"
"""A separate one, so that whoever reads managedFields of a CRD sees who changed its versions."""

ReadAudit = Callable[[], Awaitable[AuditedUses]]
"""Says what audit logs have; those that can be read again, as they are when it is called."""

_log = logging.getLogger(__name__)
_CALLING = "failed calling webhook"
"""The API server's words about a webhook whose failurePolicy is Fail."""


async def look(
    client: Client, owner: VersionRetirement, taken: TakenEvidence | None = None, *, rights: bool = True
) -> RetirementFacts:
    """Gather everything but the evidence, which takes long. Raises ApiError or Unreachable.

    `rights` is whether to look for the operator's rights to take the steps, too. What it may not migrate
    must not stop to be served before.
    """
    name = str(owner.spec.resource)
    crd = await get_definition_object(client, name)
    if crd is None:
        return RetirementFacts(None, client.now())
    missing: list[Right] = []
    if rights and owner.spec.mode == "Execute":
        # While it is served, anybody may write at it until the last moment, whatever was counted before.
        served = owner.spec.version in definition_facts(crd).served_versions
        wanted = rights_to_execute(owner.spec.resource, migrates=served)
        missing = await missing_rights(client, wanted)
    return RetirementFacts(
        crd=crd,
        now=client.now(),
        holds=await gather_holds(client, crd, owner.spec.version, owner.status.holds),
        taken=taken,
        migrations=tuple(await list_migrations_of(client, name) or ()),
        missing=tuple(map(str, missing)),
        rules=rules_in_line(missing),
    )


async def count(
    client: Client, owner: VersionRetirement, facts: RetirementFacts, audit: ReadAudit | None = None
) -> TakenEvidence | None:
    """Gather the evidence about the CRD as it is in `facts`; None without a CRD."""
    if facts.crd is None:
        return None
    began = client.now()
    key = evidence_key(definition_facts(facts.crd), facts.migrations)
    audited = await audit() if audit is not None else None
    evidence = await gather_evidence(client, facts.crd, owner.spec.version, audit=audited)
    return TakenEvidence(evidence, began, key, client.now() - began)


async def take_step(
    client: Client, owner: VersionRetirement, facts: RetirementFacts, decision: Decision
) -> RetirementFacts | State:
    """Make the change that is due. Returns the facts right after it, or why it was not made.

    Whoever reports these facts sees later that somebody has taken the step back, however soon. Raises
    ApiError or Unreachable for what another attempt may cure: then it may have been made.
    """
    if facts.crd is None or decision.due is None:
        return facts
    try:
        if decision.due == MIGRATED:
            return await _migrate(client, owner, facts)
        crd = await apply_step(client, facts.crd, owner.spec.version, decision.due)
    except ApiError as error:
        if _may_pass(error):
            raise
        return await _why(client, facts.crd, error)
    return replace(facts, crd=crd, now=client.now())


async def apply_step(client: Client, crd: Mapping[str, Any], version: str, step: str) -> Mapping[str, Any]:
    """Change spec.versions of exactly this CRD, with the spec that was read. Returns the CRD as it is then.

    Raises ApiError; 422 if its spec has changed.
    """
    operations = changed(crd, version, step)
    if not operations:
        return crd
    return await patch_definition(client, crd["metadata"]["name"], pinned(crd, operations), FIELD_MANAGER)


async def _migrate(
    client: Client, owner: VersionRetirement, facts: RetirementFacts
) -> RetirementFacts | State:
    definition = facts.definition
    name = wanted_name(owner, definition, facts.migrations) if definition is not None else None
    if name is not None:
        try:
            await create_migration(client, new_migration(owner, name))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return await _taken(client, owner, name) or facts
        _log.info("VersionRetirement %s: created StorageMigration %s", owner.metadata.name, name)
    return facts


async def _taken(client: Client, owner: VersionRetirement, name: str) -> State | None:
    """Why an existing migration is not the one to create; None if it is, or is gone again."""
    try:
        found = await get_migration(client, name)
    except OfAnotherRelease:
        why = "cannot be read"
    else:
        if found is None or found.spec.resource == owner.spec.resource:
            return None
        why = f"is for {found.spec.resource}"
    return State(
        "False",
        "NameTaken",
        f"StorageMigration {name} {why}, and the retirement needs that name. Delete it.",
    )


def is_outage(error: ApiError | Unreachable) -> bool:
    """Whether the API server does not respond, or cannot at the moment, so that waiting may help."""
    return may_pass(error) and not (isinstance(error, ApiError) and _is_by_webhook(error))


def _may_pass(error: ApiError) -> bool:
    """Whether an error may be gone with the next attempt."""
    lasting = 400 <= error.code < 500 and error.code not in (401, 408, 429)
    return not lasting and not _is_by_webhook(error)


def _is_by_webhook(error: ApiError) -> bool:
    """Whether a webhook refuses, with any code it likes, or cannot be called until a person repairs it."""
    denied = DENIED.search(error.message) is not None
    return denied or (error.code == 500 and _CALLING in error.message)


async def _why(client: Client, crd: Mapping[str, Any], error: ApiError) -> State:
    now = await get_definition_object(client, crd["metadata"]["name"])
    if is_another(crd, now):
        return State("Unknown", "Changing", "Another client changed the CRD in the meantime.")
    return State("False", "Refused", f"The API server refuses the change: {error.message}")


def due_time(decision: Decision, now: datetime) -> float:
    """Seconds until another look, if nothing changes before."""
    if decision.ready.reason == "NotPermitted":
        return _GRANTED_SECONDS
    quiet = decision.steps[UNUSED].reason == "QuietPeriod"
    ends = (decision.settled_at, decision.recount_time, decision.quiet_until if quiet else None)
    # One of them may have come since the decision.
    left = [max(0.0, (each - now).total_seconds()) + _LATE_SECONDS for each in ends if each is not None]
    return min([_LOOK_SECONDS, *left])


_LOOK_SECONDS = 60.0
_GRANTED_SECONDS = 5.0
"""Nothing tells that a right was granted."""
_LATE_SECONDS = 0.05
"""Timers are not exact."""
