"""What the API server requires, on every write, of the fields behind the scale subresource.

There is no ratcheting here: even an update that changes nothing is rejected (ValidateScaleSpec and
ValidateScaleStatus in k8s.io/apiextensions-apiserver, pkg/registry/customresource).
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.objects import valuerules
from crdkeeper.apiserver.objects.nestedvalue import AccessError, int_at, text_at
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import INVALID
from crdkeeper.apiserver.schema.violation import Violation

MOST_REPLICAS = (1 << 31) - 1


def check_scale(obj: Any, scale: Mapping[str, Any] | None) -> list[Violation]:
    """The violations of an object in the state in which it is validated: pruned and defaulted."""
    if scale is None:
        return []
    found = []
    for key in ("specReplicasPath", "statusReplicasPath"):
        found += _replicas(obj, scale.get(key) or "")
    selector = scale.get("labelSelectorPath")
    if selector is not None:
        found += _selector(obj, selector)
    return found


def _replicas(obj: Any, path: str) -> list[Violation]:
    try:
        value = int_at(obj, path) or 0
    except AccessError as error:
        return [_violation(path, "0", str(error))]
    if value < 0:
        return [_violation(path, str(value), "should be a non-negative integer")]
    if value > MOST_REPLICAS:
        return [_violation(path, str(value), f"should be less than or equal to {MOST_REPLICAS}")]
    return []


def _selector(obj: Any, path: str) -> list[Violation]:
    try:
        text_at(obj, path)
    except AccessError as error:
        return [_violation(path, '""', str(error))]
    return []


def _violation(path: str, value: str, detail: str) -> Violation:
    return Violation(valuerules.SCHEMA, Path(f".{path}", (path,)), INVALID, value, detail)
