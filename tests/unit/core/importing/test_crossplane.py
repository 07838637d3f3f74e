"""Crossplane's definitions rewritten: what stays, and what is said of what does not."""

from typing import Any

import pytest

from crdkeeper.core.composition.acceptance import accept, with_server_errors
from crdkeeper.core.importing.crossplane import imported, is_of_crossplane
from crdkeeper.core.importing.note import NotImportable
from tests.unit.core.importing.crossplanes import EXAMPLES, at, crossplane

Json = Any


def notes(document: Json) -> list[tuple[str, str, bool]]:
    """Each with its field, the beginning of what is said, and whether it is for a person to decide."""
    return [
        (str(each.path), each.message.partition(":")[0], bool(each.remedy))
        for each in imported(document).notes
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_accepted(name: str) -> None:
    judged = with_server_errors(accept(imported(EXAMPLES[name]).definition))
    assert judged.problems == ()
    assert judged.crd is not None


def test_what_both_have_stays() -> None:
    for name in ("the smallest", "two versions, one deprecated", "defaults", "columns and scale", "rules"):
        document = EXAMPLES[name]
        found = imported(document)
        assert found.notes == ()
        assert found.definition["apiVersion"] == "crdkeeper.dev/v1alpha1"
        assert found.definition["metadata"] == {"name": "stores.example.org"}
        assert found.definition["spec"] == {**document["spec"], "scope": "Namespaced"}


def test_claims_secrets_and_the_scope_of_v1() -> None:
    document = EXAMPLES["v1, with claims and connection secrets"]
    assert notes(document) == [
        (
            "spec.scope",
            "LegacyCluster becomes Cluster; what Crossplane has in spec of a composite is in spec.crdkeeper",
            True,
        ),
        ("spec.claimNames", "dropped", True),
        ("spec.connectionSecretKeys", "dropped", True),
        ("spec.defaultCompositeDeletePolicy", "dropped", False),
    ]
    assert imported(document).definition["spec"].keys() == {"group", "scope", "names", "versions"}
    assert notes(crossplane("v1"))[0][0] == "spec.scope"
    assert imported(crossplane("v1")).definition["spec"]["scope"] == "Cluster"


def test_conversion() -> None:
    assert notes(EXAMPLES["a webhook converts"]) == [("spec.conversion", "dropped", True)]
    assert notes(crossplane(conversion={"strategy": "None"})) == []


def test_a_default_beside_what_is_enforced() -> None:
    document = crossplane(defaultCompositionRef={"name": "a"}, enforcedCompositionRef={"name": "b"})
    assert notes(document) == [("spec.defaultCompositionRef", "dropped", False)]
    assert "defaultCompositionRef" not in imported(document).definition["spec"]
    assert not accept(imported(document).definition).refused


def test_labels_stay_with_the_definition() -> None:
    found = imported(EXAMPLES["names"])
    assert [str(each.path) for each in found.notes] == ["metadata.labels"]
    assert found.definition["metadata"]["labels"] == {"team": "a"}


def test_what_a_server_has_set_is_left_out() -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    document = crossplane(metadata={"uid": "1", "resourceVersion": "2", "annotations": last})
    assert imported({**document, "status": {}}).definition["metadata"] == {
        "name": "stores.example.org",
        "annotations": {"a": "b"},
    }


def test_unknown_fields() -> None:
    document = crossplane(other=1, versions=[at("v1", also=2)])
    assert notes(document) == [("spec.other", "dropped", True), ("spec.versions[0].also", "dropped", True)]
    assert not accept(imported(document).definition).refused


def test_what_crossplane_ignores_takes_effect() -> None:
    document = crossplane(
        versions=[at("v1", spec={"nullable": True}, status={"nullable": True}, root={"title": "A store"})]
    )
    document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["data"] = {"type": "string"}
    base = "spec.versions[0].schema.openAPIV3Schema"
    assert [(path, decide) for path, _, decide in notes(document)] == [
        (f"{base}.title", True),
        (f"{base}.properties[spec].nullable", True),
        (f"{base}.properties[status].nullable", True),
        (f"{base}.properties[data]", True),
    ]


def test_types_that_crossplane_adds() -> None:
    version = at("v1")
    schema = version["schema"]["openAPIV3Schema"]
    del schema["type"], schema["properties"]["spec"]["type"]
    found = imported(crossplane(versions=[version]))
    assert found.notes == ()
    assert not accept(found.definition).refused


@pytest.mark.parametrize(
    ("path", "becomes"),
    [
        (".spec.crossplane.compositionRef.name", ".spec.crdkeeper.compositionRef.name"),
        (".spec.compositionUpdatePolicy", ".spec.crdkeeper.compositionUpdatePolicy"),
        (".spec.compositionReference", None),
        (".spec.region", None),
    ],
)
def test_columns_follow(path: str, becomes: str | None) -> None:
    column = {"name": "C", "type": "string", "jsonPath": path}
    found = imported(crossplane(versions=[at("v1", additionalPrinterColumns=[column])]))
    (made,) = found.definition["spec"]["versions"][0]["additionalPrinterColumns"]
    assert made["jsonPath"] == (becomes or path)
    assert [each.remedy for each in found.notes] == ([""] if becomes else [])
    assert column["jsonPath"] == path


@pytest.mark.parametrize("path", [".spec.claimRef.name", ".spec.crossplane.resourceRefs[0].name"])
def test_columns_without_a_counterpart(path: str) -> None:
    column = {"name": "C", "type": "string", "jsonPath": path}
    (note,) = imported(crossplane(versions=[at("v1", additionalPrinterColumns=[column])])).notes
    assert note.remedy == "Remove the column."


def test_a_field_of_the_users_with_a_name_of_crossplanes_stays() -> None:
    column = {"name": "C", "type": "string", "jsonPath": ".spec.compositionRef"}
    spec = {"properties": {"compositionRef": {"type": "string"}, "region": {"type": "string"}}}
    assert notes(crossplane(versions=[at("v1", spec=spec, additionalPrinterColumns=[column])])) == []


def test_anything_else_is_not_of_crossplane() -> None:
    assert not is_of_crossplane(
        {"kind": "CompositeResourceDefinition", "apiVersion": "crdkeeper.dev/v1alpha1"}
    )
    for document in ({}, {**crossplane(), "kind": "Composition"}, {**crossplane(), "spec": 5}):
        with pytest.raises(NotImportable):
            imported(document)


@pytest.mark.parametrize("broken", [5, [], [5], "x", None, {"a": 1}])
def test_fields_of_another_shape_do_no_harm(broken: Json) -> None:
    version = at("v1", additionalPrinterColumns=broken)
    whole = at("v1")
    whole["schema"]["openAPIV3Schema"]["properties"] = broken
    for document in (
        crossplane(versions=broken, names=broken, scope=broken),
        crossplane(versions=[version], metadata={"labels": broken, "annotations": broken}),
        crossplane(versions=[whole], enforcedCompositionRef=broken, defaultCompositionRef={"name": "a"}),
    ):
        accept(imported(document).definition)
