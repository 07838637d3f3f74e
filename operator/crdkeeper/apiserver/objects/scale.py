"""The scale subresource of a custom object: the Scale that a GET returns, and the effect of writing one.

Follows ScaleREST in apiextensions-apiserver (registry/customresource/etcd.go). A written object is then
pruned, defaulted and validated like any other, and by `scalevalidation`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.apiserver.objects.nestedvalue import AccessError, int_at, text_at, with_value

API_VERSION: Final = "autoscaling/v1"
KIND: Final = "Scale"
_UNSET: Final = -(1 << 31)
"""What the API server passes to a patch for missing replicas."""

Json = Any


class ScaleError(Exception):
    """The request fails."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        """The HTTP status."""
        self.message = message
        """The API server's message for 500 and for missing replicas; a summary otherwise."""


class _Undecodable(ValueError):
    """Go cannot decode a Scale."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """`subresources.scale` of a CRD's version."""

    spec: str
    status: str
    selector: str = ""

    @classmethod
    def of(cls, scale: Mapping[str, Any]) -> "ScalePaths":
        """The paths of a CRD that the API server has accepted."""
        return cls(
            scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""
        )


def read_scale(obj: Mapping[str, Any], paths: ScalePaths) -> Json:
    """The Scale that a GET returns. Raises ScaleError, also if the object has no replicas."""
    scale, known = _scale(obj, paths)
    if not known:
        said = f'the spec replicas field "{paths.spec}" does not exist'
        raise ScaleError(500, f"Internal error occurred: {said}")
    return _compact(scale)


def replace_scale(obj: Mapping[str, Any], paths: ScalePaths, scale: Json) -> Json:
    """The object after a PUT of a Scale of autoscaling/v1. Raises ScaleError."""
    try:
        replicas = _decoded(scale)
    except _Undecodable as error:
        raise ScaleError(400, str(error)) from None
    _check_name(obj, scale)
    _check_same(obj, scale, "uid")
    _scale(obj, paths)
    return _written(obj, paths, scale, replicas)


def patch_scale(obj: Mapping[str, Any], paths: ScalePaths, patch: Json) -> Json:
    """The object after a JSON merge patch of /scale. Raises ScaleError."""
    scale, known = _scale(obj, paths)
    if not known:
        scale["spec"]["replicas"] = _UNSET
    if not isinstance(patch, dict):
        raise ScaleError(400, "a merge patch is an object")
    merged = _merged(_compact(scale), patch)
    try:
        replicas = _decoded(merged)
    except _Undecodable as error:
        raise ScaleError(422, str(error)) from None
    _check_name(obj, merged)
    return _written(obj, paths, merged, replicas)


def _check_name(obj: Mapping[str, Any], scale: Json) -> None:
    metadata, given = obj.get("metadata") or {}, scale.get("metadata") or {}
    same_namespace = given.get("namespace") in (None, "", metadata.get("namespace"))
    if given.get("name") != metadata.get("name") or not same_namespace:
        raise ScaleError(400, "the name or namespace is another one")


def _check_same(obj: Mapping[str, Any], scale: Json, key: str) -> None:
    given = (scale.get("metadata") or {}).get(key)
    if given and given != (obj.get("metadata") or {}).get(key):
        raise ScaleError(409, f"{key} is another one")


def _scale(obj: Mapping[str, Any], paths: ScalePaths) -> tuple[Json, bool]:
    """The Scale, and whether the object specifies its replicas (scaleFromCustomResource)."""
    try:
        wanted = int_at(obj, paths.spec)
        current = int_at(obj, paths.status)
        selector = text_at(obj, paths.selector) if paths.selector else None
    except AccessError as error:
        raise ScaleError(500, str(error)) from None
    metadata = obj.get("metadata") or {}
    shown = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {key: metadata[key] for key in shown if metadata.get(key)},
        "spec": {"replicas": _int32(wanted or 0)},
        "status": {"replicas": _int32(current or 0), "selector": selector or ""},
    }
    return scale, wanted is not None


def _int32(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _compact(scale: Json) -> Json:
    """Without what Go omits when empty."""
    found = dict(scale)
    found["spec"] = {"replicas": scale["spec"]["replicas"]} if scale["spec"]["replicas"] else {}
    if not scale["status"]["selector"]:
        found["status"] = {"replicas": scale["status"]["replicas"]}
    return found


def _written(obj: Mapping[str, Any], paths: ScalePaths, scale: Json, replicas: int) -> Json:
    if replicas == _UNSET:
        raise ScaleError(400, f'the spec replicas field "{paths.spec}" cannot be empty')
    try:
        new = with_value(obj, paths.spec, replicas)
    except AccessError as error:
        raise ScaleError(500, str(error)) from None
    _check_same(obj, scale, "resourceVersion")
    return new


def _decoded(scale: Json) -> int:
    """spec.replicas of a Scale, 0 if there is none; raises _Undecodable."""
    if not isinstance(scale, dict):
        raise _Undecodable("a Scale is an object")
    if (scale.get("apiVersion") or API_VERSION) != API_VERSION or (scale.get("kind") or KIND) != KIND:
        raise _Undecodable(f"only {KIND} of {API_VERSION} is read")
    for key in ("metadata", "spec", "status"):
        if not isinstance(scale.get(key), dict | None):
            raise _Undecodable(f"{key} is no object")
    status = scale.get("status") or {}
    if not isinstance(status.get("selector"), str | None):
        raise _Undecodable("status.selector is no string")
    _decoded_replicas(status, "status")
    return _decoded_replicas(scale.get("spec") or {}, "spec")


def _decoded_replicas(part: Mapping[str, Any], name: str) -> int:
    value = part.get("replicas")
    if value is None:
        return 0
    if type(value) is not int or not -(1 << 31) <= value < 1 << 31:
        raise _Undecodable(f"{name}.replicas is no integer of 32 bits")
    return value


def _merged(value: Json, patch: Json) -> Json:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, each in patch.items():
        if each is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), each)
    return merged
