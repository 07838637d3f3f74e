"""Annotations and labels of an object.

These functions never change an object: what they return shares unchanged parts with it.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from crdkeeper.core.conversion.fieldpaths import Steps

ANNOTATIONS: Final = "annotations"
LABELS: Final = "labels"


def annotations_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return (value.get("metadata") or {}).get(ANNOTATIONS) or {}


def with_metadata(value: Mapping[str, Any], field: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these annotations or labels instead of its own; `field` says which."""
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != field}
    if found:
        metadata[field] = found
    return {**value, "metadata": metadata}


def without_annotations(value: Mapping[str, Any], paths: Collection[Steps]) -> dict[str, Any]:
    """An object without the annotations at these paths."""
    found = annotations_of(value)
    left = {key: each for key, each in found.items() if ("metadata", ANNOTATIONS, key) not in paths}
    return with_metadata(value, ANNOTATIONS, left)


def labels_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return (value.get("metadata") or {}).get(LABELS) or {}


def without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """An object without empty maps of labels and annotations; the API server stores none."""
    metadata = value.get("metadata") or {}
    left = {key: each for key, each in metadata.items() if each or key not in (ANNOTATIONS, LABELS)}
    return value if len(left) == len(metadata) else {**value, "metadata": left}


def with_maps(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with maps of labels and annotations, even if empty, to which entries can be added."""
    metadata = value.get("metadata") or {}
    maps = {key: metadata.get(key) or {} for key in (ANNOTATIONS, LABELS)}
    return {**value, "metadata": {**metadata, **maps}}
