"""The objects of a composite, as its status lists them: what is to be deleted one day, and in which order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from crdkeeper.api.composite import ComposedObject, ComposedResource
from crdkeeper.core.composites.ownership import outlives, resource_of
from crdkeeper.core.templates.kinds import group_of, is_api_version
from crdkeeper.core.templates.namespaces import Identity, identity_of, is_name

MOST_KINDS: Final = 200
"""Of a status: more than a Composition and those before it have. Each of them is asked for."""
KindKey = tuple[str, str]
"""apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An object that the composite has, or is about to have."""

    identity: Identity
    api_version: str
    resource: str
    wave: int = 0
    orphan: bool = False
    """Whether it stays when the composite goes, or gives it up."""
    unproved: bool = False
    """Whether only the status says that it stays, which others may have written."""

    @property
    def kind(self) -> KindKey:
        """By which version its objects are read."""
        return self.api_version, self.identity.kind

    def to_status(self, *, uid: str | None, ready: bool, message: str | None) -> ComposedResource:
        """The entry in the status."""
        at = self.identity
        return ComposedResource(
            name=self.resource,
            object=ComposedObject(
                api_version=self.api_version,
                kind=at.kind,
                namespace=at.namespace or None,
                name=at.name,
                uid=uid,
            ),
            ready=ready,
            message=message,
            wave=self.wave,
            deletion="Orphan" if self.orphan else None,
        )


def listed_entries(composite: Mapping[str, Any]) -> dict[Identity, Entry]:
    """Those in the status. What the composer cannot have written is left out: it may be anybody's."""
    space = composite["metadata"].get("namespace", "")
    status = composite.get("status")
    state = status.get("crdkeeper") if isinstance(status, Mapping) else None
    resources = state.get("resources") if isinstance(state, Mapping) else None
    found: dict[Identity, Entry] = {}
    kinds: set[KindKey] = set()
    for each in resources if isinstance(resources, list) else ():
        try:
            read = ComposedResource.model_validate(each)
        except ValueError:
            continue
        of = read.object
        identity = Identity(group_of(of.api_version), of.kind, of.namespace or "", of.name)
        if not (is_name(of.name) and is_api_version(of.api_version)) or (
            space and identity.namespace != space
        ):
            continue
        kinds.add((of.api_version, of.kind))
        if len(kinds) > MOST_KINDS:
            break
        orphan = read.deletion == "Orphan"
        found[identity] = Entry(identity, of.api_version, read.name, read.wave, orphan, unproved=orphan)
    return found


def with_found(
    listed: Mapping[Identity, Entry],
    objects: Iterable[Mapping[str, Any]],
    keeps: Mapping[str, bool],
    waves: Mapping[str, int],
) -> dict[Identity, Entry]:
    """The entries, with those of objects that are the composite's although its status does not list them.

    `keeps` and `waves` are by the name of a resource: whether its objects stay, and their wave. What says
    itself that it stays is never deleted, whatever the status says, which may be lost or written by others.
    """
    found = dict(listed)
    for live in objects:
        identity, name = identity_of(live), resource_of(live)
        if identity is None:
            continue
        if identity in found:
            if outlives(live):
                found[identity] = replace(found[identity], orphan=True, unproved=False)
            continue
        orphan = bool(outlives(live)) or keeps.get(name, False)
        found[identity] = Entry(identity, live["apiVersion"], name, waves.get(name, 0), orphan)
    return found


def decided(entries: Mapping[Identity, Entry], keeps: Mapping[str, bool]) -> dict[Identity, Entry]:
    """The entries, as the revision says which of them stay; `keeps` has all of its resources.

    An object that says itself that it stays does so, too. The status alone decides nothing.
    """
    found = dict(entries)
    for identity, each in entries.items():
        if each.resource in keeps:
            stays = keeps[each.resource] or (each.orphan and not each.unproved)
            found[identity] = replace(each, orphan=stays, unproved=False)
    return found
