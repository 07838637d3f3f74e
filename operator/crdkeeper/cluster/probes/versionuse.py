"""Who uses one version of a CRD: its writers by managedFields, its requests by an API server's metrics."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.cluster.probes.apiservers import advertised_address
from crdkeeper.cluster.probes.census import Pacer, Walk
from crdkeeper.cluster.probes.conversions import read_at_versions
from crdkeeper.cluster.probes.looking import failure_of, silence
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.diagnosis.conversionfacts import VersionRead
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.retirement.evidence import Reader
from crdkeeper.core.retirement.readers import RequestTally
from crdkeeper.core.retirement.writers import WriterTally

_METRICS_SECONDS: Final = 30.0
"""Large clusters have some hundred thousand lines of metrics, and the API server needs seconds for them."""
_AT_MOST: Final = 16
_EACH: Final = 4
"""Connections for each API server: with three, one of them is missed in 1 of 130 looks."""
_PATIENCE: Final = 60.0
"""Seconds for which a page may fail before the walk ends: a restart of an API server takes less."""
_PAUSE: Final = 1.0
"""Seconds after the first attempt at a page; they double with each other one."""
_LONGEST_PAUSE: Final = 16.0


async def count_writers(
    client: Client, definition: DefinitionFacts, version: str, pacer: Pacer
) -> Walk[WriterTally]:
    """Walk over all objects. The walk says whether it is complete, and why not."""
    walk = Walk(definition, lambda: WriterTally(definition.group, version, client.now))
    clock = asyncio.get_running_loop().time
    failed, answered_at = 0, clock()
    while True:
        await pacer.turn()
        ended = await walk.step(client)
        if walk.failure is None:
            failed, answered_at = 0, clock()
            if ended:
                break
        elif _may_pass(walk.failure) and clock() - answered_at < _PATIENCE:
            await asyncio.sleep(backoff(failed, _PAUSE, _LONGEST_PAUSE))
            failed += 1
        else:
            break
    return walk


def _may_pass(failure: Failure) -> bool:
    # The walk itself has begun again after a list that expired.
    return failure.passing and failure.trouble is not ProbeTrouble.EXPIRED


@dataclass(frozen=True, slots=True)
class CountedRequests:
    """The requests at a version that API servers have counted."""

    readers: tuple[Reader, ...] = ()
    """Of each API server that answered, in the order of their answers."""
    failure: Failure | None = None
    """Why not all were asked."""

    @property
    def answered(self) -> int:
        """How many API servers these are at least.

        By when they started: a balancer that chooses for each request shows the address of one with the
        metrics of another.
        """
        return len({each.since for each in self.readers})


async def read_requests(
    client: Client, definition: DefinitionFacts, version: str, servers: int | None
) -> CountedRequests:
    """What the API servers have counted, each asked on a connection of its own.

    A load balancer chooses the server of each connection, so there are more connections than `servers` (None
    if their number is not known), until that many have answered.
    """
    counted, addresses = CountedRequests(), set[str]()
    for _ in range(min(_AT_MOST, _EACH * max(1, servers or 1))):
        if servers is not None and counted.answered >= servers:
            break
        async with Client(client.connection) as one:
            # The metrics of large clusters take seconds; most balancers have led to this server before.
            address = await advertised_address(one)
            if address in addresses and (servers is None or len(addresses) < servers):
                continue
            if address:
                addresses.add(address)
            found = await _requests(one, RequestTally(definition.group, version, definition.plural, address))
        if isinstance(found, Failure):
            return replace(counted, failure=found)
        if found is not None:
            counted = CountedRequests(_with(found, counted.readers))
    return counted


def _with(found: Reader, readers: tuple[Reader, ...]) -> tuple[Reader, ...]:
    """All that answered, each once: one that did not say its address every time, with it."""
    same = [each for each in readers if each.since == found.since]
    if not found.server and same:
        return readers
    replaced = [each for each in same if each.server in ("", found.server)]
    return (*(each for each in readers if each not in replaced), found)


async def _requests(client: Client, tally: RequestTally) -> Reader | Failure | None:
    """What one API server has counted; None if it says nothing."""
    try:
        async with asyncio.timeout(_METRICS_SECONDS):
            async for line in client.lines("/metrics", accept="text/plain"):
                tally.add(line.decode(errors="replace"))
    except ApiError as error:
        return failure_of(error.code, error.message)
    except TimeoutError:
        return silence(_METRICS_SECONDS)
    except Unreachable as error:
        return Failure(ProbeTrouble.SILENT, 0, str(error))
    return tally.reader()


async def read_beside(
    client: Client, definition: DefinitionFacts, version: str
) -> tuple[str, tuple[VersionRead, ...]]:
    """Read an object at the served versions other than this one, whose requests it would only add to."""
    others = replace(
        definition,
        versions=tuple(
            replace(each, served=each.served and each.name != version) for each in definition.versions
        ),
    )
    example, _, reads = await read_at_versions(client, others, others.served_versions)
    return example, reads
