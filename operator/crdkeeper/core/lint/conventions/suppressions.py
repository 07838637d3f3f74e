"""Conventions on the suppressions themselves."""

from typing import Final

from crdkeeper.core.lint.convention import error, warning

_GROUP: Final = "suppressions"
ABOUT: Final = "the suppressions themselves"

IGNORE_INVALID = error(
    _GROUP,
    "ignore-invalid",
    "An invalid suppression has no effect.",
    "Write `# crdkeeper:ignore=<id> <reason>` on or above the line, or lines `<id> <field>: <reason>` in "
    "the annotation lint.crdkeeper.dev/ignore.",
)
IGNORE_UNUSED = warning(
    _GROUP,
    "ignore-unused",
    "A suppression without a finding can hide future findings.",
    "Remove it.",
)
