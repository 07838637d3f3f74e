"""The CRD that is made of a CompositeResourceDefinition."""

import copy
import json
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.core.composition.acceptance import accept
from tests.unit.core.composition.documents import document, schema, version

Json = Any


def made(value: Json) -> Json:
    """The CRD, which the API server takes."""
    judged = accept(value)
    assert not judged.refused, judged.problems
    assert judged.crd is not None
    assert check_creation(judged.crd).violations == []
    return judged.crd


def root(crd: Json, index: int = 0) -> Json:
    return crd["spec"]["versions"][index]["schema"]["openAPIV3Schema"]


def test_names_are_completed() -> None:
    crd = made(document())
    assert crd["metadata"] == {"name": "databases.platform.example.com"}
    assert crd["spec"]["names"] == {
        "kind": "Database",
        "listKind": "DatabaseList",
        "plural": "databases",
        "singular": "database",
        "categories": ["composite"],
    }
    assert crd["spec"]["scope"] == "Namespaced"
    assert "conversion" not in crd["spec"]


def test_names_are_taken_over() -> None:
    names = {
        "kind": "Database",
        "plural": "databases",
        "singular": "db",
        "listKind": "Dbs",
        "shortNames": ["dbs"],
        "categories": ["composite", "all"],
    }
    crd = made(document(names=names, scope="Cluster"))
    assert crd["spec"]["names"] == names
    assert crd["spec"]["scope"] == "Cluster"


def test_versions_are_taken_over() -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    column = {"name": "Engine", "type": "string", "jsonPath": ".spec.engine", "priority": 1}
    crd = made(
        document(
            version(
                "v2",
                schema(status=status),
                subresources={"scale": scale},
                additionalPrinterColumns=[column],
                selectableFields=[{"jsonPath": ".spec.engine"}],
            ),
            version("v1", referenceable=False, served=False),
            version("v1beta1", referenceable=False, deprecated=True, deprecationWarning="Use v2."),
        )
    )
    first, second, third = crd["spec"]["versions"]
    assert [(each["name"], each["served"], each["storage"]) for each in (first, second, third)] == [
        ("v2", True, True),
        ("v1", False, False),
        ("v1beta1", True, False),
    ]
    assert first["subresources"] == {"status": {}, "scale": scale}
    assert second["subresources"] == {"status": {}}
    assert first["selectableFields"] == [{"jsonPath": ".spec.engine"}]
    assert [each["name"] for each in first["additionalPrinterColumns"]] == [
        *("Engine", "Ready", "Synced", "Composition", "Age")
    ]
    assert first["additionalPrinterColumns"][0] == column
    assert (third["deprecated"], third["deprecationWarning"]) == (True, "Use v2.")
    assert "deprecated" not in first


def test_a_column_of_the_users_stands_for_ours() -> None:
    age = {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    crd = made(document(version(additionalPrinterColumns=[age])))
    names = [each["name"] for each in crd["spec"]["versions"][0]["additionalPrinterColumns"]]
    assert names == ["AGE", "Ready", "Synced", "Composition"]


def test_labels_and_annotations() -> None:
    value = document(metadata={"uid": "1-2", "labels": {"not": "copied"}})
    value["spec"]["metadata"] = {
        "labels": {"team": "data"},
        "annotations": {"example.com/a": "b", "crdkeeper.dev/definition-uid": "forged"},
    }
    assert made(value)["metadata"] == {
        "name": "databases.platform.example.com",
        "labels": {"team": "data"},
        "annotations": {"example.com/a": "b", "crdkeeper.dev/definition-uid": "1-2"},
    }


def test_offline_a_crd_belongs_to_nobody() -> None:
    assert made(document())["metadata"] == {"name": "databases.platform.example.com"}


def test_every_keyword_stays_at_every_depth() -> None:
    spec = {
        "type": "object",
        "description": "What is wanted.",
        "nullable": True,
        "required": ["a"],
        "x-kubernetes-map-type": "granular",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": "has(self.a)", "message": "a"}],
        "oneOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"a": {"maximum": 3}}}],
        "properties": {
            "a": {"type": "integer", "multipleOf": 2, "format": "int64", "example": 4, "title": "A"},
            "b": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "nullable": False,
                    "properties": {
                        "name": {"type": "string", "enum": ["x", "y"]},
                        "v": {"x-kubernetes-int-or-string": True, "nullable": True, "default": None},
                    },
                },
            },
        },
    }
    whole = schema(
        spec,
        {"type": "object", "properties": {"x": {"type": "string"}}, "externalDocs": {"url": "https://a.b"}},
        description="A database.",
        required=["spec"],
        externalDocs={"description": "More"},
        **{"x-kubernetes-validations": [{"rule": "self.spec.a > 0", "reason": "FieldValueInvalid"}]},
    )
    crd = made(document(version(of=whole)))
    assert users(root(crd)) == whole


def users(found: Json) -> Json:
    """The schema without what is added."""
    found = copy.deepcopy(found)
    properties = found["properties"]
    del properties["metadata"]
    del properties["spec"]["properties"]["crdkeeper"]
    for name in ("crdkeeper", "conditions", "observedGeneration"):
        del properties["status"]["properties"][name]
    properties["status"].pop("default", None)
    return found


def test_the_definition_and_the_schema_stay_as_they_are() -> None:
    value = document()
    before = copy.deepcopy(value)
    made(value)
    assert value == before


def test_it_is_the_same_each_time_and_shares_nothing() -> None:
    one, other = made(document()), made(document())
    assert json.dumps(one) == json.dumps(other)
    root(one)["properties"]["spec"]["properties"].clear()
    assert root(made(document())) == root(other)


def test_a_schema_without_anything() -> None:
    found = root(made(document(version(of={}))))
    assert found["type"] == "object"
    assert found["properties"]["spec"]["properties"].keys() == {"crdkeeper"}
    assert found["properties"]["status"]["default"] == {"observedGeneration": -1}


def test_what_is_unknown_is_kept_where_the_root_keeps_it() -> None:
    preserve = "x-kubernetes-preserve-unknown-fields"
    found = root(made(document(version(of={"type": "object", preserve: True}))))
    assert found["properties"]["spec"][preserve] is True
    assert found["properties"]["status"][preserve] is True


@pytest.mark.parametrize(("given", "most"), [(None, 63), (100, 63), (10, 10)])
def test_names_of_composites_have_at_most_63_characters(given: int | None, most: int) -> None:
    name = {"type": "string", "pattern": "^[a-z]+$", **({"maxLength": given} if given is not None else {})}
    whole = schema()
    whole["properties"]["metadata"] = {"type": "object", "properties": {"name": name}}
    found = root(made(document(version(of=whole))))["properties"]["metadata"]["properties"]["name"]
    assert found == {"type": "string", "pattern": "^[a-z]+$", "maxLength": most}


def test_a_default_of_status_is_completed() -> None:
    status = {"type": "object", "properties": {"phase": {"type": "string"}}, "default": {"phase": "New"}}
    found = root(made(document(version(of=schema(status=status)))))
    assert found["properties"]["status"]["default"] == {"phase": "New", "observedGeneration": -1}


FORBIDDING = [
    {"status": {"type": "object", "required": ["phase"], "properties": {"phase": {"type": "string"}}}},
    {
        "status": {
            "type": "object",
            "properties": {"phase": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "has(self.phase)"}],
        }
    },
    {"x-kubernetes-validations": [{"rule": "!has(self.status) || has(self.status.conditions)"}]},
]


@pytest.mark.parametrize("parts", FORBIDDING)
def test_no_version_has_a_first_status_if_one_cannot(parts: Json) -> None:
    crd = made(document(version("v2"), version("v1", schema(**parts), referenceable=False)))
    for i in range(2):
        status = root(crd, i)["properties"]["status"]
        assert "default" not in status
        assert status["properties"]["observedGeneration"]["default"] == -1
