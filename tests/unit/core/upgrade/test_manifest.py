"""CRDs of v1beta1 become CRDs of v1 with the same meaning, with messages about what is left to decide."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.core.upgrade.manifest import NotV1beta1, upgrade

CRDS = sorted((Path(__file__).parents[4] / "crds").glob("crdkeeper.dev_*.yaml"))
PRESERVE = "x-kubernetes-preserve-unknown-fields"
STRING = {"type": "string"}


def old(**spec: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {
        "group": "example.com",
        "names": names,
        "scope": "Namespaced",
        "version": "v1",
        "preserveUnknownFields": False,
        **spec,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }


def with_spec(schema: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A CRD whose objects have such a spec."""
    return old(validation={"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}, **spec)


def spec_of(upgraded: Any) -> Any:
    return upgraded.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def ids(upgraded: Any) -> set[str]:
    return {each.topic.id for each in upgraded.decisions}


def test_what_all_versions_shared_is_copied_to_each() -> None:
    done = upgrade(
        old(
            version="v1",
            versions=[
                {"name": "v1", "served": True, "storage": True},
                {"name": "v1alpha1", "served": True, "storage": False},
            ],
            validation={"openAPIV3Schema": {"type": "object", "properties": {"spec": STRING}}},
            subresources={"status": {}},
            additionalPrinterColumns=[{"name": "Spec", "type": "string", "JSONPath": ".spec"}],
        )
    )
    assert not done.decisions
    assert not done.violations
    spec = done.definition["spec"]
    assert spec.keys() == {"group", "names", "scope", "versions"}
    for version in spec["versions"]:
        assert version["schema"]["openAPIV3Schema"] == {"type": "object", "properties": {"spec": STRING}}
        assert version["subresources"] == {"status": {}}
        assert version["additionalPrinterColumns"] == [
            {"name": "Spec", "type": "string", "jsonPath": ".spec"}
        ]
    one, other = spec["versions"]
    one["schema"]["openAPIV3Schema"]["properties"]["spec"] = {}
    assert other["schema"]["openAPIV3Schema"]["properties"]["spec"] == STRING, "the copies share their parts"


def test_a_version_keeps_what_it_has_of_its_own() -> None:
    own = {"type": "object", "properties": {"spec": {"type": "integer"}}}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": own}},
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
    ]
    done = upgrade(old(version=None, versions=versions))
    assert [each["schema"]["openAPIV3Schema"] for each in done.definition["spec"]["versions"]] == [
        own,
        {"type": "object"},
    ]


def test_what_v1beta1_took_for_granted() -> None:
    document = old(conversion={"strategy": "Webhook", "webhookClientConfig": {"url": "https://example.com/"}})
    for field in ("scope", "preserveUnknownFields"):
        del document["spec"][field]
    done = upgrade(document)
    assert not done.violations
    assert done.definition["spec"]["scope"] == "Namespaced"
    assert done.definition["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://example.com/"}, "conversionReviewVersions": ["v1beta1"]},
    }
    assert done.definition["spec"]["versions"] == [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", PRESERVE: True}},
        }
    ]
    assert ids(done) == {"review-versions", "no-schema", "unknown-fields"}


def test_what_the_schema_does_not_know_is_kept_at_every_depth() -> None:
    known = {
        "properties": {
            "a": STRING,
            "empty": {"type": "object"},
            "list": {"items": {"properties": {"b": STRING}}},
            "map": {"additionalProperties": {"properties": {"c": STRING}}},
            "either": {"anyOf": [{"required": ["d"]}], "properties": {"d": STRING}},
            "open": {"type": "object", "additionalProperties": True},
            "both": {"type": "object", "properties": {"a": STRING}, "additionalProperties": True},
        }
    }
    document = with_spec(known)
    del document["spec"]["preserveUnknownFields"]
    document["spec"]["validation"]["openAPIV3Schema"]["properties"]["metadata"] = {"type": "object"}
    done = upgrade(document)
    assert not done.violations
    schema = done.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    written = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "other": 1,
        "spec": {
            "a": "a",
            "other": 1,
            "empty": {"other": {"deep": 1}},
            "list": [{"b": "b", "other": 1}],
            "map": {"x": {"c": "c", "other": [{"deep": 1}]}},
            "either": {"d": "d", "other": 1},
            "open": {"x": {"deep": {"b": 1}}},
            "both": {"a": "a", "y": {"deep": 1}},
        },
    }
    (decoded,) = schemas_of(done.definition).values()
    assert ObjectSchema.of(decoded).admit(written).object == written
    assert PRESERVE not in schema["properties"]["metadata"]


def test_what_the_server_sets_is_left_out() -> None:
    document = with_spec(STRING)
    document["metadata"] |= {"creationTimestamp": None, "uid": "1", "labels": {"a": "b"}}
    document["status"] = {"storedVersions": ["v1"]}
    done = upgrade(document)
    assert done.definition["metadata"] == {"name": "widgets.example.com", "labels": {"a": "b"}}
    assert "status" not in done.definition


def test_a_protected_group_needs_an_approval() -> None:
    document = with_spec(STRING, group="example.k8s.io")
    document["metadata"]["name"] = "widgets.example.k8s.io"
    assert ids(upgrade(document)) == {"api-approval"}
    document["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, experimental"}
    assert not ids(upgrade(document))


EITHER = [{"type": "integer"}, {"type": "string"}]
CERTAIN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "properties": ({"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
    "a map": ({"additionalProperties": STRING}, {"type": "object", "additionalProperties": STRING}),
    "items": ({"items": STRING}, {"type": "array", "items": STRING}),
    "a pattern": ({"pattern": "^a$"}, {"type": "string", "pattern": "^a$"}),
    "an enum": ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    "numbers": ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
    "a format": ({"format": "int64"}, {"type": "integer", "format": "int64"}),
    "a boolean": ({"default": False}, {"type": "boolean", "default": False}),
    "int or string": ({"anyOf": EITHER}, {"anyOf": EITHER, "x-kubernetes-int-or-string": True}),
    "string or int": ({"oneOf": EITHER[::-1]}, {"anyOf": EITHER, "x-kubernetes-int-or-string": True}),
    "its format": (
        {"type": "string", "format": "int-or-string"},
        {"anyOf": EITHER, "x-kubernetes-int-or-string": True},
    ),
    "preserved": ({PRESERVE: True}, {PRESERVE: True}),
    "not preserved": ({"type": "object", PRESERVE: False}, {"type": "object"}),
    "the type in all branches": (
        {
            "anyOf": [
                {"type": "string", "pattern": "a"},
                {"type": "string", "description": "b", "pattern": "b"},
            ]
        },
        {"type": "string", "anyOf": [{"pattern": "a"}, {"pattern": "b"}]},
    ),
    "fields of a branch": (
        {"type": "object", "oneOf": [{"required": ["a"], "properties": {"a": {"enum": ["x"]}}}]},
        {
            "type": "object",
            "properties": {"a": STRING},
            "oneOf": [{"required": ["a"], "properties": {"a": {"enum": ["x"]}}}],
        },
    ),
    "a type of a field in all cases": (
        {"type": "object", "allOf": [{"properties": {"v": STRING}}]},
        {"type": "object", "properties": {"v": STRING}, "allOf": [{"properties": {"v": {}}}]},
    ),
    "an embedded object": (
        {
            "x-kubernetes-embedded-resource": True,
            "properties": {"apiVersion": {}, "kind": {"description": "a"}, "metadata": {}},
        },
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"description": "a", "type": "string"},
                "metadata": {"type": "object"},
            },
        },
    ),
    "deep inside": (
        {"items": {"properties": {"a": {"items": {"minLength": 1}}}}},
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": "string", "minLength": 1}}},
            },
        },
    ),
}


@pytest.mark.parametrize(("before", "after"), CERTAIN.values(), ids=CERTAIN)
def test_what_is_certain_is_done(before: dict[str, Any], after: dict[str, Any]) -> None:
    done = upgrade(with_spec(before))
    assert spec_of(done) == after
    assert not done.decisions
    assert not done.violations


OPEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nothing tells the type": ({"description": "a"}, {"description": "a", PRESERVE: True}, "type-unknown"),
    "keywords that disagree": (
        {"pattern": "a", "minItems": 1},
        {"pattern": "a", "minItems": 1, PRESERVE: True},
        "type-unknown",
    ),
    "no items": ({"type": "array"}, {"type": "array", "items": {PRESERVE: True}}, "items-unknown"),
    "types that differ": (
        {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        {"anyOf": [{}, {}], PRESERVE: True},
        "junctor-types-differ",
    ),
    "a type that is excluded": (
        {"type": "object", "not": {"type": "string"}},
        {"type": "object"},
        "junctor-loosened",
    ),
    "a type of a field in some cases": (
        {"type": "object", "anyOf": [{"properties": {"v": STRING}}, {"required": ["w"]}]},
        {
            "type": "object",
            "properties": {"v": STRING},
            "anyOf": [{"properties": {"v": {}}}, {"required": ["w"]}],
        },
        "junctor-field-type",
    ),
    "a default in a branch": (
        {"type": "string", "allOf": [{"default": "a", "pattern": "a"}]},
        {"type": "string", "allOf": [{"pattern": "a"}]},
        "junctor-keyword",
    ),
    "a map in a branch": (
        {"type": "object", "allOf": [{"additionalProperties": STRING}]},
        {"type": "object", "allOf": [{}]},
        "junctor-keyword",
    ),
}


@pytest.mark.parametrize(("before", "after", "decision"), OPEN.values(), ids=OPEN)
def test_what_is_not_certain_is_left_to_a_person(
    before: dict[str, Any], after: dict[str, Any], decision: str
) -> None:
    done = upgrade(with_spec(before))
    assert spec_of(done) == after
    assert decision in ids(done)
    assert not done.violations


def test_the_root_allows_less_than_it_did() -> None:
    metadata = {
        "type": "object",
        "required": ["a"],
        "properties": {"name": STRING, "labels": {"type": "object"}},
    }
    schema = {"properties": {"metadata": metadata}, "additionalProperties": STRING}
    done = upgrade(old(validation={"openAPIV3Schema": schema}))
    assert done.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "properties": {"metadata": {"type": "object", "properties": {"name": STRING}}},
        "type": "object",
        PRESERVE: True,
    }
    assert ids(done) == {"root-metadata", "root-additional-properties"}
    assert not done.violations


def as_old(crd: dict[str, Any]) -> dict[str, Any]:
    """A v1 CRD with one version in the form of v1beta1."""
    (version,) = crd["spec"]["versions"]
    columns = [
        {"JSONPath" if key == "jsonPath" else key: value for key, value in each.items()}
        for each in version["additionalPrinterColumns"]
    ]
    crd = {**crd, "apiVersion": "apiextensions.k8s.io/v1beta1"}
    crd["spec"] = {
        **{key: each for key, each in crd["spec"].items() if key != "versions"},
        "version": version["name"],
        "validation": version["schema"],
        "subresources": version["subresources"],
        "additionalPrinterColumns": columns,
        "preserveUnknownFields": False,
    }
    return crd


@pytest.mark.parametrize("file", CRDS, ids=lambda each: each.stem)
def test_a_structural_schema_comes_through_as_it_is(file: Path) -> None:
    crd = yaml.safe_load(file.read_text(encoding="utf-8"))
    done = upgrade(as_old(crd))
    assert done.definition == crd
    assert not done.decisions


def without_types(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_types(each)
            for key, each in value.items()
            if key != "type" or not isinstance(each, str)
        }
    return [without_types(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", CRDS, ids=lambda each: each.stem)
def test_a_schema_without_types_becomes_one_that_the_server_takes(file: Path) -> None:
    document = as_old(yaml.safe_load(file.read_text(encoding="utf-8")))
    document["spec"]["validation"] = without_types(document["spec"]["validation"])
    done = upgrade(document)
    assert "type-unknown" in ids(done)
    assert not [each for each in done.violations if "type" in each.message]
    assert not [
        each for each in check_creation(done.definition).violations if each.rule.id in ("type", "items")
    ]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"apiVersion": "apiextensions.k8s.io/v1", "spec": {}}, "apiVersion"),
        ({**old(), "spec": []}, "spec"),
        ({}, "api"),
    ],
)
def test_anything_else_is_refused(document: dict[str, Any], field: str) -> None:
    with pytest.raises(NotV1beta1, match=f"^{field}"):
        upgrade(document)


@pytest.mark.parametrize("junk", [None, 1, "a", [], ["a"], [[]], {}, {"a": 1}, True])
@pytest.mark.parametrize(
    "field",
    ["versions", "validation", "subresources", "additionalPrinterColumns", "conversion", "names", "version"],
)
def test_junk_in_a_field_ends_as_an_error_of_that_field(field: str, junk: Any) -> None:
    done = upgrade(old(**{field: junk}))
    assert isinstance(done.violations, tuple)


@pytest.mark.parametrize("junk", [1, True, "a", {"a": 1}, [1]])
def test_junk_instead_of_review_versions(junk: Any) -> None:
    done = upgrade(old(conversion={"strategy": "Webhook", "conversionReviewVersions": junk}))
    assert "conversionReviewVersions" in str(done.violations[0].path)


@pytest.mark.parametrize("junk", [None, 1, "a", [], {}, {"a": 1}, True])
@pytest.mark.parametrize(
    "keyword", ["properties", "items", "allOf", "not", "enum", "type", "additionalProperties"]
)
def test_junk_in_a_schema(keyword: str, junk: Any) -> None:
    assert isinstance(upgrade(with_spec({keyword: junk})).violations, tuple)
