"""The rules for creating a CRD, each with the API server's path and message (Kubernetes 1.37)."""

import copy
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from tests.unit.apiserver.definitions.cases import (
    CONVERSIONS,
    NAMES,
    SCHEMAS,
    SHARED,
    VERSIONS,
    A,
    Change,
    Crd,
    a,
    definition,
    first,
    names,
    schema,
    version,
)


def said(crd: Crd) -> list[str]:
    return [f"{each.path}: {each.message}" for each in check_creation(crd).violations]


def test_good() -> None:
    assert check_creation(definition(version("v2"))).violations == []


@pytest.mark.parametrize(("change", "messages"), NAMES + VERSIONS + SCHEMAS + CONVERSIONS)
def test_refused(change: Change, messages: list[str]) -> None:
    crd = definition()
    change(crd)
    assert said(crd) == messages


def test_values_that_the_server_prints_as_json() -> None:
    # Found by comparison: for pointers and named types it shows JSON, for other strings a quotation of Go's.
    crd = definition()
    first(deprecationWarning="\u200b", subresources={"scale": {"labelSelectorPath": ".<"}})(crd)
    names(shortNames=["\u200b"])(crd)
    values = {str(each.path): each.value for each in check_creation(crd).violations}
    assert values["spec.versions[0].deprecationWarning"] == '"\u200b"'
    assert values["spec.subresources.scale.labelSelectorPath"] == '".\\u003c"'
    assert values["spec.names.shortNames[0]"] == '"\\u200b"'


@pytest.mark.parametrize("char", ["\u0378", "\u2ffc"])
def test_characters_that_only_some_versions_of_unicode_have(char: str) -> None:
    crd = definition()
    first(deprecated=True, deprecationWarning=f"Use v2 {char}")(crd)
    report = check_creation(crd)
    assert report.violations == []
    assert [str(each.path) for each in report.unchecked] == ["spec.versions[0].deprecationWarning"]


def test_names_in_the_lower_case_of_go() -> None:
    # Of U+0130, Go makes an i, and Python an i with a dot above.
    crd = definition()
    names(kind="W\u0130dget")(crd)
    crd["metadata"]["annotations"] = {"W\u0130dget": ""}
    assert said(crd) == []


def test_a_message_that_is_no_white_space_for_go() -> None:
    crd = definition()
    a({"type": "string", "x-kubernetes-validations": [{"rule": "true", "message": "\x1f"}]})(crd)
    assert said(crd) == []


def test_an_owner_that_is_named_twice_counts_once() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "7", "controller": True}
    nameless = {"apiVersion": "v1", "kind": "Pod", "uid": "8"}
    crd = definition()
    crd["metadata"]["ownerReferences"] = [owner, dict(reversed(owner.items())), nameless, owner]
    assert said(crd) == ["metadata.ownerReferences[1].name: Required value: must not be empty"]


def test_status_subresource_restricts_the_root() -> None:
    crd = definition()
    first(subresources={"status": {}})(crd)
    schema(description="fine")(crd)
    assert said(crd) == []
    schema(maxProperties=3)(crd)
    (message,) = said(crd)
    assert message.startswith(f"{SHARED}: Invalid value: only [Description Type Format Title ")
    assert message.endswith(
        "fields are allowed at the root of the schema if the status subresource is enabled"
    )


def test_paths_of_versions_that_differ() -> None:
    crd = definition(version("v2"))
    a({})(crd)
    assert said(crd) == [
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].type: Required value: "
        "must not be empty for specified object fields"
    ]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ({"default": 1}, {"default": 1}, True),
        ({"default": 1}, {"default": 1.0}, False),
        ({"default": 1}, {"default": True}, False),
        ({"default": {"a": [1]}}, {"default": {"a": [1]}}, True),
        ({"default": {"a": [1]}}, {"default": {"a": [1.0]}}, False),
        ({"maximum": 1}, {"maximum": 1.0}, True),
        ({"required": []}, {}, True),
        ({"not": {}}, {}, False),
    ],
)
def test_what_makes_versions_share_a_schema(one: Any, other: Any, shared: bool) -> None:
    crd = definition(version("v2"))
    for each, keywords in zip(crd["spec"]["versions"], (one, other), strict=True):
        each["schema"]["openAPIV3Schema"]["properties"]["spec"] = {**keywords}
    paths = {each.partition(".openAPIV3Schema")[0] for each in said(crd)}
    assert ("spec.validation" in paths) is shared


def test_a_crd_that_cannot_be_decoded_is_refused_for_that_alone() -> None:
    crd = definition()
    crd["spec"]["scope"] = "Nowhere"
    a({"type": 1, "maxLength": "3", "required": "b"})(crd)
    path = f"{A}".replace(SHARED, "spec.versions[0].schema.openAPIV3Schema")
    assert said(crd) == [
        f"{path}.type: Invalid value: 1: must be a string, not a number",
        f'{path}.maxLength: Invalid value: "3": must be a 64-bit integer, not a string',
        f'{path}.required: Invalid value: "b": must be an array, not a string',
    ]


def test_old_api_version() -> None:
    crd = {**definition(), "apiVersion": "apiextensions.k8s.io/v1beta1"}
    assert said(crd) == [
        'apiVersion: Invalid value: "apiextensions.k8s.io/v1beta1": must be apiextensions.k8s.io/v1'
    ]


def test_unknown_fields_are_warned_of() -> None:
    crd = definition()
    a({"type": "string", "x-kubernetes-preserve-unknown-field": True})(crd)
    report = check_creation(crd)
    assert report.violations == []
    assert [each.message for each in report.warnings] == [
        'unknown field "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a]'
        '.x-kubernetes-preserve-unknown-field"'
    ]


def test_the_document_is_not_changed() -> None:
    crd = definition(version("v2"))
    before = copy.deepcopy(crd)
    check_creation(crd)
    assert crd == before
