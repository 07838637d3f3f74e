"""What a diagnosis concludes about one condition: a documented reason, and a message for this CRD.

Each module of this package defines its reasons as constants beside the function that decides between them, so
that the documentation can be made from the code that raises them.
"""

from dataclasses import dataclass

from crdkeeper.api.meta import ConditionStatus


@dataclass(frozen=True, slots=True)
class Reason:
    """One state that a condition can be in."""

    condition: str
    """The condition's type, such as `ConversionReady`."""
    status: ConditionStatus
    name: str
    """CamelCase, unique within the condition."""
    meaning: str
    """One sentence: what is the case."""
    remedy: str = ""
    """What a person should do; empty where all is well."""
    healthy: bool = True
    """Whether `Ready` may be True beside it: NonStructuralSchema=False is healthy, Established=False not."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reason, and what it means for the CRD at hand."""

    reason: Reason
    message: str
    """One or more full sentences for a person: what is the case, and what to do about it."""
