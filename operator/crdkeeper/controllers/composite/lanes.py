"""Lets no tenant's composites take all workers, and slow ones only a few, so that others never wait for them.

An admission webhook can take half a minute for each object of a tenant, who can have many composites.
"""

from collections import OrderedDict
from typing import Final

_EACH: Final = 4
"""Of one tenant at once: nobody knows in advance who will be slow. Fewer than there are workers."""
_SLOW_AT_ONCE: Final = 4
"""Of all slow tenants together."""
_SLOW_EACH: Final = 2
_NEW_AT_ONCE: Final = 8
"""Of all tenants of which nothing has ended yet, and which all may be slow. Half of the workers."""
_MOST_KNOWN: Final = 10_000
_SLOW_SECONDS: Final = 3.0
_MARK_SECONDS: Final = 300.0
"""How long a tenant counts as slow: one composite of many being quick says nothing of the others."""
_NOT_BEGUN: Final = float("inf")


def tenant_of(key: str) -> str:
    """Whose composite it is: its namespace's, of whatever API it is; of a cluster-scoped one, the API's."""
    name, _, place = key.partition("\n")
    return place.partition("\n")[0] or name


class Lanes:
    """Which composites are being worked on, and which wait for that. Times are in the loop's time."""

    def __init__(self) -> None:
        self._running: dict[str, dict[str, float]] = {}
        """By tenant and key: since when."""
        self._waiting: dict[str, dict[str, None]] = {}
        """By tenant, in the order of their turns."""
        self._given: set[str] = set()
        """Keys that got their turn, but have not come yet."""
        self._slow: dict[str, float] = {}
        """By tenant: until when it counts as slow."""
        self._known: OrderedDict[str, None] = OrderedDict()
        """Tenants of which work has ended, those of the last one at the end."""

    def enter(self, tenant: str, key: str, now: float) -> bool:
        """Whether work on a composite may begin now; then `leave` has to follow. Otherwise it waits."""
        if key in self._given:
            self._given.discard(key)
        elif not self._admits(tenant, now, self._full(now)):
            self._waiting.setdefault(tenant, {})[key] = None
            return False
        else:
            self._take(tenant, key)
        self._running.setdefault(tenant, {})[key] = now
        return True

    def leave(self, tenant: str, key: str, now: float) -> list[str]:
        """The work has ended. Returns the keys whose turn it is: each of them has to `enter`."""
        running = self._running[tenant]
        if now - running.pop(key) >= _SLOW_SECONDS:
            self._slow = {name: until for name, until in self._slow.items() if now < until}
            self._slow[tenant] = now + _MARK_SECONDS
        if not running:
            del self._running[tenant]
        self._known[tenant] = None
        self._known.move_to_end(tenant)
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        turns = []
        while (after := self._next(now)) is not None:
            first = next(iter(self._waiting[after]))
            rest = self._take(after, first)
            if rest:
                # Behind the other tenants.
                del self._waiting[after]
                self._waiting[after] = rest
            self._running.setdefault(after, {})[first] = _NOT_BEGUN
            self._given.add(first)
            turns.append(first)
        return turns

    def _next(self, now: float) -> str | None:
        """Whose turn it is after work has ended."""
        full = self._full(now)
        return next((each for each in self._waiting if self._admits(each, now, full)), None)

    def _take(self, tenant: str, key: str) -> dict[str, None]:
        waiting = self._waiting.get(tenant, {})
        waiting.pop(key, None)
        if not waiting:
            self._waiting.pop(tenant, None)
        return waiting

    def _admits(self, tenant: str, now: float, full: tuple[bool, bool]) -> bool:
        own = len(self._running.get(tenant, ()))
        slow_full, new_full = full
        if self._is_slow(tenant, now):
            return own < _SLOW_EACH and not slow_full
        return own < _EACH and (tenant in self._known or not new_full)

    def _full(self, now: float) -> tuple[bool, bool]:
        """Whether those that are slow have all of their places, and those that are new."""
        slow = sum(len(keys) for tenant, keys in self._running.items() if self._is_slow(tenant, now))
        new = sum(len(keys) for tenant, keys in self._running.items() if tenant not in self._known)
        return slow >= _SLOW_AT_ONCE, new >= _NEW_AT_ONCE

    def _is_slow(self, tenant: str, now: float) -> bool:
        """Also by what has not ended yet."""
        if now < self._slow.get(tenant, 0.0):
            return True
        return any(now - began >= _SLOW_SECONDS for began in self._running.get(tenant, {}).values())
