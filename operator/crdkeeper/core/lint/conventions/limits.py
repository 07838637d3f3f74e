"""Conventions on the size of values."""

from typing import Final

from crdkeeper.core.lint.convention import info

_GROUP: Final = "limits"
ABOUT: Final = "how small and how big a value may be"

UNBOUNDED = info(
    _GROUP,
    "unbounded",
    "An object can grow to etcd's size limit, and the cost of CEL rules is estimated for that size.",
    "Set maxLength, maxItems or maxProperties.",
)
MIN_LENGTH = info(
    _GROUP,
    "min-length",
    "A required text may be empty, so `required` alone does not make users write anything.",
    "Set minLength: 1, or make the field optional.",
)
