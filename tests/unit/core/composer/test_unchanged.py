"""When a CRD is not applied, because that would change nothing."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.core.composer.unchanged import is_unchanged

Json = Any
ME = "crdkeeper-composer"
VERSION: Json = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}}
MADE: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "databases.example.com", "labels": {"team": "a"}, "annotations": {"owner": "u"}},
    "spec": {"group": "example.com", "names": {"kind": "Database"}, "versions": [VERSION]},
}
FIELDS: Json = {
    "f:metadata": {"f:labels": {"f:team": {}}, "f:annotations": {".": {}, "f:owner": {}}},
    "f:spec": {"f:group": {}, "f:names": {"f:kind": {}}, "f:versions": {}},
}


def live() -> Json:
    """As the API server returns what was applied: with defaults, and fields of others."""
    found = copy.deepcopy(MADE)
    found["metadata"] |= {"uid": "1", "resourceVersion": "7", "generation": 3}
    found["metadata"]["annotations"]["note"] = "of somebody else"
    found["spec"]["names"] |= {"singular": "database", "listKind": "DatabaseList"}
    found["spec"]["conversion"] = {"strategy": "None"}
    entry = {"manager": ME, "operation": "Apply", "apiVersion": MADE["apiVersion"]}
    found["metadata"]["managedFields"] = [
        {"manager": "kubectl", "operation": "Update", "apiVersion": MADE["apiVersion"], "fieldsV1": {}},
        {**entry, "fieldsV1": copy.deepcopy(FIELDS)},
    ]
    return found


def mine(found: Json) -> Json:
    return found["metadata"]["managedFields"][1]


def lose(field: str) -> Callable[[Json], Any]:
    return lambda found: mine(found)["fieldsV1"]["f:spec"].pop(field)


def test_what_is_as_it_was_applied_is_not_applied() -> None:
    assert is_unchanged(MADE, live(), ME)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["metadata"]["labels"].update(team="b"),
        lambda found: found["metadata"]["labels"].clear(),
        lambda found: found["spec"]["names"].update(kind="Other"),
        # JSON has other values for these than Python.
        lambda found: found["spec"]["versions"][0].update(served=1),
        lambda found: found["spec"]["versions"][0].update(deprecated=True),
        lambda found: found["spec"]["versions"].append({"name": "v2"}),
        # Somebody else has become the manager, also of the same value.
        lose("f:versions"),
        lose("f:names"),
        lambda found: mine(found).update(manager="kubectl"),
        lambda found: mine(found).update(operation="Update"),
        lambda found: mine(found).update(subresource="status"),
        lambda found: mine(found).update(apiVersion="apiextensions.k8s.io/v1beta1"),
        lambda found: mine(found).update(fieldsV1={}),
        lambda found: mine(found).pop("fieldsV1"),
        lambda found: found["metadata"].pop("managedFields"),
        # The apply would remove what is not in it any more.
        lambda found: mine(found)["fieldsV1"]["f:spec"].update({"f:conversion": {}}),
        lambda found: mine(found)["fieldsV1"]["f:metadata"]["f:annotations"].update({"f:note": {}}),
        lambda found: mine(found)["fieldsV1"]["f:metadata"].update({"f:finalizers": {'v:"a"': {}}}),
    ],
)
def test_what_differs_or_has_another_manager_is_applied(change: Callable[[Json], Any]) -> None:
    found = live()
    change(found)
    assert not is_unchanged(MADE, found, ME)


def test_a_schema_of_any_depth_is_compared() -> None:
    deep: Json = {}
    for _ in range(20_000):
        deep = {"properties": {"a": deep}}
    found, made = live(), {**MADE, "spec": {**MADE["spec"], "versions": [{**VERSION, "schema": deep}]}}
    assert not is_unchanged(made, found, ME)
    same: Json = {}
    for _ in range(20_000):
        same = {"properties": {"a": same}}
    found["spec"]["versions"] = [{**VERSION, "schema": same}]
    assert is_unchanged(made, found, ME)
