"""managedFields entries before and after."""

from typing import Any

import pytest

from crdkeeper.core.conversion.nesting import dumps, loads
from crdkeeper.core.migration.managedfields import retarget


def entry(
    version: str, *fields: str, manager: str = "kubectl", operation: str = "Update", **more: Any
) -> dict[str, Any]:
    owned: dict[str, Any] = {f"f:{each}": {} for each in fields}
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": owned},
        **more,
    }


V1, V2, OTHER = "example.com/v1", "example.com/v2", "other.io/v1"

CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]] | None]] = {
    "none": ([], None),
    "current": ([entry(V2, "a")], None),
    "another group": ([entry(OTHER, "a")], None),
    "a group of which ours is the beginning": ([entry("example.com.au/v1", "a")], None),
    "old": ([entry(V1, "a")], [entry(V2, "a")]),
    "old and another group": ([entry(V1, "a"), entry(OTHER, "b")], [entry(V2, "a"), entry(OTHER, "b")]),
    "two managers": (
        [entry(V1, "a", manager="a"), entry(V2, "b", manager="b")],
        [entry(V2, "a", manager="a"), entry(V2, "b", manager="b")],
    ),
    "joined": ([entry(V1, "a", "b"), entry(V2, "b", "c")], [entry(V2, "a", "b", "c")]),
    "joined at the newest time": (
        [entry(V2, "a", time="2026-01-01T00:00:00Z"), entry(V1, "b", time="2026-01-02T00:00:00Z")],
        [entry(V2, "a", "b", time="2026-01-02T00:00:00Z")],
    ),
    "joined with one that has no time": (
        [entry(V2, "a"), entry(V1, "b", time="2026-01-02T00:00:00Z")],
        [entry(V2, "a", "b", time="2026-01-02T00:00:00Z")],
    ),
    "a subresource stays apart": (
        [entry(V1, "a"), entry(V2, "b", subresource="status")],
        [entry(V2, "a"), entry(V2, "b", subresource="status")],
    ),
    "apply and update stay apart": (
        [entry(V1, "a", operation="Apply"), entry(V2, "b")],
        [entry(V2, "a", operation="Apply"), entry(V2, "b")],
    ),
    "three versions": ([entry("example.com/v0", "a"), entry(V1, "b")], [entry(V2, "a", "b")]),
}


@pytest.mark.parametrize("name", CASES)
def test_retarget(name: str) -> None:
    before, after = CASES[name]
    assert retarget(before, "example.com", "v2") == after


def test_what_was_read_is_not_changed() -> None:
    before = [entry(V1, "a"), entry(V2, "b")]
    retarget(before, "example.com", "v2")
    assert before == [entry(V1, "a"), entry(V2, "b")]


def test_nested_fields_are_united() -> None:
    one = {**entry(V1), "fieldsV1": {"f:spec": {".": {}, "f:a": {"f:b": {}}}}}
    other = {**entry(V2), "fieldsV1": {"f:spec": {"f:a": {"f:c": {}}}, "f:status": {}}}
    joined = retarget([one, other], "example.com", "v2")
    assert joined is not None
    assert joined[0]["fieldsV1"] == {"f:spec": {".": {}, "f:a": {"f:b": {}, "f:c": {}}}, "f:status": {}}


def deep(version: str, inner: str) -> str:
    """An entry, as text, whose fields are nested far deeper than any that is processed as objects."""
    fields = '{"f:a":' * 300 + inner + "}" * 300
    return f'{{"manager":"m","operation":"Update","apiVersion":"{version}","fieldsV1":{fields}}}'


@pytest.mark.parametrize(("one", "other"), [("{}", '{"f:b":{}}'), ('{"f:b":{}}', "{}"), ("{}", "{}")])
def test_fields_far_down_are_joined(one: str, other: str) -> None:
    joined = retarget(loads(f"[{deep(V1, one)},{deep(V2, other)}]"), "example.com", "v2")
    assert dumps(joined) == f"[{deep(V2, max(one, other, key=len))}]".encode()
