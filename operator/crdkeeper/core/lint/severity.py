"""How much a finding matters."""

from enum import StrEnum


class Severity(StrEnum):
    """In the order of weight."""

    ERROR = "error"
    """The API server refuses the CRD for it; or it accepts the CRD, and it cannot work."""
    WARNING = "warning"
    """Somebody will stumble over it."""
    INFO = "info"
    """A matter of taste, or of what the author knows better: shown on request."""
    UNCHECKED = "unchecked"
    """Only the API server can tell."""

    @property
    def rank(self) -> int:
        """0 for the heaviest."""
        return list(Severity).index(self)
