"""A rehearsal on the live cluster: the engine predicts, and a shadow of the CRD decides uncertain cases.

Nothing of the user's is written: the CRD and the objects are sent only as dry runs.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crdkeeper.cluster.resources.access import Right
from crdkeeper.cluster.resources.definitions import get_definition_object, get_revision
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.changes.guarding import ALLOW_CHANGE
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.rehearsal.definition import CompiledDefinition, compile_definition
from crdkeeper.core.rehearsal.effect import Effect
from crdkeeper.core.rehearsal.judgement import Judge, between_views
from crdkeeper.core.rehearsal.report import (
    RehearsalReport,
    doubts,
    note_apply,
    note_conversion,
    note_unserved,
)
from crdkeeper.core.rehearsal.update import applied
from crdkeeper.operations.rehearsal.proof import Proof, ShadowUse
from crdkeeper.operations.rehearsal.rights import rights_for_a_shadow, rights_to_try
from crdkeeper.operations.rehearsal.shadow import try_definition
from crdkeeper.operations.rehearsal.source import at_version, pages
from crdkeeper.operations.rights import check_rights

Json = Any
AT_ONCE = 16
_ATTEMPTS = 5


class CannotRehearse(Exception):
    """Something prevents the rehearsal; the text says what."""


@dataclass(frozen=True, slots=True)
class Conversions:
    """The rules by which webhooks convert, for the current and the new CRD; None if not given."""

    old: Callable[[Mapping[str, Any]], Conversion | None] = lambda _: None
    """Compiles the rules for a CRD."""
    new: Callable[[Mapping[str, Any]], Conversion | None] = lambda _: None
    remark: str = ""
    """Why rules that the cluster has are not among them, if the new CRD's webhook has none."""


async def rehearse(
    client: Client,
    manifest: Mapping[str, Any],
    conversions: Conversions,
    progress: Callable[[int], None] = lambda _: None,
    use: ShadowUse = ShadowUse.AUTO,
    left: Callable[[str], None] = lambda _: None,
) -> RehearsalReport:
    """Rehearse a new CRD with the objects in the cluster; `progress` gets the count of each finished page.

    `left` gets what to do if a shadow could not be removed, also when this is cancelled or ends otherwise.
    Raises NotPermitted and CannotRehearse, ShadowFailed, ApiError and Unreachable.
    """
    name = manifest["metadata"]["name"]
    live = await _live(client, manifest, use)
    report = RehearsalReport(name)
    await check_rights(client, _needed(manifest, use, exists=live is not None))
    try:
        live, accepted = await _tried(client, manifest, live)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        report.rejections = _causes(error)
        return report
    if live is None:
        report.is_new = True
        return report
    old = compile_definition(live, conversions.old(live))
    new = compile_definition(accepted, conversions.new(accepted), old)
    stored_in = (live.get("status") or {}).get("storedVersions") or [old.storage]
    report.doubts = doubts(old, new, stored_in, conversions.remark)
    try:
        await _objects(_Run(client, accepted, live, old, new, stored_in, report, progress, use, left))
    except ApiError as error:
        if error.code == 404:
            await _check_still_there(client, live)
        raise
    if not await _check_still_there(client, live):
        report.doubts.append("the CRD was changed in the meantime: rehearse again")
    note_unserved(report, old, new)
    note_conversion(report, old, new, stored_in)
    note_apply(report)
    return report


async def _check_still_there(client: Client, live: Mapping[str, Any]) -> bool:
    """Whether the CRD is unchanged. Raises CannotRehearse if it is gone, ApiError and Unreachable."""
    metadata = live["metadata"]
    found = await get_revision(client, metadata["name"])
    if found is None or found[0] != metadata["uid"]:
        raise CannotRehearse("the CRD was deleted in the meantime")
    return bool(found[1] == metadata["generation"])


async def _live(client: Client, manifest: Mapping[str, Any], use: ShadowUse) -> dict[str, Any] | None:
    """The current CRD; None if there is none. Raises ApiError and NotPermitted."""
    try:
        return await get_definition_object(client, manifest["metadata"]["name"])
    except ApiError as error:
        if error.code == 403:
            await check_rights(client, _needed(manifest, use, exists=True))
        raise


def _needed(manifest: Mapping[str, Any], use: ShadowUse, *, exists: bool) -> list[Right]:
    needed = rights_to_try(manifest, exists=exists)
    if exists and use is ShadowUse.ALWAYS:
        needed += rights_for_a_shadow()
    return list(dict.fromkeys(needed))


async def _tried(
    client: Client, manifest: Mapping[str, Any], live: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The current CRD, and the new one as the API server would store it. Raises ApiError."""
    for attempt in range(_ATTEMPTS):
        made = manifest if live is None else applied(live, manifest)
        try:
            return live, await _dry_run(client, made, exists=live is not None)
        except ApiError as error:
            if error.code not in (404, 409) or attempt == _ATTEMPTS - 1:
                raise
        # Others write it at the same time, like the API server when it was just created.
        live = await get_definition_object(client, manifest["metadata"]["name"])
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _dry_run(client: Client, made: Mapping[str, Any], *, exists: bool) -> dict[str, Any]:
    """The CRD as the API server would store it. Raises ApiError.

    A DefinitionPolicy with `changes: Deny` refuses dry runs, too, of just those changes that are worth a
    rehearsal. If the first one is refused, another one says that the change is allowed.
    """
    try:
        return await try_definition(client, made, exists=exists)
    except ApiError as error:
        annotations = made["metadata"].get("annotations") or {}
        if error.code != 403 or not exists or ALLOW_CHANGE in annotations:
            raise
        allowed = {**annotations, ALLOW_CHANGE: "a dry run by crdkeeper rehearse"}
        metadata = {**made["metadata"], "annotations": allowed}
        try:
            return await try_definition(client, {**made, "metadata": metadata}, exists=exists)
        except ApiError as second:
            raise (second if second.code in (404, 409) else error) from None


@dataclass(slots=True)
class _Run:
    client: Client
    accepted: Mapping[str, Any]
    live: Mapping[str, Any]
    old: CompiledDefinition
    new: CompiledDefinition
    stored_in: Sequence[str]
    report: RehearsalReport
    progress: Callable[[int], None]
    use: ShadowUse
    left: Callable[[str], None]

    def endpoint(self, version: str) -> Endpoint:
        return Endpoint(self.old.group, version, self.old.plural)


async def _objects(run: _Run) -> None:
    version = run.old.endpoint
    if version is None:
        raise CannotRehearse(f"no version of {run.old.name} is served: its objects cannot be read")
    judge = Judge(run.old, run.new)
    async with Proof(run.client, run.accepted, judge, version, run.use, run.left) as proof:
        await _walk(run, judge, version, proof)
        run.report.by_server = proof.asked
        if proof.denied:
            run.report.doubts.append(
                f"the engine is not certain, and the API server was not asked: {proof.denied}"
            )


async def _walk(run: _Run, judge: Judge, version: str, proof: Proof) -> None:
    others = [
        each
        for each in run.stored_in
        if each != version and each in run.old.served and _differ(run, each, version)
    ]
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(obj: Json) -> list[Effect] | None:
        async with limit:
            return await _judged(run, judge, obj, others, proof)

    async for items in pages(run.client, run.endpoint(version)):
        try:
            async with asyncio.TaskGroup() as group:
                judged = [group.create_task(one(each)) for each in items]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        for obj, task in zip(items, judged, strict=True):
            effects, metadata = task.result(), obj["metadata"]
            if effects is None:
                run.report.gone += 1
            else:
                run.report.tally.add(metadata.get("namespace") or "", metadata["name"], effects)
        run.progress(len(items))


def _differ(run: _Run, one: str, other: str) -> bool:
    """Whether it matters in which of two versions an object is stored."""
    return any(_schema(document, one) != _schema(document, other) for document in (run.live, run.accepted))


def _schema(document: Mapping[str, Any], version: str) -> Json:
    return next(
        (each.get("schema") for each in document["spec"]["versions"] if each["name"] == version), None
    )


async def _judged(
    run: _Run, judge: Judge, obj: Json, others: Sequence[str], proof: Proof
) -> list[Effect] | None:
    """The effects on an object; None if it is gone."""
    prediction = judge.predict(obj)
    found = await proof.of(obj, prediction)
    if found is None:
        return None
    effects, metadata = list(found), obj["metadata"]
    for version in others:
        view = await at_version(
            run.client, run.endpoint(version), metadata.get("namespace") or "", metadata["name"]
        )
        if view is None:
            return None
        effects += between_views(prediction, judge.predict(view), version)
    return effects


def _causes(error: ApiError) -> list[str]:
    causes = (error.body.get("details") or {}).get("causes") or ()
    found = [f"{each.get('field', '')}: {each.get('message', '')}" for each in causes]
    return found or [error.message]
