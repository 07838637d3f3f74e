"""When the composer looks at a definition again, if no event comes before."""

from typing import Final

from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.plan import ComposerStep, Gathered, Plan

AGAIN_SECONDS: Final = 2.0
"""Until composites are counted again, while something waits for their end."""
REFUSED_SECONDS: Final = 15.0
RIGHTS_SECONDS: Final = 5.0
_RECOUNT_SECONDS: Final = 300.0
"""In case that an event was missed."""


def may_go_soon(gathered: Gathered) -> bool:
    """Whether the CRD is being deleted, and nobody can say yet what holds its composites.

    The API server deletes them a moment later, unless an admission webhook denies that.
    """
    deleted = gathered.live is not None and "deletionTimestamp" in gathered.live["metadata"]
    return deleted and gathered.waiting.number < min(gathered.composites or 0, gathered.waiting.looked_at)


def pause_after(gathered: Gathered, decided: Plan) -> float:
    """Seconds until the next look."""
    steps = ComposerStep
    if decided.step in (
        steps.ADD_FINALIZER,
        steps.DELETE_COMPOSITES,
        steps.UNFENCE,
        steps.DELETE_CRD,
        steps.RELEASE_CRD,
    ):
        return AGAIN_SECONDS
    hidden = gathered.hidden
    if (hidden is not None and hidden.reason is reasons.RIGHT_MISSING) or gathered.facts.migrations is None:
        return RIGHTS_SECONDS
    if (
        decided.step is ComposerStep.NOTHING
        or decided.refusal is not None
        or decided.held
        or gathered.denied is not None
    ):
        return REFUSED_SECONDS
    return _RECOUNT_SECONDS
