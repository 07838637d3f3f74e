"""That walks pass over plain nodes of a schema changes nothing of what is reported."""

import random
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.rules import defaults, node
from crdkeeper.apiserver.schema import structural

KEYWORDS: dict[str, tuple[Any, ...]] = {
    "type": ("string", "integer", "number", "boolean", "object", "array", "null", "odd", ""),
    "description": ("Some text.", ""),
    "pattern": ("^a$", "(", ""),
    "format": ("date", "odd"),
    "enum": (["a", 1, None], []),
    "nullable": (True, False),
    "maximum": (1, 2.5),
    "maxLength": (0, 5),
    "default": ("a", 1, None, {}, []),
    "uniqueItems": (True,),
    "items": ({"type": "string"}, {}),
    "additionalProperties": (True, {"type": "string"}),
    "x-kubernetes-int-or-string": (True,),
    "x-kubernetes-preserve-unknown-fields": (True, False),
    "x-kubernetes-embedded-resource": (True,),
    "x-kubernetes-list-type": ("set",),
    "x-kubernetes-validations": ([{"rule": "self == self"}], [{"rule": "odd("}]),
    "allOf": ([{"maxLength": 1}], [{"type": "string"}]),
    "properties": ({"metadata": {"type": "object"}, "kind": {"type": "integer"}},),
}


def some_node(chance: random.Random, levels: int) -> dict[str, Any]:
    names = chance.sample(sorted(KEYWORDS), chance.randrange(5))
    made = {each: chance.choice(KEYWORDS[each]) for each in names}
    if chance.random() < 0.8:
        made["type"] = chance.choice(KEYWORDS["type"][:6])
    if levels and chance.random() < 0.7:
        fields = ("name", "metadata", "kind", "size")
        made |= {"type": "object", "properties": {each: some_node(chance, levels - 1) for each in fields}}
    return made


def some_crd(chance: random.Random) -> dict[str, Any]:
    schema = {**some_node(chance, 2), "type": "object"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }


def reported(crd: dict[str, Any]) -> list[str]:
    report = check_creation(crd)
    found = [f"{each.path}: {each.message}" for each in report.violations]
    found += [f"{each.path}: {each.message}" for each in report.warnings]
    return found + [f"{each.path}: {each.reason}" for each in report.unchecked]


def test_they_are_passed_over_without_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(15)
    crds = [some_crd(chance) for _ in range(500)]
    with_them = [reported(each) for each in crds]
    assert 50 < sum(not each for each in with_them) < 450, "some are without errors, some are not"
    for module in (defaults, node, structural):
        monkeypatch.setattr(module, "is_plain", lambda _: False)
    for crd, found in zip(crds, with_them, strict=True):
        assert reported(crd) == found
