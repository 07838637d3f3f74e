"""Which policies judge a change of a CRD, and how strictly."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import GROUP
from crdkeeper.core.changes.review import ChangeRequest
from crdkeeper.core.policy.selection import guarding, selects_labelled

ALLOW_CHANGE: Final = f"{GROUP}/allow-change"
"""The annotation of a CRD with the reason why no policy refuses its changes."""


@dataclass(frozen=True, slots=True)
class GuardingPolicy:
    """The strictest policy for a change."""

    policy: str
    denies: bool
    """Whether it refuses a change that harms live objects."""
    allowed: str
    """Why it does not: the value of the CRD's annotation; empty without."""


def guard_of(policies: Iterable[DefinitionPolicy], request: ChangeRequest) -> GuardingPolicy | None:
    """Who judges that change; None if nobody does. crdkeeper itself can be upgraded at any time."""
    if request.group == GROUP:
        return None
    selecting = [each for each in guarding(policies) if selects_labelled(each, request.group, request.labels)]
    strictest = min(selecting, key=lambda each: each.spec.changes != "Deny", default=None)
    if strictest is None:
        return None
    denies = strictest.spec.changes == "Deny"
    reason = request.annotation(ALLOW_CHANGE) if denies else ""
    return GuardingPolicy(strictest.metadata.name, denies and not reason, reason)
