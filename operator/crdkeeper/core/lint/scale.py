"""The scale subresource: whether its paths lead to what autoscalers read and write there."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.schema.props import PRESERVE
from crdkeeper.core.lint import registry
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.jsonpath import Lead, follow
from crdkeeper.core.lint.place import Place

_TYPES = {"specReplicasPath": "integer", "statusReplicasPath": "integer", "labelSelectorPath": "string"}


def check_scale(version: Mapping[str, Any], root: Place, found: Findings) -> None:
    """Reports on the scale subresource of one version."""
    scale = (version.get("subresources") or {}).get("scale")
    if not isinstance(scale, dict):
        return
    at = (*root.steps[:3], "subresources", "scale")
    field = f"{root.text}subresources.scale"
    for key, type_ in _TYPES.items():
        path = scale.get(key)
        if not path:
            continue
        target = follow(path, root.schema)
        schema = target.schema or {}
        if target.lead is Lead.NOWHERE:
            message = f"{path} leads to nothing in the schema"
            found.add(registry.SCALE_TARGET, f"{field}.{key}", (*at, key), message)
        elif target.lead is Lead.FIELD and schema.get("type") != type_ and not schema.get(PRESERVE):
            message = f"{path} is {schema.get('type') or 'of several types'} instead of {type_}"
            found.add(registry.SCALE_TARGET, f"{field}.{key}", (*at, key), message)
    if not scale.get("labelSelectorPath"):
        found.add(registry.SCALE_SELECTOR, field, at, "has no labelSelectorPath")
