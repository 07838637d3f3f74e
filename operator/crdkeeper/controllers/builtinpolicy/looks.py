"""Looks at the API servers. All policies share them: a look is many requests, and each wants one often."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.cluster.probes.apiservers import ask_all
from crdkeeper.cluster.resources.apiservers import list_leases
from crdkeeper.cluster.resources.builtins import list_builtin_versions
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.builtins.selection import concerns_group
from crdkeeper.core.builtins.view import View, complete, together

_METRICS_SECONDS = 300.0
"""Between two looks at metrics while all API servers were asked and none shows a configuration: a server
needs seconds to gather them."""

Look = Callable[[Collection[str]], Awaitable[View]]
"""Asks the API servers about the resources that some patterns name."""


class SharedLooks:
    """The last view, for as long as it is fresh enough for the policy that asks."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._patterns: frozenset[str] = frozenset()
        self._began = float("-inf")
        self._view: View | None = None
        self._first: dict[str, tuple[int, float]] = {}
        """By policy: its generation, and when that was first seen."""

    async def view(self, policy: BuiltinPolicy, others: Iterable[BuiltinPolicy], max_age: float) -> View:
        """A view no older than `max_age` seconds, nor than the policy's generation.

        It shows what the policy selects; a look is also about what the others do.
        """
        now = asyncio.get_running_loop().time()
        name, generation = policy.metadata.name, policy.metadata.generation
        known = self._first.get(name)
        if known is None or known[0] != generation:
            known = self._first[name] = generation, now
        wanted = frozenset(policy.spec.resources)
        fresh = self._began >= max(known[1], now - max_age)
        if self._view is None or not fresh or not wanted <= self._patterns:
            patterns = wanted.union(*(each.spec.resources for each in others))
            self._view = await self._look(patterns)
            self._patterns, self._began = patterns, now
        return self._view

    def forget(self, name: str) -> None:
        """The policy of that name is gone."""
        self._first.pop(name, None)


def looking(client: Client) -> Look:
    """Asks the API servers themselves; their metrics less often while none of them encrypts."""
    idle: tuple[frozenset[str], float] | None = None
    unencrypted = False

    async def look(patterns: Collection[str]) -> View:
        nonlocal idle, unencrypted
        leases = await list_leases(client)
        versions = [each for each in await list_builtin_versions(client) if concerns_group(patterns, each[0])]
        now = asyncio.get_running_loop().time()
        servers = frozenset(each.name for each in leases or ())
        metrics = idle is None or idle[0] != servers or now - idle[1] >= _METRICS_SECONDS
        answers = await ask_all(client, versions, leases, metrics=metrics)
        view = together(answers, leases, client.now())
        if metrics:
            all_asked = complete(answers, leases, client.now())
            idle = (servers, now) if all_asked and view.configurations == [""] else None
            unencrypted = view.unencrypted
        # Without metrics, a view shows nothing of encryption: that is as it was seen last.
        return replace(view, unencrypted=unencrypted)

    return look
