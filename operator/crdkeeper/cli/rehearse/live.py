"""`crdkeeper rehearse` on the cluster: several CRDs at a time."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.cli.convert.rules import BadInput
from crdkeeper.cli.input.options import DEFAULT_NAMESPACE
from crdkeeper.cli.rehearse.objects import RulePair, WebhookRules
from crdkeeper.cluster.resources.versionconversions import read_bundle, read_conversion
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.bundle import BadBundle, unpacked
from crdkeeper.core.conversion.objects import Conversion
from crdkeeper.core.conversion.target import WebhookAddress, described, serving_address
from crdkeeper.core.rehearsal.report import RehearsalReport
from crdkeeper.operations.rehearsal.proof import ShadowUse
from crdkeeper.operations.rehearsal.run import CannotRehearse, Conversions, rehearse
from crdkeeper.operations.rehearsal.shadow import ShadowFailed, remove_left_shadows
from crdkeeper.operations.rights import TO_ADD, NotPermitted

_AT_ONCE = 8
_CLUSTER = "the cluster's VersionConversion"


@dataclass(frozen=True, slots=True)
class LiveRehearsals:
    """The results for the CRDs of one command."""

    reports: list[RehearsalReport]
    failures: list[BadInput]
    """Why other CRDs could not be rehearsed."""


async def rehearse_all(
    definitions: Sequence[Mapping[str, Any]],
    rules: RulePair,
    use: ShadowUse,
    kubeconfig: Path | None,
    context: str | None,
    progress: Callable[[int], None],
    left: Callable[[str], None] = lambda _: None,
) -> LiveRehearsals:
    """Rehearse all CRDs, a few at a time; a failure of one does not affect the others.

    `left` gets what to do about each shadow that could not be removed, also when this is cancelled.
    Raises Unreachable.
    """
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(client: Client, manifest: Mapping[str, Any]) -> RehearsalReport | BadInput:
        name = manifest["metadata"]["name"]
        async with limit:
            try:
                serving, remark = await _serving(client, name)
                conversions = _conversions(name, rules.completed(name, serving), remark)
                return await rehearse(client, manifest, conversions, progress, use, left)
            except BadInput as error:
                return error
            except NotPermitted as error:
                return BadInput(f"{name}: {error.missing}. {TO_ADD}", *error.rules)
            except (CannotRehearse, ShadowFailed, UnreadableDefinition, ApiError) as error:
                return BadInput(f"{name}: {error}")

    async with Client(Connection(kubeconfig, context)) as client:
        with suppress(ApiError):  # who may not remove shadows has created none
            await remove_left_shadows(client)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(client, each)) for each in definitions]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
    results = [each.result() for each in tasks]
    return LiveRehearsals(
        [each for each in results if isinstance(each, RehearsalReport)],
        [each for each in results if isinstance(each, BadInput)],
    )


async def _serving(client: Client, name: str) -> tuple[WebhookRules, str]:
    """The rules that are served for a CRD, and why they may not be those of its webhook.

    Newer rules that failed a step do not serve: then only the webhook's bundle has those that do.
    """
    try:
        found = await read_conversion(client, name)
    except ApiError as error:
        if error.code != 403:
            raise
        return WebhookRules(), f"the VersionConversion cannot be read: {error}"
    status = (found or {}).get("status") or {}
    served = status.get("servedGeneration")
    if found is None or not served:
        return WebhookRules(), ""
    address, place = serving_address(found), f"{name}: {_CLUSTER}"
    if address == WebhookAddress():
        return WebhookRules(), (
            "the VersionConversion does not say by which webhook its rules are served: the operator or crds/ "
            "are of an older release"
        )
    webhook = described(address.client_config(name))
    elsewhere = f"those of the VersionConversion are served by {webhook}"
    if served == found["metadata"]["generation"]:
        with suppress(ValidationError):
            spec = VersionConversionSpec.model_validate(found["spec"])
            return WebhookRules(spec, place, address), elsewhere
    namespace = address.namespace or DEFAULT_NAMESPACE
    try:
        content = await read_bundle(client, namespace, name)
        if content is None:
            raise BadBundle("it is not there")
        return WebhookRules(unpacked(content).spec, place, address), elsewhere
    except (ApiError, BadBundle) as error:
        return WebhookRules(), (
            f"the newest rules of the VersionConversion are not served, and those that {webhook} serves "
            f"cannot be read from the ConfigMap {namespace}/{name}: {error}"
        )


def _conversions(name: str, rules: RulePair, remark: str) -> Conversions:
    return Conversions(partial(_of_today, rules.old, name), partial(rules.new.compiled, name), remark)


def _of_today(rules: WebhookRules, name: str, live: Mapping[str, Any]) -> Conversion | None:
    """The conversion of the current CRD; None if it is not known. Raises BadInput.

    If the cluster's rules do not fit the CRD, former ones are served: what repairs this must not fail by it.
    """
    try:
        return rules.compiled(name, live)
    except BadInput:
        if rules.address is None:
            raise
        return None
