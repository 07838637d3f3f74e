"""Rules that compare an object with the old one, but not its undeclared fields."""

from typing import Any

import pytest

from crdkeeper.core.lint.comparisons import compared
from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import TEXT, check, definition, schema, version

Json = dict[str, Any]
KEEP = "x-kubernetes-preserve-unknown-fields"
OPEN: Json = {"type": "object", "description": "Free.", KEEP: True}


def rule(text: str) -> Json:
    return {"x-kubernetes-validations": [{"rule": text, "message": "No."}]}


FIXED = rule("self == oldSelf")
OF_SPEC = " by a rule of .spec"


def found(field: Json, spec_keywords: Json | None = None) -> list[tuple[str, str]]:
    content = schema({"x": field}, spec_keywords={"required": ["x"], **(spec_keywords or {})})
    return [
        (each.field.removeprefix("v1alpha1:.spec"), each.message.removeprefix("is immutable"))
        for each in check(definition(version(content)))
        if each.rule.id == "immutable-open" and each.severity is Severity.WARNING
    ]


REPLACED = ", but undeclared fields in it may be replaced"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({**OPEN, **FIXED}, [("", "")]),
        ({**OPEN, **rule("oldSelf==self")}, [("", "")]),
        ({**OPEN, "properties": {"a": TEXT}, **FIXED}, [("", "")]),
        ({"type": "object", "description": "Free.", "additionalProperties": True, **FIXED}, [("", "")]),
        ({**OPEN, **rule("!has(self.a) || self == oldSelf")}, [("", "")]),
        (
            {"type": "object", "description": "It.", "properties": {"a": OPEN, "b": TEXT}, **FIXED},
            [(".a", " by a rule of .spec.x")],
        ),
        (
            {"type": "array", "description": "All.", "maxItems": 3, "items": OPEN, **FIXED},
            [("[*]", " by a rule of .spec.x")],
        ),
        ({**OPEN, **rule("self.size() >= oldSelf.size()")}, []),
        ({**OPEN, "properties": {"a": TEXT}, **rule("self.a == oldSelf.a")}, []),
        ({**OPEN, "additionalProperties": TEXT, **FIXED}, []),
        ({"type": "object", "description": "Closed.", "properties": {"a": TEXT}, **FIXED}, []),
        (
            {
                "type": "object",
                "description": "It.",
                "properties": {"a": {"description": "Anything.", KEEP: True}},
                **FIXED,
            },
            [],
        ),
    ],
)
def test_an_object_is_not_immutable_in_its_undeclared_fields(
    field: Json, expected: list[tuple[str, str]]
) -> None:
    assert found(field) == [(f".x{path}", f"{by}{REPLACED}") for path, by in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self == oldSelf", [".x"]),
        ("self.x == oldSelf.x", [".x"]),
        ("has(self.x) == has(oldSelf.x) && self.x == oldSelf.x", [".x"]),
        ("oldSelf.x == self.x", [".x"]),
        ("self.x.y == oldSelf.x.y", []),
        ("self.color == oldSelf.color", []),
        ("self.x == self.x", []),
        ("self.x == oldSelf.color", []),
        ("self.x.size() == oldSelf.x.size()", []),
        ("self.x != oldSelf.x", []),
    ],
)
def test_the_rule_of_an_object_around_it(text: str, expected: list[str]) -> None:
    assert found(OPEN, rule(text)) == [(each, f"{OF_SPEC}{REPLACED}") for each in expected]


def test_only_a_controller_writes_status() -> None:
    content = schema(status={"x": {**OPEN, **FIXED}})
    severities = {
        each.severity for each in check(definition(version(content))) if each.rule.id == "immutable-open"
    }
    assert severities == {Severity.INFO}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["self==oldSelf", "self.a == oldSelf.a"], {"", ".a"}),
        (["oldSelf.a.b\n== self.a.b"], {".a.b"}),
        (["myself == oldSelf", "x.self == oldSelf", "self[0] == oldSelf", "self == oldSelf[0]"], set()),
        (["self.all(x, x == oldSelf)"], set()),
    ],
)
def test_what_rules_compare(rules: list[str], expected: set[str]) -> None:
    assert compared(rules) == expected
