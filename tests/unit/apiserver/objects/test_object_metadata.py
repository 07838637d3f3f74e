"""The rules for an object's own metadata, and for embedded resources."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from tests.unit.apiserver.objects.samples import EMBEDDED, TEXT, admitted, decoded, resource, said, thing

SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
EVENT = {"uid": "u", "name": "e", "kind": "Event", "apiVersion": "/v1"}
CONTROLLER = {
    "apiVersion": "v1",
    "blockOwnerDeletion": False,
    "controller": True,
    "kind": "Pod",
    "name": "p",
    "uid": "u",
}
SHOWN = '{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true,"blockOwnerDeletion":false}'


def own(metadata: Any, *, old: Any = None) -> list[str]:
    before = None if old is None else {**thing(), "metadata": old}
    return said(resource().admit({**thing(), "metadata": metadata}, before))


@pytest.mark.parametrize("metadata", [{"name": "a.b"}, {"generateName": "a-"}, {"generateName": "a--"}])
def test_good_names(metadata: Any) -> None:
    assert own(metadata) == []


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({"name": "A"}, ["metadata.name"]),
        ({"name": "a", "generateName": "AA"}, ["metadata.generateName"]),
        # The server checks the prefix without its dash and the letter before, but then the whole name.
        ({"generateName": "A-"}, ["metadata.name"]),
        ({"generateName": "AA-"}, ["metadata.generateName", "metadata.name"]),
    ],
)
def test_bad_names(metadata: Any, fields: list[str]) -> None:
    words = own(metadata)
    assert [each.partition(":")[0] for each in words] == fields
    assert all(SUBDOMAIN in each for each in words)


@pytest.mark.parametrize(
    "part",
    [
        {"x-kubernetes-validations": [{"rule": "self.metadata.name.size() < 60"}]},
        {
            "properties": {
                "metadata": {"type": "object", "properties": {"name": {**TEXT, "maxLength": 5}}},
            }
        },
    ],
)
def test_a_name_that_the_server_makes_up_is_left_to_it(part: dict[str, Any]) -> None:
    schema = ObjectSchema.of(decoded({"type": "object", **part}))
    generated = {"generateName": "abc-"}
    assert schema.create({**thing(), "metadata": generated}).accepted is None
    assert schema.create({**thing(), "metadata": {"name": "abc", **generated}}).accepted is True
    assert schema.rewrite({**thing(), "metadata": {"name": "abc", **generated}}).accepted is True


def test_no_name() -> None:
    assert own({}) == ["metadata.name: Required value: name or generateName is required"]


def test_finalizers_are_checked_on_creation_only() -> None:
    bad = {"name": "a", "finalizers": ["a b"]}
    assert [each.partition(":")[0] for each in own(bad)] == ["metadata.finalizers"]
    assert own(bad, old={"name": "a"}) == []


def test_labels_are_checked_always() -> None:
    bad = {"name": "a", "labels": {"a b": "-"}}
    assert [each.partition(":")[0] for each in own(bad, old=bad)] == ["metadata.labels", "metadata.labels"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, ["spec.a.apiVersion: Required value", "spec.a.kind: Required value"]),
        (
            {"apiVersion": "", "kind": ""},
            [
                'spec.a.apiVersion: Invalid value: "": must not be empty',
                'spec.a.kind: Invalid value: "": must not be empty',
            ],
        ),
        (
            {"apiVersion": "a/b/c", "kind": "Pod"},
            ['spec.a.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}},
            ["spec.a.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"ownerReferences": [{"apiVersion": "v1"}]}},
            [
                f"spec.a.metadata.ownerReferences[0].{key}: Required value: must not be empty"
                for key in ("kind", "name", "uid")
            ],
        ),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}}, []),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"ownerReferences": [EVENT]}},
            [
                'spec.a.metadata.ownerReferences[0]: Invalid value: {"apiVersion":"/v1","kind":"Event",'
                '"name":"e","uid":"u"}: /v1, Kind=Event is disallowed from being an owner'
            ],
        ),
        # Go prints the fields of a struct in their order.
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"ownerReferences": [CONTROLLER, CONTROLLER]}},
            [
                f"spec.a.metadata.ownerReferences: Invalid value: [{SHOWN},{SHOWN}]: Only one reference can "
                'have Controller set to true. Found "true" in references for Pod/p and Pod/p'
            ],
        ),
        # Of U+0130, Go makes an i.
        ({"apiVersion": "v1", "kind": "B\u0130n", "metadata": {"annotations": {"B\u0130n": ""}}}, []),
    ],
)
def test_embedded(value: Any, words: list[str]) -> None:
    assert said(admitted(EMBEDDED, value)) == words


@pytest.mark.parametrize("char", ["\u0378", "\u2ffc"])
def test_characters_that_only_some_versions_of_unicode_have(char: str) -> None:
    managers = [{"manager": f"a{char}", "operation": "Apply"}]
    found = admitted(EMBEDDED, {"apiVersion": "v1", "kind": "Pod", "metadata": {"managedFields": managers}})
    assert found.accepted is None
