"""Which objects are a composite's: by the composite's uid in a label and in the controller reference.

Those that outlive the composite (deletion: Orphan) have an annotation in place of the controller reference,
because of which the garbage collector would delete them (kubectl delete --cascade=foreground).

The status of a composite lists its objects, but a tenant may write that status, and it may be lost. So
nothing is changed or deleted because of a list alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.meta import GROUP
from crdkeeper.core.composites.appliednote import APPLIED, applied_note

COMPOSITE_LABEL: Final = f"{GROUP}/composite-uid"
RESOURCE_LABEL: Final = f"{GROUP}/resource"
FINALIZER: Final = f"{GROUP}/objects"
"""Of a composite that has objects: they are deleted in order before it is."""
ADOPT: Final = f"{GROUP}/adopt"
"""The annotation of a composite that takes over objects which exist: the names of resources."""
PAUSED: Final = f"{GROUP}/paused"
OUTLIVES: Final = f"{GROUP}/outlives"
"""The annotation of an object that is never deleted, only released: the uid of its composite."""
_MARKS: Final = (COMPOSITE_LABEL, RESOURCE_LABEL)


@dataclass(frozen=True, slots=True)
class Composite:
    """What identifies a composite, and what it asks for besides its spec."""

    api_version: str
    kind: str
    namespace: str
    """Empty if it is in none."""
    name: str
    uid: str
    generation: int
    finalizers: tuple[str, ...]
    deleting: bool
    paused: bool
    adopts: frozenset[str]

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Composite":
        """Read it from the object."""
        metadata = value["metadata"]
        annotations = metadata.get("annotations") or {}
        adopts = (each.strip() for each in str(annotations.get(ADOPT, "")).split(","))
        return cls(
            value["apiVersion"],
            value["kind"],
            metadata.get("namespace", ""),
            metadata["name"],
            metadata["uid"],
            metadata.get("generation", 0),
            tuple(metadata.get("finalizers") or ()),
            "deletionTimestamp" in metadata,
            annotations.get(PAUSED) == "true",
            frozenset(each for each in adopts if each),
        )

    @property
    def holds(self) -> bool:
        """Whether it has the finalizer."""
        return FINALIZER in self.finalizers


def is_controlled(live: Mapping[str, Any], uid: str) -> bool:
    """Whether the composite with this uid is the controller of the object."""
    return any(each.get("uid") == uid for each in _references(live) if each.get("controller"))


def is_ours(live: Mapping[str, Any], uid: str) -> bool:
    """Whether the object is of the composite with this uid."""
    return is_controlled(live, uid) or (outlives(live) == uid and not controller_of(live))


def outlives(live: Mapping[str, Any]) -> str:
    """The uid of the composite after which the object stays; empty if it says nothing."""
    return str((live["metadata"].get("annotations") or {}).get(OUTLIVES, ""))


def is_free(live: Mapping[str, Any]) -> bool:
    """Whether the object has no controller and is no other composite's, so that it can be adopted.

    The label may be that of one that is gone: kubectl delete --cascade=orphan takes off only references.
    """
    return not (outlives(live) or controller_of(live))


def controller_of(live: Mapping[str, Any]) -> str:
    """Kind and name of the object's controller; empty if it has none."""
    for each in _references(live):
        if each.get("controller"):
            return f"{each.get('kind')} {each.get('name')}"
    return ""


def resource_of(live: Mapping[str, Any]) -> str:
    """The name of the resource that the object says it belongs to; empty if it says nothing."""
    return str((live["metadata"].get("labels") or {}).get(RESOURCE_LABEL, ""))


def configuration(
    value: Mapping[str, Any], composite: Composite, resource: str, *, orphan: bool
) -> dict[str, Any]:
    """What is applied for a rendered object: with the marks of its composite."""
    metadata = dict(value["metadata"])
    own = {key: each for key, each in (metadata.get("annotations") or {}).items() if key != OUTLIVES}
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        COMPOSITE_LABEL: composite.uid,
        RESOURCE_LABEL: resource,
    }
    if orphan:
        own[OUTLIVES] = composite.uid
    else:
        metadata["ownerReferences"] = [
            {
                "apiVersion": composite.api_version,
                "kind": composite.kind,
                "name": composite.name,
                "uid": composite.uid,
                "controller": True,
            }
        ]
    if own:
        metadata["annotations"] = own
    whole = {**value, "metadata": metadata}
    annotations = {**own, APPLIED: applied_note(whole)}
    return {**whole, "metadata": {**metadata, "annotations": annotations}}


def release(live: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """A merge patch after which the object, as it was read, is nobody's."""
    metadata = live["metadata"]
    left = [each for each in _references(live) if each.get("uid") != uid]
    return {
        "metadata": {
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "ownerReferences": left or None,
            "labels": dict.fromkeys(_MARKS),
            "annotations": {APPLIED: None, OUTLIVES: None},
        }
    }


def _references(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return live["metadata"].get("ownerReferences") or []
