"""Annotations and labels of an object, the notes of what is kept aside among them.

An object is never changed here: what these functions return shares with it what stays the same.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from crdkeeper.core.conversion.fieldpaths import Steps
from crdkeeper.core.conversion.keptaside import PREFIX

ANNOTATIONS: Final = "annotations"
LABELS: Final = "labels"
INCOMPLETE: Final = "incomplete"


def annotations_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of an object."""
    return (value.get("metadata") or {}).get(ANNOTATIONS) or {}


def with_annotations(value: Mapping[str, Any], annotations: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these annotations instead of its own."""
    return _with(value, ANNOTATIONS, annotations)


def _with(value: Mapping[str, Any], field: str, found: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != field}
    if found:
        metadata[field] = found
    return {**value, "metadata": metadata}


def without_annotations(value: Mapping[str, Any], paths: Collection[Steps]) -> dict[str, Any]:
    """An object without the annotations at these paths."""
    found = annotations_of(value)
    return with_annotations(
        value, {key: each for key, each in found.items() if ("metadata", ANNOTATIONS, key) not in paths}
    )


def labels_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The labels of an object."""
    return (value.get("metadata") or {}).get(LABELS) or {}


def without_note(value: Mapping[str, Any], version: str) -> dict[str, Any]:
    """An object without what is kept aside for a version."""
    key = PREFIX + version
    return _without(value, lambda name: name == key)


def without_notes(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object without anything kept aside on it."""
    return _without(value, lambda name: name.startswith(PREFIX))


def without_marks(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object that is whole, whatever its labels say."""
    left = {key: each for key, each in labels_of(value).items() if not key.startswith(PREFIX)}
    return dict(value) if len(left) == len(labels_of(value)) else _with(value, LABELS, left)


def marked(value: Mapping[str, Any], version: str) -> dict[str, Any]:
    """An object of which there is more at a version than could be kept aside.

    A label says so: unlike an annotation it finds room on every object, and a selector finds it.
    """
    return _with(value, LABELS, {**labels_of(value), PREFIX + version: INCOMPLETE})


def marks_of(value: Mapping[str, Any]) -> list[str]:
    """The versions at which there is more of an object than could be kept aside."""
    return sorted(key.removeprefix(PREFIX) for key in labels_of(value) if key.startswith(PREFIX))


def _without(value: Mapping[str, Any], taken: Callable[[str], bool]) -> dict[str, Any]:
    for field, found in ((ANNOTATIONS, annotations_of(value)), (LABELS, labels_of(value))):
        left = {key: each for key, each in found.items() if not taken(key)}
        if len(left) != len(found):
            value = _with(value, field, left)
    return dict(value)


def without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """An object without maps of labels and annotations that have nothing left; the API server has none."""
    metadata = value.get("metadata") or {}
    left = {key: each for key, each in metadata.items() if each or key not in (ANNOTATIONS, LABELS)}
    return value if len(left) == len(metadata) else {**value, "metadata": left}


def with_maps(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with maps of labels and annotations, be they empty, to put single entries in."""
    metadata = value.get("metadata") or {}
    maps = {key: metadata.get(key) or {} for key in (ANNOTATIONS, LABELS)}
    return {**value, "metadata": {**metadata, **maps}}


def compared(value: Mapping[str, Any]) -> dict[str, Any]:
    """What of an object rules can have changed, each annotation and label by itself.

    Notes are no part of it: each is made again where its version is left again.
    """
    own, labels = (
        {key: each for key, each in found.items() if not key.startswith(PREFIX)}
        for found in (annotations_of(value), labels_of(value))
    )
    return {**value, "metadata": {ANNOTATIONS: own, LABELS: labels}}
