"""When the steps of a VersionConversion are repeated: less and less often while the same stops them."""

from crdkeeper.api.meta import READY, find_condition
from crdkeeper.api.versionconversion import VersionConversion

SOON = 2.0
"""The pause while something is in progress: a certificate, a starting webhook, a lagging API server."""
WAITING = 30.0
"""The longest pause while what is missing is up to others."""
SETTLED = 60.0
"""How often a conversion that serves is checked again."""
_SHARE = 4.0


class GrowingWaits:
    """How long each has been stopped, by what."""

    def __init__(self) -> None:
        self._stopped: dict[str, tuple[tuple[object, ...], float]] = {}
        """By name: the circumstances, and since when they have been the same."""

    def forget(self, name: str) -> None:
        """Nothing stops it any more, or it is gone."""
        self._stopped.pop(name, None)

    def after(self, owner: VersionConversion, bundle: str | None, now: float) -> float:
        """Seconds until the next attempt after one that ended with this status; `bundle` is what is trusted.

        `now` is monotonic time. A person may take days, and a webhook that starts some seconds: the wait is a
        share of the time that it has taken so far.
        """
        name, ready = owner.metadata.name, find_condition(owner.status.conditions, READY)
        if ready is None or ready.status != "False":
            self.forget(name)
            return SETTLED if ready is not None and ready.status == "True" else SOON
        stopped_by = ready.reason, owner.metadata.generation, owner.status.definition_generation, bundle
        before, since = self._stopped.get(name, (stopped_by, now))
        if stopped_by != before:
            since = now
        self._stopped[name] = stopped_by, since
        return min(WAITING, max(SOON, (now - since) / _SHARE))
