"""Retarget metadata.managedFields to the storage version.

An entry that names a version which the CRD no longer has makes server-side apply fail for that object
(kubernetes#111937), so a version is only really gone when no entry names it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from crdkeeper.core.conversion.nesting import Deep, length

Entry = Mapping[str, Any]


def retarget(entries: Sequence[Entry], group: str, version: str) -> list[dict[str, Any]] | None:
    """The entries with every other version of `group` replaced by `version`; None if nothing changes.

    Entries that come to belong to the same manager (same manager, operation, apiVersion and subresource: the
    API server keeps only one of these, see BuildManagerIdentifier of structured-merge-diff's fieldmanager)
    are merged into one that owns the union of the fields, with the newest time.
    """
    goal = f"{group}/{version}"
    stale = [entry for entry in entries if _is_stale(entry, group, goal)]
    if not stale:
        return None
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        moved = {**entry, "apiVersion": goal} if _is_stale(entry, group, goal) else dict(entry)
        identity = tuple(moved.get(key) for key in ("manager", "operation", "apiVersion", "subresource"))
        if identity in merged:
            moved = _join(merged[identity], moved)
        merged[identity] = moved
    return list(merged.values())


def entry_of(entries: Sequence[Entry], group_versions: Collection[str]) -> Entry | None:
    """The first entry that names one of these `group/version`; None if none does."""
    for entry in entries:
        if entry.get("apiVersion") in group_versions:
            return entry
    return None


def _is_stale(entry: Entry, group: str, goal: str) -> bool:
    version: str = entry.get("apiVersion", "")
    return version.startswith(f"{group}/") and version != goal


def _join(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    newest = max(one.get("time") or "", other.get("time") or "")
    joined = {**one, "fieldsV1": _union(one.get("fieldsV1") or {}, other.get("fieldsV1") or {})}
    return {**joined, "time": newest} if newest else joined


def _union(one: Any, other: Any) -> Any:
    if isinstance(one, Deep) or isinstance(other, Deep):
        # It is text, at the same levels of both. The longer one lacks the least.
        return max(one, other, key=length)
    return {
        **one,
        **{key: _union(one[key], value) if key in one else value for key, value in other.items()},
    }
