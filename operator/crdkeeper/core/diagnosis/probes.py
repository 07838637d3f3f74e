"""The result of a request that a diagnosis needs, and what to say if it is forbidden.

A probe never fails: that the API server refused, was busy or did not answer is a fact like any other, and
each condition decides what it means.
"""

from dataclasses import dataclass
from enum import Enum

from crdkeeper.apiserver.definitions.facts import DefinitionFacts

READER_LABEL = "rbac.crdkeeper.dev/aggregate-to-reader"
PERMIT = (
    f'Grant that permission with a ClusterRole that has the label {READER_LABEL}: "true"; '
    "manifests/samples/reader-role.yaml is an example. crdkeeper tries again within 5 minutes."
)
"""The remedy of every NotPermitted."""


class ProbeTrouble(Enum):
    """Why a request did not answer its question."""

    FORBIDDEN = "Forbidden"
    """403: our account lacks a permission."""
    NOT_FOUND = "NotFound"
    """404: the version is not served (yet, or any more), or the object is gone."""
    BUSY = "Busy"
    """429, 503 or 504 from the API server itself: it says nothing about the resource. To be retried."""
    EXPIRED = "Expired"
    """410 that no new list could fix."""
    FAILED = "Failed"
    """Any other error, with the server's message."""
    SILENT = "Silent"
    """No answer in time, or no connection."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that failed."""

    trouble: ProbeTrouble
    code: int
    """HTTP status; 0 if there was no response."""
    message: str
    """The API server's message, if there was one."""
    late: bool = False
    """Whether it was given up because there was no answer in time, and not because a connection was lost."""

    @property
    def passing(self) -> bool:
        """Whether it says nothing about what was asked for: the next time it may be answered."""
        nothing = self.trouble in (ProbeTrouble.BUSY, ProbeTrouble.EXPIRED, ProbeTrouble.SILENT)
        return nothing or self.code >= 500


def not_permitted(definition: DefinitionFacts, failure: Failure) -> str:
    """Which permission is missing, in the server's words, and the rule that grants it."""
    return (
        f'{failure.message.rstrip(".")}. The missing rule: apiGroups: ["{definition.group}"], '
        f'resources: ["{definition.plural}", "{definition.plural}/scale"], verbs: ["get", "list"].'
    )
