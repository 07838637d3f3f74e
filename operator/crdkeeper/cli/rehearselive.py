"""`crdkeeper rehearse` on the cluster: one CRD after the other."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crdkeeper.cli.convertinput import BadInput
from crdkeeper.cli.rehearseinput import Rules
from crdkeeper.cluster.client import Client
from crdkeeper.cluster.connection import Connection
from crdkeeper.cluster.shadow import ShadowFailed
from crdkeeper.cluster.shadowrun import CannotRehearse, Conversions, NotPermitted, rehearse
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
            try:
                reports.append(await rehearse(client, each, _conversions(name, rules), progress))
            except (NotPermitted, CannotRehearse, ShadowFailed, UnreadableDefinition) as error:
                raise BadInput(f"{name}: {error}") from None
    return reports


def _conversions(name: str, rules: Rules) -> Conversions:
    return Conversions(partial(rules.before, name), partial(rules.of, name))
