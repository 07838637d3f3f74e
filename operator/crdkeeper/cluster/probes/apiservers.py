"""Asks all API servers how they store built-in resources, each on a connection of its own.

A load balancer chooses the server of each connection. So there are more connections than servers, until what
they answer shows that each one was asked.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.cluster.resources.builtins import discover_stored
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.core.builtins.view import (
    FORBIDDEN,
    EncryptedBy,
    ServerAnswer,
    complete,
    configuration_in,
    is_behind,
)
from crdkeeper.core.migration.observation import ApiServerLease

_AT_MOST = 16
_EACH = 4
"""Connections for each API server that holds a Lease: with three, one of them is missed in 1 of 130 looks."""

_METRICS_SECONDS = 30.0
"""For the metrics of one API server, which needs seconds to gather them."""
_NO_ENCRYPTION = EncryptedBy("", "")
_METRIC_SINCE = (1, 36)
"""A release in which API servers are known to have METRIC."""


async def ask_all(
    client: Client,
    versions: Sequence[tuple[str, str]],
    leases: Sequence[ApiServerLease] | None,
    *,
    metrics: bool = True,
) -> list[ServerAnswer]:
    """The answers of the API servers that hold these Leases, some of them perhaps several times.

    Without `metrics` these are not read: no server is said to encrypt, nor is it certain that none does.
    Raises ApiError or Unreachable.
    """
    answers: list[ServerAnswer] = []
    most = _AT_MOST if leases is None else min(_AT_MOST, _EACH * max(1, len(leases)))
    while len(answers) < most and not complete(answers, leases, client.now()):
        async with Client(client.connection) as one:
            stored = await discover_stored(one, versions)
            address, has_metric = await advertised_address(one), metrics and await _has_metric(one)
            # If one configuration is not known, the others' are of no use. Metrics come last: when enough of
            # them is read the connection ends, and the next one may lead to another API server.
            unread = answers[-1].unread if answers else ""
            found = unread or (await _configuration(one) if metrics else _NO_ENCRYPTION)
            known, why = (None, found) if isinstance(found, str) else (found, "")
            answers.append(ServerAnswer(stored, known, why, address, has_metric))
    return answers


async def advertised_address(client: Client) -> str:
    """The address that the API server advertises; empty if it says none. It is its own at its default."""
    said = await _said(client, "/api")
    match said.get("serverAddressByClientCIDRs"):
        case [{"serverAddress": str(address)}, *_]:
            return address
    return ""


async def _has_metric(client: Client) -> bool:
    said = await _said(client, "/version")
    match = re.fullmatch(r"v(\d{1,3})\.(\d{1,3})\..{1,100}", str(said.get("gitVersion")))
    return match is not None and (int(match[1]), int(match[2])) >= _METRIC_SINCE


async def _said(client: Client, path: str) -> Mapping[str, Any]:
    """Its answer; empty if it gives none, which is less to know, and no reason to stop."""
    try:
        return await client.request("GET", path)
    except (ApiError, Unreachable):
        return {}


async def _configuration(client: Client) -> EncryptedBy | str:
    """Its encryption configuration, or why its metrics cannot be read: storage versions need none."""
    try:
        async with asyncio.timeout(_METRICS_SECONDS):
            return await _configuration_shown(client)
    except ApiError as error:
        return FORBIDDEN if error.code == 403 else f"{error.code} {error.message}"
    except Unreachable as error:
        return str(error)
    except TimeoutError:
        return f"no end in {_METRICS_SECONDS:.0f} s"


async def _configuration_shown(client: Client) -> EncryptedBy:
    async for raw in client.lines("/metrics", accept="text/plain"):
        line = raw.decode(errors="replace")
        if (found := configuration_in(line)) is not None:
            return found
        if is_behind(line):
            break
    return _NO_ENCRYPTION
