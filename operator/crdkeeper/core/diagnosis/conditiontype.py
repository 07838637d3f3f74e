"""A condition of a report: one value in the condition's file, from which everything else follows."""

from collections.abc import Callable
from dataclasses import dataclass

from crdkeeper.core.diagnosis.facts import ReportFacts
from crdkeeper.core.diagnosis.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class ConditionType:
    """One type of condition."""

    type: str
    """The type in status.conditions, such as `ConversionReady`."""
    judge: Callable[[ReportFacts], Verdict]
    reasons: tuple[Reason, ...]
    """All reasons that `judge` can return, in the order of the documentation."""
    assessed: bool = False
    """Whether it depends on the schemas, which take long to check."""
    fact: str = ""
    """The field of LiveFacts that it depends on, filled by a probe; empty if it needs none."""
