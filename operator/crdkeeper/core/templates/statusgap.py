"""A field of the composite's status that has no value, and what that means for the value it had."""

from dataclasses import dataclass
from enum import StrEnum

from crdkeeper.apiserver.schema.fieldpath import Path


class StatusGapKind(StrEnum):
    """Why a field has no value."""

    NOT_YET = "not yet"
    """Something that it needs is not there yet. The field keeps its value."""
    EXCLUDED = "excluded"
    """It needs a resource that is excluded. The field goes."""
    FAILED = "failed"
    """It has no value for this composite. The field keeps its value."""


@dataclass(frozen=True, slots=True)
class StatusGap:
    """A field of the mapped status without a value."""

    path: Path
    """The field of the Composition, in spec.status."""
    kind: StatusGapKind
    text: str
    """The reason."""

    @property
    def status_path(self) -> tuple[str, ...]:
        """The names of the fields that lead there in the composite's status, as far as to the first list.

        Items of a list cannot be told apart once one is missing. Empty for the whole status.
        """
        found: list[str] = []
        for step in self.path.steps[2:]:
            if not isinstance(step, str):
                break
            found.append(step)
        return tuple(found)
