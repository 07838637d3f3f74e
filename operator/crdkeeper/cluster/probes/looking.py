"""Requests of the diagnosis: each has its own time limit, and a refusal is an answer like any other."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import METADATA_ONLY_LIST, Answer, Client, Unreachable
from crdkeeper.cluster.transport.hunglists import hung, would_hang
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.servermessages import without_values

SECONDS = 10.0
"""Less than the 30 seconds that the API server gives a conversion webhook: a slower one is not ready."""

_FOLLOWED = timedelta(seconds=10)
_RETRY_SECONDS = 0.5
_TROUBLES = {
    401: ProbeTrouble.FORBIDDEN,
    403: ProbeTrouble.FORBIDDEN,
    404: ProbeTrouble.NOT_FOUND,
    410: ProbeTrouble.EXPIRED,
    429: ProbeTrouble.BUSY,
    503: ProbeTrouble.BUSY,
    504: ProbeTrouble.BUSY,
}
_AGAIN = frozenset((429, 503))
"""Temporary errors, such as `storage is (re)initializing` after a change of the CRD."""


def failure_of(code: int, message: str) -> Failure:
    """What an HTTP error of the API server means for a diagnosis."""
    return Failure(
        _TROUBLES.get(code, ProbeTrouble.FAILED), code, bounded(without_values(message), LINE_BYTES)
    )


async def look(
    client: Client, path: str, *, accept: str = "application/json", seconds: float | None = None
) -> Answer | Failure:
    """GET once; retry while the server is busy, until the time (by default `SECONDS`) is over."""
    seconds = SECONDS if seconds is None else seconds
    last: Failure | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                answer = await client.send("GET", path, accept=accept)
                if answer.code < 400:
                    return answer
                last = failure_of(answer.code, str(answer.json().get("message") or f"HTTP {answer.code}"))
                if answer.code not in _AGAIN:
                    return last
                await asyncio.sleep(answer.retry_after or _RETRY_SECONDS)
    except TimeoutError:
        return last or silence(seconds)
    except Unreachable as error:
        return Failure(ProbeTrouble.SILENT, 0, bounded(str(error), LINE_BYTES))


def just_changed(client: Client, definition: DefinitionFacts) -> bool:
    """Whether the API server may still serve the CRD as it was before its last change.

    It replaces a CRD's handler when its watch reports the change, some milliseconds after the write.
    """
    changed = definition.changed_at
    return changed is not None and client.now() - changed < _FOLLOWED


def silence(seconds: float) -> Failure:
    """There was no answer in time."""
    return Failure(ProbeTrouble.SILENT, 0, f"no response within {seconds:g} seconds", late=True)


@dataclass(frozen=True, slots=True)
class FirstObject:
    """An object for probes."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


async def first_object(
    client: Client, definition: DefinitionFacts, avoided: Collection[str] = ()
) -> FirstObject | Failure | None:
    """Any object of a CRD, None if there is none; listed at the first served version at which that works.

    The storage version comes first: listing at it usually needs no conversion. At those that are `avoided`
    there is no list, unless no other version is served.
    """
    failure: Failure | None = None
    served = sorted(definition.served_versions, key=lambda each: each != definition.storage_version)
    for version in [each for each in served if each not in avoided] or served:
        endpoint = Endpoint(definition.group, version, definition.plural)
        found = await _first_of(client, endpoint.collection())
        if isinstance(found, Answer):
            return _first(found.json())
        failure = failure or found
        if found.trouble is ProbeTrouble.FORBIDDEN:
            break
    return failure or Failure(ProbeTrouble.NOT_FOUND, 404, f"no version of {definition.name} is served")


async def _first_of(client: Client, collection: str) -> Answer | Failure:
    if said := await would_hang(client, collection):
        return Failure(ProbeTrouble.SILENT, 0, said)
    found = await look(client, f"{collection}?limit=1", accept=METADATA_ONLY_LIST)
    if isinstance(found, Failure) and found.late:
        hung(client, collection, found.message)
    return found


async def has_objects(client: Client, definition: DefinitionFacts) -> bool | None:
    """Whether a CRD has any object; None if that is unknown."""
    found = await first_object(client, definition)
    return None if isinstance(found, Failure) else found is not None


def _first(body: Mapping[str, Any]) -> FirstObject | None:
    for each in body.get("items") or ():
        metadata = each["metadata"]
        return FirstObject(metadata.get("namespace") or "", metadata["name"])
    return None
