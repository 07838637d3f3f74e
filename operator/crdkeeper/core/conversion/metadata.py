"""Annotations and labels of an object, the notes of what is kept aside among them.

An object is never changed here: what these functions return shares with it what stays the same.
"""

from collections.abc import Mapping
from typing import Any, Final

from crdkeeper.core.conversion.keptaside import PREFIX

ANNOTATIONS: Final = "annotations"
LABELS: Final = "labels"


def annotations_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of an object."""
    return (value.get("metadata") or {}).get(ANNOTATIONS) or {}


def with_annotations(value: Mapping[str, Any], annotations: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these annotations instead of its own."""
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != ANNOTATIONS}
    if annotations:
        metadata[ANNOTATIONS] = annotations
    return {**value, "metadata": metadata}


def without_note(value: Mapping[str, Any], version: str) -> dict[str, Any]:
    """An object without what is kept aside for a version."""
    key = PREFIX + version
    annotations = annotations_of(value)
    if key not in annotations:
        return dict(value)
    return with_annotations(value, {name: each for name, each in annotations.items() if name != key})


def without_notes(value: Any) -> Any:
    """An object without anything kept aside on it."""
    annotations = annotations_of(value)
    left = {key: each for key, each in annotations.items() if not key.startswith(PREFIX)}
    return value if len(left) == len(annotations) else with_annotations(value, left)


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
    metadata = value.get("metadata") or {}
    own = {key: each for key, each in annotations_of(value).items() if not key.startswith(PREFIX)}
    return {**value, "metadata": {ANNOTATIONS: own, LABELS: metadata.get(LABELS) or {}}}
