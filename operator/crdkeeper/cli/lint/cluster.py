"""The CRDs of a live cluster for `crdkeeper lint`, with the API server's own conditions."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.cli.input.files import LocatedDefinition
from crdkeeper.cluster.resources.definitions import get_definition_object, list_definition_objects
from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.documents.yamldocument import Document, Position
from crdkeeper.core.lint.conventions.definition import SERVER_CONDITION
from crdkeeper.core.lint.found import AtPath, Found
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.resourcenames import suggest
from crdkeeper.operations.rights import explained, rights_to_read

_API_VERSION, _KIND = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
_GOOD = {
    "NamesAccepted": "True",
    "Established": "True",
    "NonStructuralSchema": "False",
    "Terminating": "False",
    "KubernetesAPIApprovalPolicyConformant": "True",
}
"""The conditions that the API server sets, with the healthy status."""


@dataclass(slots=True)
class Live:
    """What was read; `missing` has the names that do not exist."""

    definitions: list[LocatedDefinition] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


async def gather(connection: Connection, names: Sequence[str], selector: str) -> Live:
    """The CRDs that are named or selected, or all. Raises NotPermitted, ApiError and Unreachable."""
    async with Client(connection) as client, explained(client, rights_to_read(names)):
        if not names:
            return Live([_definition(each) for each in await list_definition_objects(client, selector)])
        wanted = list(dict.fromkeys(names))
        found = await asyncio.gather(*(get_definition_object(client, each) for each in wanted))
        live = Live([_definition(each) for each in found if each is not None])
        absent = [name for name, each in zip(wanted, found, strict=True) if each is None]
        served = await list_resources(client) if absent else ()
        for name in absent:
            meant = suggest(name, served)
            known = meant is not None and await get_definition_object(client, meant) is not None
            live.missing.append(f"no CRD {name}" + (f"; did you mean {meant}?" if known else ""))
        return live


def _definition(value: dict[str, Any]) -> LocatedDefinition:
    # The items of a list omit fields that the list has.
    value.setdefault("apiVersion", _API_VERSION)
    value.setdefault("kind", _KIND)
    return LocatedDefinition("", Document(value, Position(), []), (), value)


def conditions(definition: LocatedDefinition) -> Iterator[Found]:
    """A finding for each unhealthy condition set by the API server."""
    found: Sequence[Mapping[str, Any]] = (definition.value.get("status") or {}).get("conditions") or ()
    at = AtPath(root("status").child("conditions"))
    for each in found:
        type_, status = each.get("type", ""), each.get("status", "")
        if _GOOD.get(type_, status) == status:
            continue
        severity = Severity.WARNING if type_ == "Terminating" else Severity.ERROR
        message = f"{type_}={status} ({each.get('reason', '')}): {each.get('message', '')}"
        yield Found(SERVER_CONDITION, at, (), message, severity)
