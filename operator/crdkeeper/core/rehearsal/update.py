"""The new CRD: the result of applying a manifest to the current one."""

import copy
from collections.abc import Mapping
from typing import Any

_TEXTS = ("labels", "annotations")


def applied(live: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The live CRD with the manifest's spec, labels and annotations.

    As with `kubectl apply`, a conversion that the manifest does not mention remains: others set it.
    """
    found = copy.deepcopy(dict(live))
    spec = copy.deepcopy(dict(manifest.get("spec") or {}))
    conversion = (live.get("spec") or {}).get("conversion")
    if "conversion" not in spec and conversion is not None:
        spec["conversion"] = copy.deepcopy(conversion)
    found["spec"] = spec
    metadata = found.setdefault("metadata", {})
    metadata.pop("managedFields", None)
    for key in _TEXTS:
        given = (manifest.get("metadata") or {}).get(key)
        if isinstance(given, dict):
            metadata[key] = {**(metadata.get(key) or {}), **given}
    return found
