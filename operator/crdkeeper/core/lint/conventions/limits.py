"""How small and how big a value may be."""

from typing import Final

from crdkeeper.core.lint.convention import info

_GROUP: Final = "limits"

UNBOUNDED = info(
    _GROUP,
    "unbounded",
    "An object can grow to etcd's size limit, and the cost of CEL rules is estimated for that size.",
    "Set maxLength, maxItems or maxProperties.",
)
