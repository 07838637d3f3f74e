"""The severity of a finding."""

from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """The API server rejects the CRD because of it; or accepts the CRD, although it cannot work."""
    WARNING = "warning"
    """It is likely to cause problems."""
    INFO = "info"
    """A matter of style, or of what the author knows better: shown on request."""
    UNCHECKED = "unchecked"
    """Only the API server can tell whether there is an error."""

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _RANKS[self]


_RANKS = {each: rank for rank, each in enumerate(Severity)}
