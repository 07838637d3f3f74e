"""Updates of CRDs: replacements of a stored one, most of them nearly valid."""

import copy
from typing import Any

from hypothesis import strategies as st

from tests.cluster.definitions.lint.variants import (
    APPROVAL,
    BASES,
    SPOTS,
    Crd,
    Spots,
    change_schema,
    change_spot,
)

CURRENT = "current"
"""In place of the resourceVersion at the time of sending."""

_ATOMIC = {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}
_SET: Any = {"type": "array", "x-kubernetes-list-type": "set"}
_ODD: tuple[Any, ...] = (
    {"type": "string", "format": "nonsense"},
    {"type": "string", "format": "k8s-short-name"},
    {"type": "string", "format": 'a"\n'},
    {"type": "integer", "format": "uint32", "maximum": 1.0},
    {"type": "boolean", "format": "date", "example": [1.0]},
    {"type": "string", "anyOf": [{"format": "u-r-i"}, {"format": "u-r-l"}]},
    {**_SET, "items": _ATOMIC},
    {**_SET, "items": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}}},
    {"type": "string", "a": 1, 'b"\u00e9\n': 2, "enum": []},
    {"type": "array", "a": 1, "items": {"type": "string", "unseen": 1}},
    {"type": "object", "required": [], "properties": {"a.b": {"type": "string", "c": 1}}},
    {"type": "object", "allOf": [{"c": 1}], "additionalProperties": {"type": "string", "unseen": 1}},
)

_TIME = "2026-01-02T03:04:05Z"

_APPROVALS: tuple[Any, ...] = (
    None,
    {},
    {APPROVAL: "me"},
    {APPROVAL: "https://a.b"},
    {APPROVAL: "unapproved"},
)

UPDATE_SPOTS: Spots = (
    (("metadata", "annotations"), _APPROVALS),
    (("metadata", "name"), ("widgets.other.example.com",)),
    (("metadata", "resourceVersion"), ("", "0", "1", None, "x1")),
    (("metadata", "uid"), ("other", "", None)),
    (("metadata", "generateName"), ("a/b%", "..", "Any thing")),
    (("metadata", "namespace"), ("default",)),
    (("metadata", "deletionTimestamp"), (_TIME, None)),
    (("metadata", "deletionGracePeriodSeconds"), (0, 5)),
    (("metadata", "creationTimestamp"), (_TIME, None)),
    (("metadata", "generation"), (0, -1, 99)),
    (("metadata", "managedFields"), ([], None, [{"manager": "x", "operation": "Y"}])),
    (("metadata", "finalizers"), ([], ["example.com/a"], ["example.com/b", "b c"])),
    (("spec", "group"), ("other.example.com", "", "k8s.io")),
    (("spec", "names", "plural"), ("gadgets", "", "W")),
    (("spec", "names", "kind"), ("Gadget", "widget", "")),
    (("spec", "names", "singular"), ("gadget", None)),
    (("spec", "scope"), ("Cluster", "Namespaced", "")),
    (("spec", "versions", "*", "name"), ("v1", "v2", "v3", "V")),
    (("spec", "versions", "*", "storage"), (True, False)),
    (("spec", "versions", "*", "served"), (True, False)),
    (("spec", "versions", "*", "schema"), (None, {})),
    (("spec", "versions"), ([], [{"name": "v7", "served": True, "storage": True}])),
    (("spec", "preserveUnknownFields"), (True, False)),
    (("status",), (None, {"storedVersions": ["v9"]}, {"acceptedNames": {"kind": "?"}})),
    (("status", "storedVersions"), ([], ["v9"])),
)


@st.composite
def updates(draw: st.DrawFn, old: Crd) -> Crd:
    """A whole CRD to send as a replacement of `old`, as read from the API server."""
    new = copy.deepcopy(old)
    new["metadata"]["resourceVersion"] = CURRENT
    if draw(st.integers(0, 7)) == 0:
        new["spec"]["versions"] = copy.deepcopy(draw(st.sampled_from(BASES))["spec"]["versions"])
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2, 2, 3)))):
        _change(draw, new)
    if draw(st.integers(0, 3)) == 0:
        _add_odd_field(draw, new["spec"].get("versions"))
    return new


def _add_odd_field(draw: st.DrawFn, versions: Any) -> None:
    """Adds a field about which the API server may warn."""
    entry = draw(st.sampled_from(versions)) if isinstance(versions, list) and versions else None
    schema = (entry.get("schema") or {}).get("openAPIV3Schema") if isinstance(entry, dict) else None
    if isinstance(schema, dict) and schema.get("type") == "object":
        schema.setdefault("properties", {})["odd"] = copy.deepcopy(draw(st.sampled_from(_ODD)))


def _change(draw: st.DrawFn, new: Crd) -> None:
    kind = draw(st.integers(0, 5))
    versions: Any = new["spec"].get("versions")
    if kind == 0 and isinstance(versions, list) and versions:
        _change_versions(draw, versions)
    elif kind <= 2:
        change_schema(draw, new)
    elif kind == 3:
        change_spot(draw, new, SPOTS)
    else:
        change_spot(draw, new, UPDATE_SPOTS)


def _change_versions(draw: st.DrawFn, versions: list[Any]) -> None:
    at = draw(st.integers(0, len(versions) - 1))
    what = draw(st.sampled_from(("remove", "copy", "copy", "store", "move", "switch")))
    if what == "remove":
        del versions[at]
    elif what == "copy":
        fresh = copy.deepcopy(versions[at])
        if isinstance(fresh, dict):
            fresh |= {"name": draw(st.sampled_from(("v2", "v3", "v1alpha1"))), "storage": False}
        versions.append(fresh)
    elif what == "store":
        _store(versions, versions[at])
    elif what == "switch":
        fresh = copy.deepcopy(versions[at])
        if isinstance(fresh, dict):
            versions.append({**fresh, "name": draw(st.sampled_from(("v2", "v3", "v1alpha1")))})
            _store(versions, versions[-1])
    else:
        versions.insert(0, versions.pop(at))


def _store(versions: list[Any], stored: Any) -> None:
    for each in versions:
        if isinstance(each, dict):
            each["storage"] = each is stored
