"""The new CRD: the result of applying a manifest to the current one."""

import copy
from collections.abc import Mapping
from typing import Any

_TEXTS = ("labels", "annotations")
_STAYING = ("conversion", "preserveUnknownFields")


def applied(live: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The live CRD with the manifest's spec, labels and annotations.

    As with `kubectl apply`, a conversion that the manifest does not mention remains, since others set it, and
    so does preserveUnknownFields, which v1beta1 set by default.
    """
    found = copy.deepcopy(dict(live))
    spec = copy.deepcopy(dict(manifest.get("spec") or {}))
    before = live.get("spec") or {}
    for key in _STAYING:
        if key not in spec and before.get(key) is not None:
            spec[key] = copy.deepcopy(before[key])
    found["spec"] = spec
    metadata = found.setdefault("metadata", {})
    metadata.pop("managedFields", None)
    for key in _TEXTS:
        given = (manifest.get("metadata") or {}).get(key)
        if isinstance(given, dict):
            metadata[key] = {**(metadata.get(key) or {}), **given}
    return found
