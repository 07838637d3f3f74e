"""CRDs that are huge, deep or malicious are compared in bounded time, or reported as not compared."""

import copy
import cProfile
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.core.compatibility.change import Impact
from crdkeeper.core.compatibility.compare import NotComparable, compare
from crdkeeper.core.compatibility.findings import MAX_KEPT, MAX_STEPS
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


def work(old: Json, new: Json) -> tuple[int, int]:
    """How many functions a comparison calls, including those of C, and its own count of steps."""
    with cProfile.Profile() as profile:
        comparison = compare(old, new)
    return sum(each.callcount for each in profile.getstats()), comparison.steps


def one(spec: Json) -> Json:
    return crd(version(schema=obj(spec=spec)))


def ruled(*rules: str, messages: bool = False, **properties: Any) -> Json:
    made = [{"rule": rule, **({"message": f"m{i}"} if messages else {})} for i, rule in enumerate(rules)]
    return one({**obj(a=STRING, **properties), "x-kubernetes-validations": made})


def texts(number: int) -> Json:
    return {"type": "string", "enum": [f"e{i}" for i in range(number)]}


def fields(number: int, **keywords: Any) -> Json:
    return {f"f{i}": {**STRING, **keywords} for i in range(number)}


LINEAR: dict[str, Callable[[int], tuple[Json, Json]]] = {
    "rules added": lambda n: (ruled(), ruled(*(f"self.a != '{i}'" for i in range(n)))),
    "rules changed": lambda n: (
        ruled(*(f"self.a != 'x{i}'" for i in range(n))),
        ruled(*(f"self.a != 'y{i}'" for i in range(n))),
    ),
    "rules changed that have messages": lambda n: (
        ruled(*(f"self.a != 'x{i}'" for i in range(n)), messages=True),
        ruled(*(f"self.a != 'y{i}'" for i in range(n)), messages=True),
    ),
    "equal rules": lambda n: (ruled(*["self.a != ''"] * n), ruled(*["self.a!=''"] * n)),
    "rules and fields": lambda n: (
        ruled(**fields(n)),
        ruled(*(f"!has(self.f{i}) || self.f{i} != ''" for i in range(n)), **fields(n)),
    ),
    "rules and new fields": lambda n: (
        ruled(),
        ruled(*(f"!has(self.f{i}) || self.f{i} != ''" for i in range(n)), **fields(n)),
    ),
    "rules and an enum": lambda n: (
        ruled(b=texts(n)),
        ruled(*(f"self.b in ['e{i}']" for i in range(n)), b=texts(n)),
    ),
    "rules around fields": lambda n: (
        ruled(*(f"self.a != 'x{i}'" for i in range(n)), **fields(n)),
        ruled(*(f"self.a != 'x{i}'" for i in range(n)), **fields(n, default="x")),
    ),
    "enums": lambda n: (one(obj(a=texts(n))), one(obj(a={**texts(n), "enum": list(map(str, range(n)))}))),
    "fields": lambda n: (one(obj(**fields(n))), one(obj(**fields(n, maxLength=3)))),
    "required fields": lambda n: (
        one(obj(**fields(n))),
        one({**obj(**fields(n)), "required": list(fields(n))}),
    ),
    "alternatives": lambda n: (
        one(obj(a={**STRING, "anyOf": [{"minLength": i} for i in range(n)]})),
        one(obj(a={**STRING, "anyOf": [{"maxLength": i} for i in range(n)]})),
    ),
}


@pytest.mark.parametrize("name", LINEAR)
def test_work_grows_with_the_size_and_not_with_its_square(name: str) -> None:
    few, many = (work(*LINEAR[name](number)) for number in (50, 200))
    for measured in zip(few, many, strict=True):
        assert measured[1] < measured[0] * 4.6


def test_what_rules_cost_is_accounted_for() -> None:
    new = ruled(*(f"self.a != '{i}' && {'(' * 20}self.a != ''{')' * 20}" for i in range(100)))
    assert not compare(ruled(), new, max_steps=600).complete
    assert compare(ruled(), new).complete


def test_pairs_of_versions_end_and_those_with_the_storage_version_come_first() -> None:
    schemas = [obj(spec=obj(**{f"f{i}x{j}": STRING for j in range(60)})) for i in range(40)]
    new = crd(*(version(f"v{i}", each, storage=i == 21) for i, each in enumerate(schemas, start=1)))
    comparison = compare(crd(version("v1", schemas[0])), new, max_steps=15_000)
    assert not comparison.complete
    assert comparison.steps < 16_000
    pairs = {each.place.version for each in comparison.changes if each.kind.id == "served-field"}
    assert pairs
    assert all("v21" in each.split(" and ") for each in pairs)
    assert compare(crd(), new).steps < MAX_STEPS


def test_so_many_rules_that_it_is_not_asked_whether_they_are_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = ruled(*(f"self.b == '{i}'" for i in range(10)))
    assert {each.kind.id for each in compare(ruled(), new).changes} == {"refused", "rule-added"}
    monkeypatch.setattr("crdkeeper.core.compatibility.compare.MAX_RULE_CHARACTERS", 100)
    comparison = compare(ruled(), new)
    assert not comparison.complete
    assert {each.kind.id for each in comparison.changes} == {"rule-added"}


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
