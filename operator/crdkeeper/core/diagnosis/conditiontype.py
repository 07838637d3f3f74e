"""What a condition of a report is made of: one value in its file, from which all else follows."""

from collections.abc import Callable
from dataclasses import dataclass

from crdkeeper.core.diagnosis.facts import ReportFacts
from crdkeeper.core.diagnosis.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class ConditionType:
    """One type of condition."""

    type: str
    """As in status.conditions, such as `ConversionReady`."""
    judge: Callable[[ReportFacts], Verdict]
    reasons: tuple[Reason, ...]
    """All that `judge` can give, in the order of the documentation."""
    assessed: bool = False
    """Whether it depends on the schemas, which take long to check."""
    fact: str = ""
    """The field of LiveFacts that it depends on, which a probe fills in; empty if it needs none."""
