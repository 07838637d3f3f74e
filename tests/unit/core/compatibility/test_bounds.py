"""CRDs that are huge, deep or made to hurt are compared in bounded time, or it is said that they were not."""

import copy
from typing import Any

import pytest

from crdkeeper.core.compatibility.change import Impact
from crdkeeper.core.compatibility.compare import NotComparable, compare
from crdkeeper.core.compatibility.findings import MAX_KEPT
from tests.unit.core.compatibility.crds import STRING, Json, crd, obj, version


def test_all_are_counted_and_the_worst_are_kept() -> None:
    fields = {f"f{i}": STRING for i in range(MAX_KEPT + 500)}
    wide = {"type": "object", "properties": fields}
    added = compare(crd(version(schema=obj(spec=obj(gone=STRING)))), crd(version(schema=obj(spec=wide))))
    assert added.counts == {Impact.BREAKING: 1, Impact.SAFE: MAX_KEPT + 500}
    assert len(added.changes) == MAX_KEPT + 1
    assert added.changes[0].kind.id == "field-removed"
    assert added.complete


def test_many_versions_with_big_schemas_end() -> None:
    fields = {f"f{i}": STRING for i in range(100)}
    versions = [version(f"v{i}", obj(spec=obj(**fields, **{f"g{i}": STRING}))) for i in range(1, 40)]
    new = crd(*versions)
    comparison = compare(crd(), new, max_steps=20_000)
    assert not comparison.complete
    assert comparison.severity is Impact.BREAKING


def test_versions_that_did_not_change_cost_nothing() -> None:
    fields = {f"f{i}": STRING for i in range(100)}
    versions = [version(f"v{i}", obj(spec=obj(**fields, **{f"g{i}": STRING}))) for i in range(1, 40)]
    same = compare(crd(*versions), crd(*copy.deepcopy(versions)), max_steps=5_000)
    assert (same.complete, same.changes) == (True, ())


def nested(depth: int, leaf: Json, keyword: str) -> Json:
    schema: Any = leaf
    for _ in range(depth):
        schema = obj(a=schema) if keyword == "properties" else {"type": "array", keyword: schema}
    return obj(spec=schema)


def test_deep_schemas() -> None:
    for keyword in ("properties", "items"):
        old, new = (crd(version(schema=nested(140, leaf, keyword))) for leaf in (STRING, {"type": "integer"}))
        assert compare(old, new).severity is Impact.BREAKING


def test_a_schema_too_deep_to_be_decoded() -> None:
    deep: Json = {"not": STRING}
    for _ in range(20_000):
        deep = {"not": deep}
    new = crd()
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = deep
    with pytest.raises(NotComparable, match="nests too deep"):
        compare(crd(), new)
