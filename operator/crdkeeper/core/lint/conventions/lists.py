"""Lists: what tells one entry from another."""

from typing import Final

from crdkeeper.core.lint.convention import info, warning

_GROUP: Final = "lists"

SET_OF_OBJECTS = warning(
    _GROUP,
    "set-of-objects",
    "Server-side apply and CEL rules do not support sets of objects or arrays. The API server warns "
    "about them from Kubernetes 1.37.",
    "Use x-kubernetes-list-type: map with keys, or atomic.",
)
LIST_OF_NAMED = warning(
    _GROUP,
    "list-of-named",
    "Without a list type, the list is atomic: server-side apply of one entry replaces all others, "
    "and two entries can have the same name.",
    "Set x-kubernetes-list-type: map with x-kubernetes-list-map-keys, or atomic if only one client "
    "writes the list.",
)
LIST_TYPE_MISSING = info(
    _GROUP,
    "list-type-missing",
    "Without x-kubernetes-list-type, a list is atomic under server-side apply. Setting it makes this "
    "an explicit decision.",
    "Set x-kubernetes-list-type to atomic, set or map.",
)
