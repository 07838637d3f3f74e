"""What else a person can do if a step of a deletion is refused: there may be nobody to change that."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.fence import is_partly_fenced
from crdkeeper.core.composer.plan import ComposerStep
from crdkeeper.core.composition.definition import OWNER
from crdkeeper.core.diagnosis.verdict import Verdict


def is_final(failure: Verdict) -> bool:
    """Whether the API server, or somebody's policy or webhook, says no, although the composer has the right.

    Nothing shows that it will say anything else later.
    """
    return failure.reason in (reasons.REFUSED, reasons.INVALID)


def advised(step: ComposerStep, failure: Verdict, live: Mapping[str, Any]) -> Verdict:
    """The failure of a step, with what else ends the deletion, or opens the API."""
    if failure.reason is reasons.RIGHT_MISSING_TO_APPLY:
        # The message has the rule.
        return failure
    if step is ComposerStep.UNFENCE:
        return _more(
            failure,
            "If that stays so, have the composer's change of the CRD accepted by whoever refuses it, or "
            "remove the rule oldSelf.hasValue() from each version of the CRD yourself",
        )
    if step is not ComposerStep.FENCE:
        return failure
    # With the rule in one version, Orphan would have to change the CRD, too.
    orphan = "" if is_partly_fenced(live) else ", or to Orphan, which leaves the CRD"
    return _more(
        failure,
        "If that stays so, set spec.deletion to Cascade, which deletes the CRD with all composites that are "
        f"created until then{orphan}",
    )


def endangered(failure: Verdict) -> Verdict:
    """Why a CRD is not left as it is although it cannot be released: it may get lost."""
    return _more(
        failure,
        "Without that change, an earlier request to delete the CRD, which got no answer, may still delete "
        "it. Change anything in the CRD yourself, such as an annotation, and the definition goes",
    )


def unreleased(failure: Verdict) -> str:
    """What to say when a CRD is left as it is, because nobody may change it."""
    said = failure.message.rstrip(".")
    return (
        "The CRD and the composites stay, and nobody keeps them any more. The CRD still has the annotation "
        f"{OWNER}: {said}"
    )


def _more(failure: Verdict, remedy: str) -> Verdict:
    return Verdict(failure.reason, f"{failure.message.rstrip('.')}. {remedy}")
