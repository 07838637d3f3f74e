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
from crdkeeper.cli.rehearse.objects import RulePair
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.versionconversions import read_bundle, read_conversion
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.bundle import BadBundle, unpacked
from crdkeeper.core.conversion.target import webhook_namespace
from crdkeeper.core.rehearsal.report import RehearsalReport
from crdkeeper.operations.rehearsal.proof import ShadowUse
from crdkeeper.operations.rehearsal.run import CannotRehearse, Conversions, rehearse
from crdkeeper.operations.rehearsal.shadow import ShadowFailed, remove_left_shadows
from crdkeeper.operations.rights import TO_ADD, NotPermitted

_AT_ONCE = 8


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
) -> LiveRehearsals:
    """Rehearse all CRDs, a few at a time; a failure of one does not affect the others.

    Raises Unreachable.
    """
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(client: Client, manifest: Mapping[str, Any]) -> RehearsalReport | BadInput:
        name = manifest["metadata"]["name"]
        async with limit:
            try:
                conversions = _conversions(name, rules.completed(name, await _serving(client, name)))
                return await rehearse(client, manifest, conversions, progress, use)
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


async def _serving(client: Client, name: str) -> VersionConversionSpec | None:
    """The rules that convert a CRD at present; None if there are none, or none that may be read.

    Newer rules that failed a step do not serve: then only the webhook's bundle has those that do. Raises
    BadInput if that cannot be read.
    """
    try:
        found = await read_conversion(client, name)
    except ApiError as error:
        if error.code == 403:
            return None
        raise
    served = ((found or {}).get("status") or {}).get("servedGeneration")
    if found is None or not served:
        return None
    if served == found["metadata"]["generation"]:
        with suppress(ValidationError):
            return VersionConversionSpec.model_validate(found["spec"])
    namespace = webhook_namespace(await get_definition_object(client, name) or {}) or DEFAULT_NAMESPACE
    try:
        content = await read_bundle(client, namespace, name)
        if content is None:
            raise BadBundle("it is not there")
        return unpacked(content).spec
    except (ApiError, BadBundle) as error:
        raise BadInput(
            f"{name}: its newest rules are not served, and the served rules cannot be read from the "
            f"ConfigMap {namespace}/{name}: {error}"
        ) from None


def _conversions(name: str, rules: RulePair) -> Conversions:
    return Conversions(partial(rules.before, name), partial(rules.of, name))
