"""Ready: the summary of all conditions, with the reason of the worst.

True means that nothing needs whoever runs the cluster. What only the author of the CRD can mend is said in
its own condition and stays out of Ready, as does what cannot be found out: else Ready would be False or
Unknown for ever, and nobody who waits for it could do anything about it. False and Unknown take over the
reason of the first condition in the chain that is to blame: what is known to be wrong comes before what is
not known.
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
"""Its own; the others it takes over."""


def summarize(verdicts: Sequence[Verdict], findings: FindingSummary) -> Verdict:
    """The verdict on the whole."""
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
    told = [
        count(number, noun)
        for number, noun in ((findings.refused + findings.errors, "error"), (findings.warnings, "warning"))
        if number
    ]
    listed = f" The linter has {' and '.join(told)}: see status.findings." if told else ""
    reason = WOULD_BE_REFUSED if findings.refused else HEALTHY
    return Verdict(reason, f"{reason.meaning}{listed}")
