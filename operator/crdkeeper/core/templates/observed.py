"""The objects that exist, as the caller of a rendering knows them.

Expressions read what is under the name of a resource, and their values end up in the composite's status. So
the caller says which objects are the composite's: an object of the right name may belong to somebody else.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.core.templates.namespaces import Identity

_Objects = Mapping[Identity, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Observed:
    """The objects that exist of a composite, and those that it reads."""

    own: Mapping[str, _Objects] = field(default_factory=dict)
    """By the name of the resource: those that have the composite's uid, and are not in deletion."""
    external: _Objects = field(default_factory=dict)
    """Those that externalRefs name."""
    unknown: frozenset[tuple[str, str]] = frozenset()
    """Groups and kinds that could not be read: an object of them that is not given may exist."""
    unread: Collection[Identity] = ()
    """The same of single objects that externalRefs name."""
    unlisted: Collection[Identity] = ()
    """Those in `own` that the status of the composite does not list: others may have made them."""

    def find_own(self, resource: str, identity: Identity) -> Mapping[str, Any] | None:
        """An object of a resource; None if it is not given."""
        return self.own.get(resource, {}).get(identity)

    def only_own(self, resource: str) -> Mapping[str, Any] | None:
        """The object of a resource that cannot be rendered; None if there is none, or more than one.

        With no name to go by, what others may have made is left out.
        """
        objects = self.own.get(resource, {})
        listed = [live for identity, live in objects.items() if identity not in self.unlisted]
        return listed[0] if len(listed) == 1 else None


@dataclass(frozen=True, slots=True)
class ObservedInFiles(Observed):
    """Objects in files, which do not say to which resource they belong: all are in `external`.

    Only for rendering without a cluster, where whoever asks may read all of them.
    """

    def find_own(self, resource: str, identity: Identity) -> Mapping[str, Any] | None:
        """The object of that identity, whatever it belongs to; None if it is in deletion."""
        found = self.external.get(identity)
        return None if found is None or found["metadata"].get("deletionTimestamp") else found
