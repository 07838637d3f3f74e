"""The v1 form of old manifests, as converted by the API server, and the paths back to their fields."""

from typing import Any

import pytest

from crdkeeper.core.upgrade.v1form import MAX_VALUES, TooManyValues, check_size, v1_form

SCHEMA = {"properties": {"spec": {"type": "object"}}}
COLUMN = {"name": "Size", "type": "string", "JSONPath": ".spec.size"}


def crd(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}, **spec},
    }


def at(document: Any, steps: tuple[str | int, ...]) -> Any:
    for step in steps:
        document = document[step]
    return document


def test_a_version_of_its_own_field() -> None:
    old = crd(
        version="v1",
        validation={"openAPIV3Schema": SCHEMA},
        additionalPrinterColumns=[COLUMN],
        subresources={"status": {}},
    )
    form = v1_form(old)
    assert form.value["apiVersion"] == "apiextensions.k8s.io/v1"
    spec = form.value["spec"]
    assert spec == {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "preserveUnknownFields": True,
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
                "subresources": {"status": {}},
            }
        ],
    }
    assert form.written is old
    assert old["spec"]["additionalPrinterColumns"] == [COLUMN]
    assert "JSONPath" in COLUMN


def test_what_versions_share_replaces_their_own() -> None:
    versions = [
        {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {}}},
        {"name": "v1", "served": True, "storage": False},
    ]
    spec = v1_form(crd(versions=versions, validation={"openAPIV3Schema": SCHEMA}, version="v2")).value["spec"]
    assert [each["schema"]["openAPIV3Schema"] for each in spec["versions"]] == [SCHEMA, SCHEMA]
    assert "version" not in spec


@pytest.mark.parametrize(
    "stored", [{"preserveUnknownFields": False, "scope": "Cluster"}, {"versions": 3}, {}]
)
def test_what_is_given_stays(stored: dict[str, Any]) -> None:
    assert stored.items() <= v1_form(crd(**stored)).value["spec"].items()


def test_conversion() -> None:
    client = {"service": {"name": "webhook", "namespace": "a"}}
    old = crd(version="v1", conversion={"strategy": "Webhook", "webhookClientConfig": client})
    assert v1_form(old).value["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1beta1"]},
    }
    assert v1_form(crd(conversion={"strategy": "None"})).value["spec"]["conversion"] == {"strategy": "None"}


def test_each_field_leads_back_to_where_the_file_has_it() -> None:
    old = crd(
        version="v1",
        validation={"openAPIV3Schema": SCHEMA},
        additionalPrinterColumns=[COLUMN],
        conversion={"strategy": "Webhook", "conversionReviewVersions": ["v1"]},
    )
    form = v1_form(old)
    versions = ("spec", "versions", 0)
    for steps in (
        (*versions, "schema", "openAPIV3Schema", "properties", "spec", "type"),
        (*versions, "additionalPrinterColumns", 0, "name"),
        (*versions, "additionalPrinterColumns", 0, "jsonPath"),
        (*versions, "name"),
        ("spec", "conversion", "webhook", "conversionReviewVersions", 0),
        ("spec", "conversion", "strategy"),
        ("spec", "group"),
        ("metadata", "name"),
    ):
        assert at(form.value, steps) == at(old, form.origin(steps)), steps
    assert form.origin(versions) == ("spec", "version")


def test_versions_with_columns_of_their_own() -> None:
    versions = [{"name": "v1", "additionalPrinterColumns": [COLUMN]}]
    form = v1_form(crd(versions=versions))
    steps = ("spec", "versions", 0, "additionalPrinterColumns", 0, "jsonPath")
    assert at(form.value, steps) == ".spec.size"
    assert form.origin(steps) == (*steps[:-1], "JSONPath")


@pytest.mark.parametrize("spec", [None, 3, {"versions": [3, None]}, {"versions": {}, "validation": 1}])
def test_wrong_types_are_left_for_others_to_refuse(spec: Any) -> None:
    old = crd() | {"spec": spec}
    form = v1_form(old)
    assert form.value["kind"] == "CustomResourceDefinition"
    assert form.origin(("spec", "versions", 1)) == ("spec", "versions", 1)


def test_a_schema_for_each_of_many_versions_is_not_read() -> None:
    fields = {f"f{i}": {"type": "string"} for i in range(MAX_VALUES // 100)}
    versions = [{"name": f"v{i}"} for i in range(100)]
    old = crd(versions=versions, validation={"openAPIV3Schema": {"properties": fields}})
    with pytest.raises(TooManyValues):
        v1_form(old)
    with pytest.raises(TooManyValues):
        check_size(old)
    old["spec"]["versions"] = versions[:10]
    assert len(v1_form(old).value["spec"]["versions"]) == 10
