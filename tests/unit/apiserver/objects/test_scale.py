"""The Scale of a custom object, read and written."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.scale import (
    ScaleError,
    ScalePaths,
    patch_scale,
    read_scale,
    replace_scale,
)

PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")
METADATA = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {"x": "y"}}
OBJECT = {"metadata": METADATA, "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=b"}}
SHOWN = {key: each for key, each in METADATA.items() if key != "labels"}


def body(**content: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, **content}


def test_read() -> None:
    assert read_scale(OBJECT, PATHS) == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": SHOWN,
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "a=b"},
    }


def test_nothing_known_but_the_replicas() -> None:
    scale = read_scale({"metadata": METADATA, "spec": {"replicas": 0}}, PATHS)
    assert (scale["spec"], scale["status"]) == ({}, {"replicas": 0})


WRONG = " accessor error"
ABSENT = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({}, ABSENT),
        ({"spec": None}, ABSENT),
        ({"spec": {"replicas": 1.5}}, f".spec.replicas{WRONG}: 1.5 is of the type float64, expected int64"),
        ({"spec": 5}, f".spec.replicas{WRONG}: 5 is of the type int64, expected map[string]interface{{}}"),
        (
            {"status": {"selector": None}},
            f".status.selector{WRONG}: <nil> is of the type <nil>, expected string",
        ),
    ],
)
def test_unreadable(obj: dict[str, Any], message: str) -> None:
    with pytest.raises(ScaleError) as error:
        read_scale(obj, PATHS)
    assert (error.value.code, error.value.message) == (500, message)


def test_written() -> None:
    new = replace_scale(OBJECT, PATHS, body(spec={"replicas": -7}, status={"replicas": 9}))
    assert new == {**OBJECT, "spec": {"replicas": -7}}
    assert replace_scale(OBJECT, PATHS, body())["spec"] == {"replicas": 0}
    assert replace_scale({"metadata": METADATA}, PATHS, body(spec={"replicas": 1}))["spec"] == {"replicas": 1}
    assert OBJECT["spec"] == {"replicas": 3}


def test_patched() -> None:
    assert patch_scale(OBJECT, PATHS, {"spec": {"replicas": 8}})["spec"] == {"replicas": 8}
    assert patch_scale(OBJECT, PATHS, {})["spec"] == {"replicas": 3}
    assert patch_scale(OBJECT, PATHS, {"spec": None})["spec"] == {"replicas": 0}


@pytest.mark.parametrize(
    ("scale", "code"),
    [
        (body(spec={"replicas": "3"}), 400),
        (body(spec={"replicas": 2**31}), 400),
        (body(spec={"replicas": -(2**31)}), 400),
        (body(status={"selector": 5}), 400),
        ({"metadata": {"name": "b"}}, 400),
        ({"metadata": {"name": "a", "uid": "other"}}, 409),
        ({"metadata": {"name": "a", "resourceVersion": "4"}}, 409),
    ],
)
def test_refused(scale: dict[str, Any], code: int) -> None:
    with pytest.raises(ScaleError) as error:
        replace_scale(OBJECT, PATHS, scale)
    assert error.value.code == code


def test_a_patch_must_set_replicas_that_are_missing() -> None:
    with pytest.raises(ScaleError, match=r'the spec replicas field "\.spec\.replicas" cannot be empty'):
        patch_scale({"metadata": METADATA}, PATHS, {"status": {"replicas": 4}})
