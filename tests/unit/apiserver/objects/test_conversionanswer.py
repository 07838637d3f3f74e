"""What the API server takes from a webhook's answer; tests/cluster compares it with the real one."""

import copy
from typing import Any

import pytest

from crdkeeper.apiserver.objects.conversionanswer import RefusedAnswer, restored, taken

Json = dict[str, Any]
WEBHOOK = "conversion webhook for example.com/v1, Kind=Widget "
ORIGINAL: Json = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "b", "uid": "u", "labels": {"l": "1"}, "finalizers": ["x"]},
    "spec": {"old": 1},
}


def converted(**metadata: Any) -> Json:
    return {
        "apiVersion": "example.com/v2",
        "kind": "Widget",
        "metadata": {**ORIGINAL["metadata"], **metadata},
        "spec": {"new": 1},
    }


def answer(*objects: Any, **response: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "response": {
            "uid": "1",
            "result": {"status": "Success"},
            "convertedObjects": list(objects),
            **response,
        },
    }


def refusal(reviewed: Any) -> str:
    with pytest.raises(RefusedAnswer) as refused:
        taken(reviewed, ORIGINAL, "example.com/v2", "1")
    return str(refused.value)


def test_labels_and_annotations_are_taken_and_no_other_metadata() -> None:
    given = converted(labels={"l": "2"}, annotations={"A": "b\n"}, finalizers=[], generation="?")
    before = copy.deepcopy((ORIGINAL, given))
    assert taken(answer(given), ORIGINAL, "example.com/v2", "1") == {
        **given,
        "metadata": {**ORIGINAL["metadata"], "labels": {"l": "2"}, "annotations": {"A": "b\n"}},
    }
    assert (ORIGINAL, given) == before
    without = taken(answer(converted(labels=None)), ORIGINAL, "example.com/v2", "1")
    assert "labels" not in without["metadata"]


def test_a_bad_label_of_long_ago_may_stay() -> None:
    old = {**ORIGINAL, "metadata": {**ORIGINAL["metadata"], "labels": {"a b": "c"}}}
    given = converted(labels={"a b": "c"})
    assert restored(old, given, "example.com/v2")["metadata"]["labels"] == {"a b": "c"}
    with pytest.raises(RefusedAnswer, match=r"metadata\.labels: Invalid value: "):
        restored(old, converted(labels={"a b": "d"}), "example.com/v2")


@pytest.mark.parametrize(
    ("reviewed", "message"),
    [
        (5, "failed: "),
        ({**answer(converted()), "kind": "Other"}, "failed: "),
        (answer(converted(), uid=5), "failed: "),
        ({**answer(), "response": None}, "failed: no response provided"),
        (answer(converted(), uid='"'), 'failed: expected response.uid="1", got "\\""'),
        (answer(converted(), result=None), "failed: response.result.status was '', not 'Success'"),
        (answer(converted(), result={"status": "Failed", "message": "no"}), "failed: no"),
        (answer(), "returned 0 objects, expected 1"),
        (answer(converted(), converted()), "returned 2 objects, expected 1"),
        (
            answer({**converted(), "apiVersion": "example.com/v1"}),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received "
            "example.com/v1)",
        ),
        (
            answer({**converted(), "kind": "Other"}),
            "returned invalid object at index 0: invalid kind (expected Widget, received Other)",
        ),
        (answer(converted(name="c")), "returned invalid object: must have the same name: a != c"),
        (answer(converted(namespace=5)), "returned invalid object: must have the same namespace: b != "),
        (answer(converted(uid="v")), "returned invalid object: must have the same UID: u != v"),
        (
            answer(converted(labels={"a": 1})),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted "
            "object",
        ),
        (
            answer(converted(annotations=[])),
            "returned invalid metadata: invalid metadata.annotations of type []interface {} in converted "
            "object",
        ),
        (
            answer(converted(annotations={"a": "x" * (256 << 10)})),
            "returned invalid metadata: metadata.annotation: Too long: may not be more than 262144 bytes",
        ),
    ],
)
def test_refusals(reviewed: Any, message: str) -> None:
    assert refusal(reviewed) == WEBHOOK + message


@pytest.mark.parametrize("metadata", [None, 1.5, True, "x", []])
def test_what_is_no_metadata_names_no_object(metadata: Any) -> None:
    assert "must have the same name: a != " in refusal(answer({**converted(), "metadata": metadata}))


def test_what_is_no_object_is_refused() -> None:
    for bad, message in (
        (None, "unexpected end of JSON input"),
        ("x", "json: "),
        ({}, "Object 'Kind' is missing"),
    ):
        assert refusal(answer(bad)).startswith(message)


def test_metadata_of_an_object_without_a_name() -> None:
    nameless = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}}
    made = {"apiVersion": "example.com/v2", "kind": "Widget"}
    with pytest.raises(RefusedAnswer, match="missing metadata in converted object"):
        restored(nameless, made, "example.com/v2")
    with pytest.raises(RefusedAnswer, match="invalid metadata of type <nil> in converted object"):
        restored(nameless, {**made, "metadata": None}, "example.com/v2")
