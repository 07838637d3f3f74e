"""A convention, which users know as a rule of `crdkeeper lint`.

It has an id, a group, the severity of a violation, and says why it matters and what to do.

Most follow the Kubernetes API conventions
(https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md);
the others are about what the API server accepts although it can't work.
"""

from dataclasses import dataclass

from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.core.lint.severity import Severity


@dataclass(frozen=True, slots=True)
class Convention(Rule):
    """A rule that does not come from the API server."""

    group: str
    """The subject by which people select rules: the file of `conventions/` that defines it."""
    severity: Severity
    renames: bool = False
    """Whether the fix is to rename a field, which would break the users of all but an alpha version."""

    def severity_in(self, *, stable: bool) -> Severity:
        """The severity of a violation in a version that may still change, or may not."""
        return Severity.INFO if stable and self.renames else self.severity


def error(group: str, id: str, why: str, remedy: str, *, otherwise: str = "") -> Convention:
    """A convention whose violation cannot work."""
    return Convention(id, why, remedy, group, Severity.ERROR, otherwise=otherwise)


def warning(
    group: str, id: str, why: str, remedy: str, *, renames: bool = False, otherwise: str = ""
) -> Convention:
    """A convention whose violation causes problems."""
    return Convention(id, why, remedy, group, Severity.WARNING, renames, otherwise=otherwise)


def info(
    group: str, id: str, why: str, remedy: str, *, renames: bool = False, otherwise: str = ""
) -> Convention:
    """A convention that is a matter of style, or of what the author knows better."""
    return Convention(id, why, remedy, group, Severity.INFO, renames, otherwise=otherwise)
