"""Lets composites whose objects take long use only some of the workers, so that others never wait for them.

An admission webhook can take half a minute for each object of a tenant, who can have many composites.
"""

from collections import Counter
from typing import Final

_AT_ONCE: Final = 4
"""Fewer than there are workers."""
_SLOW_SECONDS: Final = 3.0


class Lanes:
    """Which tenants' composites took long, and how many of these are being worked on."""

    def __init__(self) -> None:
        self._slow: set[str] = set()
        self._running: Counter[str] = Counter()

    def enter(self, tenant: str) -> bool:
        """Whether work on a composite of this tenant may begin now; `leave` has to follow then."""
        if tenant in self._slow and sum(self._running[each] for each in self._slow) >= _AT_ONCE:
            return False
        self._running[tenant] += 1
        return True

    def leave(self, tenant: str, seconds: float) -> None:
        """The work has ended after so many seconds."""
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        if seconds >= _SLOW_SECONDS:
            self._slow.add(tenant)
        else:
            self._slow.discard(tenant)
