"""What a convention is: id, group, how bad a breach is, why it matters, and what to do.

Most follow the Kubernetes API conventions
(https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md);
the others are traps that the API server sets by accepting what can't work.
"""

from dataclasses import dataclass

from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.core.lint.severity import Severity


@dataclass(frozen=True, slots=True)
class Convention(Rule):
    """A rule that is not the API server's."""

    group: str
    """The subject by which people choose rules: the file of `conventions/` that defines it."""
    severity: Severity
    renames: bool = False
    """Whether it is followed by renaming a field, which a stable version's users would not survive."""

    def severity_in(self, *, stable: bool) -> Severity:
        """How bad a breach is in a version that may still change, or may not."""
        return Severity.INFO if stable and self.renames else self.severity


def error(group: str, id: str, why: str, remedy: str) -> Convention:
    """A convention whose breach cannot work."""
    return Convention(id, why, remedy, group, Severity.ERROR)


def warning(group: str, id: str, why: str, remedy: str, *, renames: bool = False) -> Convention:
    """A convention whose breach somebody will stumble over."""
    return Convention(id, why, remedy, group, Severity.WARNING, renames)


def info(group: str, id: str, why: str, remedy: str, *, renames: bool = False) -> Convention:
    """A convention that is a matter of taste, or of what the author knows better."""
    return Convention(id, why, remedy, group, Severity.INFO, renames)
