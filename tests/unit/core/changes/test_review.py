"""Which requests are changes of CRDs. Nothing else may be judged, and nothing may break the judge."""

import json
from typing import Any

import pytest

from crdkeeper.core.changes.review import DeletionRequest, read_change, response
from crdkeeper.core.conversion.review import BadReview
from tests.unit.core.changes.builders import GROUP, NAME, change, definition, deletion, review


def test_a_change_is_read() -> None:
    found = change(definition(labels={"a": "old"}), definition(labels={"a": "new"}, annotations={"b": "c"}))
    assert (found.uid, found.name, found.group, found.plural, found.kind) == (
        "7",
        NAME,
        GROUP,
        "widgets",
        "Widget",
    )
    assert found.labels == {"a": "old"}
    assert (found.annotation("b"), found.annotation("none")) == ("c", "")


def test_a_new_definition_has_its_own_labels() -> None:
    assert change(None, definition(labels={"a": "new"})).labels == {"a": "new"}


def test_a_deletion_is_read() -> None:
    assert read_change(deletion(definition())) == DeletionRequest("7", definition())


@pytest.mark.parametrize("old", [None, "CRD", {}, {"metadata": {"name": NAME}, "spec": {}}])
def test_a_deletion_of_something_else_is_refused(old: Any) -> None:
    with pytest.raises(BadReview):
        read_change(deletion(old))


def _with(path: str, value: Any) -> bytes:
    body = json.loads(review(definition(), definition()))
    *parents, last = path.split(".")
    place = body
    for each in parents:
        place = place[each]
    place[last] = value
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"kind":"AdmissionReview"}',
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b"[" + b"{}," * 2_000_000 + b"{}]",
        _with("kind", "ConversionReview"),
        _with("apiVersion", "admission.k8s.io/v1beta1"),
        _with("request", []),
        _with("request.uid", 7),
        _with("request.object", None),
        _with("request.object", "CRD"),
        _with("request.object.spec", []),
        _with("request.object.spec.names", "widgets"),
        _with("request.object.spec.group", {"a": 1}),
        _with("request.object.metadata", None),
        _with("request.object.metadata.labels", ["a"]),
        _with("request.object.metadata.labels", {"a": 1}),
        _with("request.object.metadata.annotations", "a"),
        _with("request.oldObject", []),
        _with("request.oldObject.spec.group", "other.example.com"),
    ],
    ids=range(23),
)
def test_what_is_no_change_is_refused(body: bytes) -> None:
    with pytest.raises(BadReview):
        read_change(body)


def test_a_change_passes_without_a_refusal() -> None:
    assert response("7")["response"] == {"uid": "7", "allowed": True}
    said = response("7", ["careful"], "no")["response"]
    assert said["allowed"] is False
    assert said["status"]["message"] == "no"
    assert said["warnings"] == ["careful"]
