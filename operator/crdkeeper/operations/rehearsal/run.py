"""A rehearsal on the live cluster: each object is predicted by the engine and judged by the shadow.

Nothing of the user's is written: the CRD and the objects are sent as dry runs only.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.values import Unconvertible
from crdkeeper.core.rehearsal.definition import NONE, CompiledDefinition, compile_definition, version_of
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge, Prediction, between_views
from crdkeeper.core.rehearsal.report import RehearsalReport, doubts, note_unserved
from crdkeeper.core.rehearsal.shadow import GROUP, confirm
from crdkeeper.core.rehearsal.update import applied
from crdkeeper.operations.rehearsal.shadow import Shadow, try_definition
from crdkeeper.operations.rehearsal.source import at_version, pages

Json = Any
AT_ONCE = 16
_ATTEMPTS = 5
_CRDS = "customresourcedefinitions"
_APIEXTENSIONS = "apiextensions.k8s.io"


class NotPermitted(Exception):
    """Our account lacks rights; the text has the rules to add."""


class CannotRehearse(Exception):
    """Something keeps the rehearsal from being made; the text says what."""


@dataclass(frozen=True, slots=True)
class Conversions:
    """The rules by which webhooks convert, of the CRD as it is and as it will be; None where not given."""

    old: Callable[[Mapping[str, Any]], Conversion | None] = lambda _: None
    """Compiles the rules for a CRD."""
    new: Callable[[Mapping[str, Any]], Conversion | None] = lambda _: None


async def rehearse(
    client: Client,
    manifest: Mapping[str, Any],
    conversions: Conversions,
    progress: Callable[[int], None] = lambda _: None,
) -> RehearsalReport:
    """Rehearses a new CRD on what is in the cluster; `progress` is told the objects that are done.

    Raises NotPermitted and CannotRehearse, ShadowFailed, ApiError and Unreachable.
    """
    name = manifest["metadata"]["name"]
    live = await _live(client, manifest)
    report = RehearsalReport(name, by_server=True, is_new=live is None)
    await _check_rights(client, manifest, exists=live is not None)
    try:
        live, accepted = await _tried(client, manifest, live)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        report.rejections = _causes(error)
        return report
    if live is None:
        return report
    new = compile_definition(accepted, conversions.new(accepted))
    old = compile_definition(live, conversions.old(live))
    stored_in = (live.get("status") or {}).get("storedVersions") or [old.storage]
    report.doubts = doubts(old, new, stored_in)
    await _objects(_Run(client, accepted, live, old, new, stored_in, report, progress))
    note_unserved(report, old, new)
    return report


async def _live(client: Client, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """The CRD as it is; None if there is none. Raises ApiError and NotPermitted."""
    try:
        return await get_definition_object(client, manifest["metadata"]["name"])
    except ApiError as error:
        if error.code == 403:
            await _check_rights(client, manifest, exists=True)
        raise


async def _tried(
    client: Client, manifest: Mapping[str, Any], live: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """The CRD as it is, and as the API server would have it. Raises ApiError."""
    for attempt in range(_ATTEMPTS):
        made = manifest if live is None else applied(live, manifest)
        try:
            return live, await try_definition(client, made, exists=live is not None)
        except ApiError as error:
            if error.code not in (404, 409) or attempt == _ATTEMPTS - 1:
                raise
        # Others write it at the same time, as the API server does when it was just created.
        live = await get_definition_object(client, manifest["metadata"]["name"])
    raise AssertionError("unreachable: the last attempt returns or raises")


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

    def endpoint(self, version: str) -> Endpoint:
        return Endpoint(self.old.group, version, self.old.plural)


async def _objects(run: _Run) -> None:
    version = run.old.endpoint
    if version is None:
        raise CannotRehearse(f"no version of {run.old.name} is served: its objects cannot be read")
    judge = Judge(run.old, run.new)
    judged_at = judge.creation_version({"apiVersion": f"{run.new.group}/{version}"})
    if judged_at is None:
        await _walk(run, judge, version, None)
        return
    alone = judged_at if run.new.strategy != NONE else ""
    async with Shadow(run.client, run.accepted, judged_at=alone) as shadow:
        await _walk(run, judge, version, shadow)


async def _walk(run: _Run, judge: Judge, version: str, shadow: Shadow | None) -> None:
    others = [
        each
        for each in run.stored_in
        if each != version and each in run.old.served and _differ(run, each, version)
    ]
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(obj: Json) -> list[Effect] | None:
        async with limit:
            return await _judged(run, judge, obj, others, shadow)

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
        run.progress(run.report.tally.objects)


def _differ(run: _Run, one: str, other: str) -> bool:
    """Whether it matters in which of two versions an object is stored."""
    return any(_schema(document, one) != _schema(document, other) for document in (run.live, run.accepted))


def _schema(document: Mapping[str, Any], version: str) -> Json:
    return next(
        (each.get("schema") for each in document["spec"]["versions"] if each["name"] == version), None
    )


async def _judged(
    run: _Run, judge: Judge, obj: Json, others: Sequence[str], shadow: Shadow | None
) -> list[Effect] | None:
    """The effects on an object; None if it is gone."""
    prediction = judge.predict(obj)
    effects = list(prediction.effects)
    metadata = obj["metadata"]
    for version in others:
        view = await at_version(
            run.client, run.endpoint(version), metadata.get("namespace") or "", metadata["name"]
        )
        if view is None:
            return None
        effects += between_views(prediction, judge.predict(view), version)
    if shadow is not None:
        confirmed = await _confirmed(run, judge, obj, prediction, shadow)
        if confirmed is None:
            return None
        effects += confirmed
    return effects


async def _confirmed(
    run: _Run, judge: Judge, obj: Json, prediction: Prediction, shadow: Shadow
) -> list[Effect] | None:
    with suppress(Unconvertible):
        sent = judge.to_send(obj)
        if sent is not None:
            answer = await shadow.judge(sent)
            return None if answer is None else confirm(prediction, answer, sent, run.new)
    if any(each.kind is EffectKind.UNCONVERTIBLE for each in prediction.effects):
        return []
    reason = "not sent to the API server: no known conversion to the version it would be created at"
    return [Effect(EffectKind.INDETERMINATE, "", version_of(obj), reason, reason)]


async def _check_rights(client: Client, manifest: Mapping[str, Any], *, exists: bool) -> None:
    """Asks for all rights before anything is done. Raises NotPermitted."""
    spec, name = manifest["spec"], manifest["metadata"]["name"]
    needed = [Right("create", _APIEXTENSIONS, _CRDS)]
    if exists:
        group, plural = str(spec.get("group")), str((spec.get("names") or {}).get("plural"))
        needed += [
            *(Right(verb, group, plural) for verb in ("list", "get")),
            Right("update", _APIEXTENSIONS, _CRDS, name=name),
            *(Right(verb, _APIEXTENSIONS, _CRDS) for verb in ("get", "list", "delete")),
            Right("create", GROUP, "*"),
        ]
    missing = [each for each in needed if await missing_rights(client, [each])]
    if missing:
        rules = "\n".join(_rule(each) for each in missing)
        raise NotPermitted(
            f"not permitted: {'; '.join(map(str, missing))}. Add these rules to a ClusterRole of "
            f"this account:\n{rules}"
        )


def _rule(right: Right) -> str:
    lines = [
        f'- apiGroups: ["{right.group}"]',
        f'  resources: ["{right.resource}"]',
        f"  verbs: [{right.verb}]",
    ]
    if right.name:
        lines.insert(2, f"  resourceNames: [{right.name}]")
    return "\n".join(lines)


def _causes(error: ApiError) -> list[str]:
    causes = (error.body.get("details") or {}).get("causes") or ()
    found = [f"{each.get('field', '')}: {each.get('message', '')}" for each in causes]
    return found or [error.message]
