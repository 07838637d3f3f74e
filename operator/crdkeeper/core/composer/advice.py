"""What `crdkeeper lint` says about a definition whose CRD the API server accepts.

It refuses nothing, not even where a convention calls it an error: the API server accepts such CRDs, and a new
release of crdkeeper with one more convention would hold up the definitions of a platform.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.composition.acceptance import Acceptance
from crdkeeper.core.lint.authored import authored, of_composite
from crdkeeper.core.lint.conventions.definition import APPLY_SIZE
from crdkeeper.core.lint.found import Found
from crdkeeper.core.lint.linter import lint_accepted
from crdkeeper.core.lint.merging import merge
from crdkeeper.core.lint.severity import Severity

_COUNTED: Final = (Severity.ERROR, Severity.WARNING)
_OF_OTHERS: Final = frozenset((APPLY_SIZE.id,))
"""About clients that apply the CRD: the composer applies it on the server."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The errors and warnings that nobody ignores, without those of what crdkeeper adds."""

    first: str = ""
    """The first of the worst, with its reason and remedy."""
    number: int = 0


def advise(definition: Mapping[str, Any], judged: Acceptance, live: Mapping[str, Any] | None) -> Advice:
    """Lint a definition and its CRD; nothing is said of one that is refused.

    Findings in the same field of several versions count once, as in the command line's output. `live` is the
    CRD that it replaces: how that converts is up to its VersionConversion, and decides what is lost.
    """
    made = judged.crd
    if made is None or judged.refused:
        return Advice()
    converts = ((live or {}).get("spec") or {}).get("conversion")
    crd = {**made, "spec": {**made["spec"], "conversion": converts}} if converts else made
    try:
        found = merge(authored(definition, lint_accepted(crd, of_composite(judged.problems))))
    except RecursionError:
        return Advice()
    counted = [each for each in found if _counts(each)]
    if not counted:
        return Advice()
    first = min(counted, key=lambda each: each.severity.rank)
    said = f"{first.field}: {first.message}{first.elsewhere} [{first.rule.id}]."
    return Advice(bounded(f"{said} {first.rule.why} {first.rule.remedy}", LINE_BYTES), len(counted))


def _counts(found: Found) -> bool:
    return (
        found.severity in _COUNTED and not (found.final or found.ignored) and found.rule.id not in _OF_OTHERS
    )
