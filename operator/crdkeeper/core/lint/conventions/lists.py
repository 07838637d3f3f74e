"""Conventions on what identifies the entries of a list."""

from typing import Final

from crdkeeper.core.lint.convention import info, warning

_GROUP: Final = "lists"
ABOUT: Final = "what tells the entries of a list apart"

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
    "Two entries can have the same name, although the description says that names are unique. Without a list "
    "type, moreover, the list is atomic: server-side apply of one entry replaces all others.",
    "Set x-kubernetes-list-type: map with x-kubernetes-list-map-keys: [name]. If the order matters, or only "
    "one client writes the list, set atomic and maxItems, and add the rule "
    "`self.all(x, self.exists_one(y, x.name == y.name))`.",
)
LIST_TYPE_MISSING = info(
    _GROUP,
    "list-type-missing",
    "Without x-kubernetes-list-type, a list is atomic under server-side apply. Setting it makes this "
    "an explicit decision.",
    "Set x-kubernetes-list-type to atomic, set or map.",
)
OPTIONAL_ENTRIES = info(
    _GROUP,
    "optional-entries",
    "No field of an entry is required, so {} is a valid entry, and one dash too many in YAML makes two "
    "entries of one without an error.",
    "Require the fields that an entry makes no sense without.",
)
