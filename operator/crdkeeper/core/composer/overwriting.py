"""Others that change in the CRD what its definition sets: who does it, and when the composer puts it back.

Two programs that force the same field would write the CRD as often as they can, for ever, without an error.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.wording import SHOWN
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.migration.pace import backoff
from crdkeeper.core.text import shortened

_AT_ONCE: Final = 3
"""So often a CRD is put back without a pause: people edit CRDs, too."""
_FIRST_PAUSE: Final = 15.0
_LONGEST_PAUSE: Final = 120.0
_FORGOTTEN: Final = 600.0
"""Seconds without a change after which the next one is the first."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What was applied to a CRD last, and how often in a row it had to be put back since."""

    content: Hashable
    """Differs if the definition does, or what is left out of the CRD for the time being."""
    times: int = 0
    last: float = 0.0
    """When it was put back last, on a monotonic clock in seconds."""
    who: str = ""
    """What was changed, and by whom."""

    def again(self, live: Mapping[str, Any], applied: Mapping[str, Any], now: float) -> "Applied":
        """After the same content was applied, which changed the CRD from `live` to `applied`."""
        times = self.times if now - self.last < _FORGOTTEN else 0
        return replace(self, times=times + 1, last=now, who=overwritten(live, applied))

    def is_paused(self, now: float) -> bool:
        """Whether it is too early to put the CRD back once more."""
        return self.pause(now) > 0.0

    def pause(self, now: float) -> float:
        """Seconds until the CRD may be put back once more."""
        pause = backoff(self.times - _AT_ONCE, _FIRST_PAUSE, _LONGEST_PAUSE)
        return max(0.0, self.last + pause - now) if self.times >= _AT_ONCE else 0.0

    def is_fought(self, now: float) -> bool:
        """Whether the CRD was put back so often, and so lately, that somebody seems to overwrite it."""
        return self.times >= _AT_ONCE and now - self.last < _FORGOTTEN

    def verdict(self) -> Verdict:
        """What to say while there is a pause."""
        return Verdict(
            reasons.OVERWRITTEN,
            f"{self.who} The composer has put it back {self.times:,} times, and does so after a longer pause "
            "each time.",
        )


def overwritten(live: Mapping[str, Any], applied: Mapping[str, Any]) -> str:
    """Which fields `applied` has put back in `live`, and who had changed them, as a sentence."""
    what, who = put_back(live, applied)
    return f"What the definition sets in the CRD ({what}) is changed again and again by {who}."


def put_back(live: Mapping[str, Any], applied: Mapping[str, Any]) -> tuple[str, str]:
    """Which fields `applied` has put back in `live`, and who had changed them, as texts.

    Who changes a field takes it from the manager that had it; an apply by force takes it back.
    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
    """
    before, after = _owned(live), _owned(applied)
    fields = sorted(set[str]().union(*(has - before.get(each, set()) for each, has in after.items())))
    managers = sorted(each for each, had in before.items() if had - after.get(each, set()))
    who = ", ".join(managers[:SHOWN]) or "somebody unknown to metadata.managedFields"
    return shortened(fields, SHOWN) or "metadata", who


def _owned(crd: Mapping[str, Any]) -> dict[str, set[str]]:
    """The fields of each manager, as paths."""
    found: dict[str, set[str]] = {}
    for each in crd["metadata"].get("managedFields") or ():
        if not each.get("subresource"):
            found.setdefault(each.get("manager", ""), set()).update(_leaves(each.get("fieldsV1") or {}))
    return found


def _leaves(fields: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for key, inner in fields.items():
        kind, _, name = key.partition(":")
        # The other kinds are elements of lists.
        below = f"{path}.{name}".lstrip(".") if kind == "f" else f"{path}[{name}]"
        if inner:
            yield from _leaves(inner, below)
        elif name:
            yield below
