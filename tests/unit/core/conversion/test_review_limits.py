"""The limits of a review, and the answer if the conversion itself fails."""

from collections.abc import Mapping
from typing import Any, cast

import orjson
import pytest

from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from crdkeeper.core.conversion.review import MAX_VALUES, BadReview, answered


class Failing:
    """A conversion with a bug for one object."""

    group, versions = "example.com", ("v1", "v2")

    def convert(self, value: Mapping[str, Any], version: str, tally: ConversionTally) -> dict[str, Any]:
        if value["metadata"]["name"] == "bad":
            raise KeyError("flaw")
        return dict(value)


def review(*objects: Any) -> bytes:
    request = {"uid": "7", "desiredAPIVersion": "example.com/v2", "objects": objects}
    return orjson.dumps(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    )


def named(name: str) -> dict[str, Any]:
    return {"kind": "CronTab", "metadata": {"name": name}}


def test_a_flaw_of_ours_names_the_object() -> None:
    conversion = cast(Conversion, Failing())
    assert answered(review(named("good")), conversion).objects == 1
    reply = answered(review(named("good"), named("bad")), conversion)
    assert reply.objects == 0
    assert reply.error == "CronTab bad: the conversion failed (KeyError), a defect; please report it"
    response = orjson.loads(reply.content)["response"]
    assert response == {
        "uid": "7",
        "convertedObjects": [],
        "result": {"status": "Failed", "message": reply.error},
    }


def test_values_are_counted_before_they_take_memory() -> None:
    conversion = cast(Conversion, Failing())
    most = {**named("good"), "spec": [1] * (MAX_VALUES - 100)}
    assert answered(review(most), conversion).objects == 1
    with pytest.raises(BadReview, match="more than 1,600,000 commas and brackets"):
        answered(review({**named("good"), "spec": [1] * MAX_VALUES}), conversion)
    # Whatever etcd can store: a text does not reveal how many values it contains.
    assert answered(review({**named("good"), "spec": "," * (1536 * 1024)}), conversion).objects == 1
    assert answered(review({**named("good"), "spec": "x" * (2 * MAX_VALUES)}), conversion).objects == 1
