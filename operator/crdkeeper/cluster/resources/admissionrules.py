"""Webhook configurations, admission policies and their bindings: those that concern a version of a CRD."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.transport.boundedpages import each_object
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.retirement.admission import PLURALS, REGISTRATION, AdmissionUses, admission_uses

_VERSIONS: Final = ("v1", "v1beta1")
"""Kubernetes before 1.36 has mutating policies at v1beta1."""
_FIRST: Final = 50
_MOST: Final = 500


async def read_admission_uses(client: Client, definition: DefinitionFacts, version: str) -> AdmissionUses:
    """What admission rules show of a version. Kinds that the client may not list are named.

    Raises ApiError, for all but a missing right, and Unreachable.
    """
    found = AdmissionUses()
    for kind, plural in PLURALS.items():
        try:
            async for each in _list(client, plural):
                found.add(admission_uses(kind, each, definition, version))
        except ApiError as error:
            if error.code != 403:
                raise
            found.hidden.append(plural)
    return found


async def _list(client: Client, plural: str) -> AsyncIterator[Mapping[str, Any]]:
    """All objects of a kind; none if the API server does not have it."""
    for version in _VERSIONS:
        try:
            async for each in each_object(client, f"/apis/{REGISTRATION}/{version}/{plural}", _FIRST, _MOST):
                yield each
        except ApiError as error:
            if error.code != 404:
                raise
        else:
            return
