"""The change of a CRD's spec.versions that each step of a retirement makes, and the change that undoes them.

As JSON patches that name the version next to its position, because a list of versions has no keys: a patch
made for one list must not hit another version of a later one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from crdkeeper.api.versionretirement import DEPRECATED, NOT_SERVED, REMOVED

Operation = dict[str, Any]
_PINS: Final = ("uid", "generation")


def changed(crd: Mapping[str, Any], version: str, step: str) -> list[Operation]:
    """The operations by which the CRD has taken that step; empty if it has, or if no change would do it."""
    found = _find(crd, version)
    if found is None:
        return []
    at, entry = found
    if step == DEPRECATED and not entry.get("deprecated"):
        return [_same(at, version), {"op": "add", "path": f"{at}/deprecated", "value": True}]
    if step == NOT_SERVED and entry["served"]:
        return [_same(at, version), {"op": "replace", "path": f"{at}/served", "value": False}]
    if step == REMOVED:
        return [_same(at, version), {"op": "remove", "path": at}]
    return []


def undo(crd: Mapping[str, Any], version: str) -> list[Operation]:
    """The operations that serve the version again and no longer deprecate it; empty if nothing is to do.

    Nothing can bring back a version that is not in the CRD any more. A deprecation with a text of its own
    stays: see `own_warning`.
    """
    found = _find(crd, version)
    if found is None:
        return []
    at, entry = found
    operations: list[Operation] = []
    if not entry["served"]:
        operations.append({"op": "replace", "path": f"{at}/served", "value": True})
    if "deprecated" in entry and not own_warning(crd, version):
        operations.append({"op": "remove", "path": f"{at}/deprecated"})
    return [_same(at, version), *operations] if operations else []


def own_warning(crd: Mapping[str, Any], version: str) -> str:
    """The version's deprecationWarning; empty if it has none.

    No step sets one, so whoever keeps the CRD wants the version to be deprecated, whatever becomes of the
    retirement. Without it, nothing tells who has set `deprecated`.
    """
    found = _find(crd, version)
    return (found[1].get("deprecationWarning") or "") if found is not None else ""


def pinned(crd: Mapping[str, Any], operations: Sequence[Operation]) -> list[Operation]:
    """The operations, only for exactly this CRD with the spec that was read: otherwise 422.

    Not with its resourceVersion: who writes annotations, or status, would be in the way.
    """
    tests = [{"op": "test", "path": f"/metadata/{each}", "value": crd["metadata"][each]} for each in _PINS]
    return [*tests, *operations]


def is_another(crd: Mapping[str, Any], now: Mapping[str, Any] | None) -> bool:
    """Whether a patch that is pinned to `crd` cannot be applied to the CRD as it is now."""
    return now is None or any(now["metadata"][each] != crd["metadata"][each] for each in _PINS)


def version_managers(crd: Mapping[str, Any]) -> tuple[str, ...]:
    """The field managers that set the CRD's spec.versions, the latest first."""
    found = [
        (entry.get("time") or "", entry.get("manager") or "")
        for entry in crd["metadata"].get("managedFields") or ()
        if "f:versions" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return tuple(dict.fromkeys(manager for _, manager in sorted(found, reverse=True)))


def _find(crd: Mapping[str, Any], version: str) -> tuple[str, Mapping[str, Any]] | None:
    for number, each in enumerate(crd["spec"]["versions"]):
        if each["name"] == version:
            return f"/spec/versions/{number}", each
    return None


def _same(at: str, version: str) -> Operation:
    return {"op": "test", "path": f"{at}/name", "value": version}
