"""Which objects are a composite's: by the composite's uid in a label and in the controller reference.

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


def is_free(live: Mapping[str, Any]) -> bool:
    """Whether the object has no controller and is no other composite's, so that it can be adopted."""
    labels = live["metadata"].get("labels") or {}
    return COMPOSITE_LABEL not in labels and not any(each.get("controller") for each in _references(live))


def controller_of(live: Mapping[str, Any]) -> str:
    """Kind and name of the object's controller; empty if it has none."""
    for each in _references(live):
        if each.get("controller"):
            return f"{each.get('kind')} {each.get('name')}"
    return ""


def resource_of(live: Mapping[str, Any]) -> str:
    """The name of the resource that the object says it belongs to; empty if it says nothing."""
    return str((live["metadata"].get("labels") or {}).get(RESOURCE_LABEL, ""))


def configuration(value: Mapping[str, Any], composite: Composite, resource: str) -> dict[str, Any]:
    """What is applied for a rendered object: with the marks of its composite."""
    metadata = dict(value["metadata"])
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        COMPOSITE_LABEL: composite.uid,
        RESOURCE_LABEL: resource,
    }
    metadata["ownerReferences"] = [
        {
            "apiVersion": composite.api_version,
            "kind": composite.kind,
            "name": composite.name,
            "uid": composite.uid,
            "controller": True,
        }
    ]
    whole = {**value, "metadata": metadata}
    note = applied_note(whole)
    annotations = {**(metadata.get("annotations") or {}), APPLIED: note}
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
            "annotations": {APPLIED: None},
        }
    }


def _references(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return live["metadata"].get("ownerReferences") or []
