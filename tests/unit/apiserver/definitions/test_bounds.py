"""CRDs that are meant to take all time and memory: an answer, if only that the API server must give it.

None is larger than the 3 MiB of a request. Before these bounds each took minutes or gigabytes.
"""

from typing import Any

import pytest

from crdkeeper.apiserver.cel.compilation import RulePlace, compile_rules
from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.apiserver.schema.structural import _converted, conversion_error
from crdkeeper.apiserver.schema.violation import Report
from tests.unit.apiserver.definitions.cases import definition, version

TOO_LONG = "to check all values by the schema may take too long"


def test_what_many_errors_quote_is_bounded() -> None:
    # Each of the errors shows all of the keys: in full 80 GB.
    keys = [f"key{i}" for i in range(100_000)]
    items = {"type": "object", "properties": {"a": {"type": "string"}}}
    crd = definition()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": items,
    }
    found = check_creation(crd).violations
    assert len(found) >= len(keys)
    assert len(found[0].message) > 100_000
    assert sum(len(each.message) for each in found) < 40 << 20


def test_each_of_many_versions_is_looked_at_once() -> None:
    # Looking from each version at all others took a minute.
    more = [version(f"v{i}", subresources={"status": {}}) for i in range(2, 10_000)]
    assert check_creation(definition(*more)).violations == []


def test_the_work_for_the_defaults_of_all_versions_is_bounded() -> None:
    items = {"type": "string", "anyOf": [{"maxLength": i} for i in range(1_000)]}
    slow: dict[str, Any] = {"type": "array", "items": items, "default": ["x" * 1_001] * 100}
    more = [version(f"v{i}") for i in range(2, 40)]
    for i, each in enumerate(more):
        field = {**slow, "description": str(i)}
        each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["slow"] = field
    report = check_creation(definition(*more))
    assert {each.reason for each in report.unchecked} == {TOO_LONG}
    assert len(report.unchecked) > 30


def test_the_field_paths_of_a_node_are_checked_by_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    crd = definition()
    node = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    node["x-kubernetes-validations"] = [
        {"rule": "true", "message": f"{i}", "fieldPath": ".a"} for i in range(50)
    ]
    node["properties"]["a"]["x-kubernetes-validations"] = [{"rule": "true"}]
    walks = 0

    def counted(schema: Schema, known: dict[int, str | None]) -> str | None:
        nonlocal walks
        walks += 1
        return conversion_error(schema, known)

    monkeypatch.setattr("crdkeeper.apiserver.definitions.rules.validations.conversion_error", counted)
    assert check_creation(crd).violations == []
    assert walks == 1


@pytest.mark.parametrize("last", [{}, {"additionalItems": True}])
def test_the_field_paths_of_nodes_in_each_other_are_checked_by_one_walk(
    monkeypatch: pytest.MonkeyPatch, last: dict[str, Any]
) -> None:
    fields = {f"f{i}": {"type": "string", "not": {"pattern": "^a"}} for i in range(100)}
    node: dict[str, Any] = {"type": "object", "properties": {**fields, "last": {"type": "string", **last}}}
    for _ in range(30):
        rules = [{"rule": "true", "fieldPath": ".a"}]
        node = {"type": "object", "properties": {"a": node}, "x-kubernetes-validations": rules}
    crd = definition()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = node
    visited = 0

    def counted(schema: Schema) -> list[Schema]:
        nonlocal visited
        visited += 1
        return _converted(schema)

    monkeypatch.setattr("crdkeeper.apiserver.schema.structural._converted", counted)
    assert bool(check_creation(crd).violations) is bool(last)
    assert visited < 1_000


def test_many_owners_are_not_compared_with_each_other() -> None:
    compared: list[object] = []

    class Uid(str):
        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return super().__eq__(other)

        __hash__ = str.__hash__

    crd = definition()
    crd["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": Uid(i)} for i in range(2_000)
    ]
    assert check_creation(crd).violations == []
    assert compared == []


def test_short_expressions_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    crd = definition()
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for i in range(40):
        rules = [{"rule": f"self != '{i}'", "message": str(j)} for j in range(10)]
        fields[f"f{i}"] = {"type": "string", "maxLength": 1, "x-kubernetes-validations": rules}
    compiled = 0

    def counted(place: RulePlace, **options: Any) -> Any:
        nonlocal compiled
        compiled += len(place.schema["x-kubernetes-validations"])
        return compile_rules(place, **options)

    monkeypatch.setattr("crdkeeper.apiserver.definitions.rules.expressions.compile_rules", counted)
    monkeypatch.setattr("crdkeeper.apiserver.definitions.create.MOST_STEPS", 1_000_000)
    report = check_creation(crd)
    assert 100 < compiled < 200
    assert {each.reason for each in report.unchecked} == {
        "to compile all expressions of the CRD may take too long"
    }


def chained(links: int) -> str:
    """A rule for a string, of which each link doubles what it expands to."""
    return "optional.of(self)" + ".optMap(a, a)" * links + ".hasValue()"


def test_what_macros_add_to_expressions_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    crd = definition()
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for i in range(100):
        rules = [{"rule": chained(10), "message": "m"}]
        fields[f"f{i}"] = {"type": "string", "maxLength": 1, "x-kubernetes-validations": rules}
    monkeypatch.setattr("crdkeeper.apiserver.definitions.create.MOST_STEPS", 5_000_000)
    report = check_creation(crd)
    assert 90 < len(report.unchecked) < 100
    assert {each.reason for each in report.unchecked} == {
        "to compile all expressions of the CRD may take too long"
    }


def test_what_expands_to_too_much_leaves_the_other_expressions_their_time() -> None:
    crd = definition()
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for name, text in (("a", chained(100)), ("b", "self > 1")):
        rules = [{"rule": text, "message": "m"}]
        fields[name] = {"type": "string", "maxLength": 1, "x-kubernetes-validations": rules}
    report = check_creation(crd)
    assert [each.reason for each in report.unchecked] == [
        "the expression expands to too much to be checked here"
    ]
    assert len(report.violations) == 1


@pytest.mark.parametrize("update", [False, True])
def test_the_work_for_all_expressions_is_bounded(monkeypatch: pytest.MonkeyPatch, *, update: bool) -> None:
    crd, old = definition(version("v2")), definition(version("v2"))
    for number, each in enumerate(crd["spec"]["versions"]):
        fields = each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        fields["own"] = {"type": "string", "description": str(number)}
        for i in range(20):
            rule = {"rule": f"self != '{'x' * 50_000}'", "message": "m"}
            fields[f"text{i}"] = {"type": "string", "maxLength": 1, "x-kubernetes-validations": [rule]}
    compiled = 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return compile_rules(*arguments, **options)

    monkeypatch.setattr("crdkeeper.apiserver.definitions.rules.expressions.compile_rules", counted)
    report: Report = check_update(crd, old) if update else check_creation(crd)
    # Of 2 MB in two versions, only the first version is compiled.
    assert compiled == 19
    assert len(report.unchecked) == 21
    assert {each.reason for each in report.unchecked} == {
        "to compile all expressions of the CRD may take too long"
    }
    assert report.violations == []
