"""Ready: the summary of all conditions, with the reason of the worst.

True means that the cluster's operators need not act. What only the CRD's author can fix is reported in its
own condition and does not affect Ready, nor does what cannot be determined: otherwise Ready would remain
False or Unknown for ever, and nobody who waits for it could change that. False and Unknown use the reason of
the first condition in the list that is responsible: known defects come before what is unknown.
"""

from collections.abc import Sequence

from crdkeeper.core.diagnosis.findings import FindingSummary
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count

TYPE = "Ready"

HEALTHY = Reason(TYPE, "True", "Healthy", "No condition needs attention.")
WOULD_BE_REFUSED = Reason(
    TYPE,
    "True",
    "WouldBeRefused",
    "No condition needs attention, but the API server would refuse the CRD if it were created now: restoring "
    "a backup, or installing it in another cluster, fails.",
    "Fix the findings of severity Refused in status.findings.",
)
REASONS = (HEALTHY, WOULD_BE_REFUSED)
"""Its own reasons; the others come from other conditions."""


def summarize(verdicts: Sequence[Verdict], findings: FindingSummary) -> Verdict:
    """The overall verdict."""
    wrong = [each for each in verdicts if not each.reason.healthy and each.reason.status != "Unknown"]
    unknown = [each for each in verdicts if not each.reason.healthy and each.reason.status == "Unknown"]
    blamed = [*wrong, *unknown]
    if not blamed:
        return _all_well(findings)
    worst, *others = blamed
    reason = Reason(
        TYPE,
        "False" if wrong else "Unknown",
        worst.reason.name,
        worst.reason.meaning,
        worst.reason.remedy,
        healthy=False,
    )
    also = f" Also: {', '.join(f'{each.reason.condition} ({each.reason.name})' for each in others)}."
    return Verdict(reason, f"{worst.reason.condition}: {worst.message}{also if others else ''}")


def _all_well(findings: FindingSummary) -> Verdict:
    reported = [
        count(number, noun)
        for number, noun in ((findings.refused + findings.errors, "error"), (findings.warnings, "warning"))
        if number
    ]
    listed = f" The linter has {' and '.join(reported)}: see status.findings." if reported else ""
    reason = WOULD_BE_REFUSED if findings.refused else HEALTHY
    return Verdict(reason, f"{reason.meaning}{listed}")
