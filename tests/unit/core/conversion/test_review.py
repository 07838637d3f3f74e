"""ConversionReview: all objects of a request or none, naming the one at fault."""

from typing import Any

import pytest

from crdkeeper.core.conversion.review import BadReview, answer
from tests.unit.core.conversion.samples import GROUP, INTEGER, STRING, at, compiled, obj

CONVERSION = compiled(
    obj(port=INTEGER),
    {"v2": (obj(port=STRING), "- {hub: spec.port, spoke: spec.port, cast: true, refuse: true}")},
)


def review(*objects: Any, to: str = f"{GROUP}/v1", version: str = "v1", **fields: Any) -> dict[str, Any]:
    request = {"uid": "7", "desiredAPIVersion": to, "objects": list(objects), **fields}
    return {"apiVersion": f"apiextensions.k8s.io/{version}", "kind": "ConversionReview", "request": request}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_all_objects_in_their_order(version: str) -> None:
    objects = [at("v2", {"port": str(i)}) for i in range(3)] + [at("v1", {"port": 3})]
    done = answer(review(*objects, version=version), CONVERSION)
    assert (done.objects, done.error) == (4, "")
    assert done.review == {
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "kind": "ConversionReview",
        "response": {
            "uid": "7",
            "convertedObjects": [at("v1", {"port": i}) for i in range(4)],
            "result": {"status": "Success"},
        },
    }


def test_too_little_memory_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(type(CONVERSION), "convert", full)
    with pytest.raises(MemoryError):
        answer(review(at("v2", {"port": "1"})), CONVERSION)


def test_none_if_one_cannot_be_converted() -> None:
    bad = at("v2", {"port": "http"}, name="bad", namespace="here")
    done = answer(review(at("v2", {"port": "1"}), bad), CONVERSION)
    assert done.objects == 0
    assert done.error == "CronTab here/bad: spec.port: a string that is no integer"
    assert done.review["response"] == {
        "uid": "7",
        "convertedObjects": [],
        "result": {"status": "Failed", "message": done.error},
    }


@pytest.mark.parametrize("to", ["v1", "other/v1", f"{GROUP}/v9", ""])
def test_a_version_that_is_not_known(to: str) -> None:
    done = answer(review(at("v2", {}), to=to), CONVERSION)
    assert done.review["response"]["result"]["status"] == "Failed"
    assert "none of the versions known here: v1, v2" in done.error


def test_an_object_that_is_nested_too_deep() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    rules = "- {hub: spec.extra, aside: true}"
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    conversion = compiled(obj(extra=anything, a=anything), {"v2": (obj(a=anything), rules)})
    done = answer(review(at("v1", {"extra": deep}), to=f"{GROUP}/v2"), conversion)
    assert done.error


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "kind"),
        ([], "kind"),
        ({**review(), "apiVersion": "v1"}, "apiVersion"),
        ({**review(), "request": []}, "request: "),
        (review(uid=1), "request.uid"),
        (review(desiredAPIVersion=None), "request.desiredAPIVersion"),
        (review(objects={}), "request.objects"),
        (review(objects=[1]), "request.objects"),
    ],
)
def test_no_review(value: Any, words: str) -> None:
    with pytest.raises(BadReview, match=words):
        answer(value, CONVERSION)
