"""CRDs that are meant to take all time and memory: an answer, if only that the API server must give it.

None is larger than the 3 MiB of a request. Before these bounds each took minutes or gigabytes.
"""

from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation
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
