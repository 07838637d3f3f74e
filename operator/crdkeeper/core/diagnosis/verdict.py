"""What a diagnosis concludes about one condition: a documented reason, and a message for this CRD.

Each module of this package defines its reasons as constants next to the function that chooses between them,
so that the documentation can be generated from the code that uses them.
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
    """One sentence that describes the state."""
    remedy: str = ""
    """What a person should do; empty if all is well."""
    healthy: bool = True
    """Whether `Ready` may be True with it: NonStructuralSchema=False is healthy, Established=False is not."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A reason, and what it means for this CRD."""

    reason: Reason
    message: str
    """One or more full sentences for a person: what is wrong, and what to do about it."""
