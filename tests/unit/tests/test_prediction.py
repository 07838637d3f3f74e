"""The API server's result and warnings for a CRD; tests/cluster compares them with the real ones."""

import copy
from typing import Any

import pytest

from tests.cluster.definitions.lint.prediction import creation, update
from tests.unit.apiserver.definitions.cases import Crd, at, definition, version

SCHEMA = ("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties")


def stored(*more: Crd, **status: Any) -> Crd:
    crd = definition(*more)
    crd["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 3}
    crd["status"] = {"storedVersions": ["v1"], "conditions": [], **status}
    return crd


def test_a_new_crd() -> None:
    crd = definition()
    crd["status"] = {"storedVersions": ["v7"]}
    said = creation(crd)
    assert said.warnings == ()
    assert said.result is not None
    assert said.result.generation == 1
    assert said.result.status == {"storedVersions": ["v1"]}
    assert said.result.conversion == {"strategy": "None"}
    assert said.result.names == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }


def test_the_generation_counts_changes_of_spec() -> None:
    old = stored()
    same = copy.deepcopy(old)
    same["metadata"]["labels"] = {"a": "b"}
    same["spec"]["versions"][0]["additionalPrinterColumns"] = []
    same["spec"]["names"] |= {"singular": "widget", "shortNames": []}
    same["spec"]["conversion"] = {"strategy": "None", "webhook": {"conversionReviewVersions": []}}
    changed = copy.deepcopy(old)
    at(changed, *SCHEMA)["a"]["description"] = "Some."
    for new, expected in ((same, 3), (changed, 4)):
        result = update(new, old, complete=True).result
        assert result is not None
        assert result.generation == expected


@pytest.mark.parametrize(("before", "after"), [(["v1"], ["v1", "v2"]), ([], ["v1", "v2"])])
def test_a_new_storage_version_is_added(before: list[str], after: list[str]) -> None:
    old = stored(version("v2"), storedVersions=before)
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["storage"] = False
    new["spec"]["versions"][1]["storage"] = True
    new["status"] = {"storedVersions": ["v2"]}
    result = update(new, old, complete=True).result
    assert result is not None
    assert result.status == {"storedVersions": after, "conditions": []}


def test_the_webhook_is_kept_with_its_defaults() -> None:
    crd = definition()
    service = {"namespace": "a", "name": "b"}
    crd["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service, "caBundle": "Cg=="},
            "conversionReviewVersions": ["v1"],
        },
    }
    result = creation(crd).result
    assert result is not None
    assert result.conversion["webhook"]["clientConfig"] == {
        "service": {**service, "port": 443},
        "caBundle": "Cg==",
    }


def test_what_is_refused_has_no_result_and_no_warnings_of_its_own() -> None:
    crd = definition()
    crd["spec"]["scope"] = ""
    crd["spec"]["scopes"] = "x"
    at(crd, *SCHEMA)["a"]["format"] = "nonsense"
    said = creation(crd)
    assert said.result is None
    assert said.warnings == ('unknown field "spec.scopes"',)
    assert creation({**crd, "spec": 1}).warnings == ()


ATOMIC = {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {}}
SETS = (
    'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL '
    "validation rules"
)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "format": "k8s-short-name"}, ()),
        ({"type": "string", "format": "x", "anyOf": [{"format": "y"}, {"format": "x"}]}, ("x", "y")),
        ({"type": "integer", "format": "date"}, ("date",)),
        ({"type": "boolean", "format": "int32"}, ("int32",)),
        ({"type": "string", "format": 'a"\n'}, ('a\\"\\n',)),
    ],
)
def test_formats(schema: Any, expected: tuple[str, ...]) -> None:
    crd = definition()
    at(crd, *SCHEMA)["a"] = schema
    assert sorted(creation(crd).warnings) == [f'unrecognized format "{each}"' for each in expected]


def test_an_update_warns_of_what_is_new() -> None:
    old = stored()
    at(old, *SCHEMA)["a"]["format"] = "x"
    new = copy.deepcopy(old)
    at(new, *SCHEMA)["b"] = {"type": "array", "x-kubernetes-list-type": "set", "items": ATOMIC}
    assert update(new, old, complete=True).warnings == (SETS,)
    assert update(new, new, complete=True).warnings == ()


def test_unknown_fields_that_the_server_does_not_see() -> None:
    crd = definition()
    at(crd, *SCHEMA)["a"] |= {"x": 1, "anyOf": [{"x": 1}]}
    at(crd, *SCHEMA)["items"] = {"type": "array", "items": {"type": "string", "unseen": 1}, "y": 2}
    at(crd, *SCHEMA)["m"] = {"type": "object", "additionalProperties": {"type": "string", "unseen": 1}}
    where = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties"
    assert creation(crd).warnings == (
        f'unknown field "{where}.a.x"',
        f'unknown field "{where}.a.anyOf[0].x"',
        f'unknown field "{where}.items.y"',
    )


def test_owners_named_twice() -> None:
    crd = definition()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "7"}
    crd["metadata"]["ownerReferences"] = [owner, {**owner, "name": "q"}, owner]
    (warning,) = creation(crd).warnings
    assert warning.startswith(".metadata.ownerReferences contains duplicate entries;")
    assert warning.endswith("duplicate UID(s) observed: 7")


def test_deep_nesting_is_left_to_the_server() -> None:
    crd = definition()
    deep: Any = {"type": "object"}
    for _ in range(100_000):
        deep = {"type": "object", "properties": {"a": deep}}
    at(crd, *SCHEMA)["a"] = deep
    said = creation(crd)
    assert said.report.unchecked
    assert said.result is None
