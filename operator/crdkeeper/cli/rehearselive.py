"""`crdkeeper rehearse` on the cluster: one CRD after the other."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.cli.convertinput import BadInput
from crdkeeper.cli.rehearseinput import Rules
from crdkeeper.cluster.client import ApiError, Client
from crdkeeper.cluster.connection import Connection
from crdkeeper.cluster.shadow import ShadowFailed
from crdkeeper.cluster.shadowrun import CannotRehearse, Conversions, NotPermitted, rehearse
from crdkeeper.cluster.versionconversions import read_conversion
from crdkeeper.core.definition.schemas import UnreadableDefinition
from crdkeeper.core.rehearsal.report import Report


async def rehearse_all(
    definitions: Sequence[Mapping[str, Any]],
    rules: Rules,
    kubeconfig: Path | None,
    context: str | None,
    progress: Callable[[int], None],
) -> list[Report]:
    """The reports of all CRDs. Raises BadInput, ApiError and Unreachable."""
    reports = []
    async with Client(Connection(kubeconfig, context)) as client:
        for each in definitions:
            name = each["metadata"]["name"]
            conversions = _conversions(name, rules.completed(name, await _serving(client, name)))
            try:
                reports.append(await rehearse(client, each, conversions, progress))
            except (NotPermitted, CannotRehearse, ShadowFailed, UnreadableDefinition) as error:
                raise BadInput(f"{name}: {error}") from None
    return reports


async def _serving(client: Client, name: str) -> VersionConversionSpec | None:
    """The rules of the cluster that convert a CRD at present; None if there are none, or none to be seen."""
    try:
        found = await read_conversion(client, name)
    except ApiError as error:
        if error.code == 403:
            return None
        raise
    if found is None or not (found.get("status") or {}).get("servedGeneration"):
        return None
    try:
        return VersionConversionSpec.model_validate(found["spec"])
    except ValidationError:
        return None


def _conversions(name: str, rules: Rules) -> Conversions:
    return Conversions(partial(rules.before, name), partial(rules.of, name))
