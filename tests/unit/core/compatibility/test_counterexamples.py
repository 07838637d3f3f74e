"""A change is breaking where an object is found that was accepted and is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.core.compatibility.change import Change
from crdkeeper.core.compatibility.compare import compare
from tests.unit.core.compatibility.crds import STRING, Json, crd, obj, of_field, version

INTEGER: Json = {"type": "integer"}
EITHER: Json = {"x-kubernetes-int-or-string": True}


def rules(*texts: str) -> Json:
    return {"x-kubernetes-validations": [{"rule": each} for each in texts]}


def text(**keywords: Any) -> Json:
    return {**STRING, **keywords}


FIELDS = {"a": STRING, "b": STRING, "n": INTEGER}
LIST: Json = {"type": "array", "items": STRING}
FOUND: list[tuple[Json, Json]] = [
    (text(pattern="^[a-z]*$"), text(pattern="^[a-y]*$")),
    (text(pattern="^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$"), text(pattern="^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$")),
    (text(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"), text(pattern="^([0-9]+(ms|s|m|h))+$")),
    (text(pattern=r"^(?:a|b\d{2})$"), text(pattern=r"^(?:a|b\d)$")),
    (text(**rules("self != 'a'")), text(**rules("self != 'b'"))),
    (text(**rules("self.size() < 40")), text(**rules("self.size() < 39"))),
    (
        {**obj(**FIELDS), **rules("!has(self.a) || has(self.b)")},
        {**obj(**FIELDS), **rules("has(self.a) == has(self.b)")},
    ),
    (
        {**obj(**FIELDS), **rules("!has(self.n) || self.n < 10")},
        {**obj(**FIELDS), **rules("!has(self.n) || self.n < 5")},
    ),
    (
        {**obj(**FIELDS), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {**obj(**FIELDS), "oneOf": [{"required": ["a"]}, {"required": ["n"]}]},
    ),
    (
        text(anyOf=[{"maxLength": 4}, {"pattern": "^x"}]),
        text(anyOf=[{"maxLength": 3}, {"pattern": "^x"}]),
    ),
    ({**INTEGER, "not": {"enum": [3]}}, {**INTEGER, "not": {"enum": [4]}}),
    ({**EITHER, "oneOf": [{"maxLength": 9}]}, {**EITHER, "oneOf": [{"maxLength": 8}]}),
    ({**LIST, **rules("self.size() < 5")}, {**LIST, **rules("self.size() < 4")}),
]
SURROUNDED: list[Callable[[Json], Json]] = [
    lambda field: field,
    lambda field: {**obj(inner=field, other=text(pattern="^x+$")), "required": ["other"]},
    lambda field: {"type": "array", "minItems": 1, "items": obj(deep=field)},
    lambda field: {"type": "object", "additionalProperties": field},
]


def _admit(schema: Json, example: Any) -> bool | None:
    whole = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, **example}
    return ObjectSchema.of(obj(spec=obj(x=schema))).admit(whole).accepted


@pytest.mark.parametrize("number", range(len(SURROUNDED)))
@pytest.mark.parametrize(("old", "new"), FOUND)
def test_an_example_makes_it_breaking(old: Json, new: Json, number: int) -> None:
    before, after = SURROUNDED[number](old), SURROUNDED[number](new)
    (change,) = of_field(before, after)
    assert change.severity == "breaking"
    assert change.message.endswith("was accepted and is refused")
    assert change.example is not None
    assert (_admit(before, change.example), _admit(after, change.example)) == (True, False)


NOT_FOUND: list[tuple[Json, Json]] = [
    (text(pattern="^[a-y]*$"), text(pattern="^[a-z]*$")),
    (text(**rules("self.size() < 3")), text(**rules("self.size() < 4"))),
    ({**obj(**FIELDS), **rules("self.n < 5")}, {**obj(**FIELDS), **rules("self.n < 10")}),
    (text(**{"not": {"minLength": 8}}), text(**{"not": {"minLength": 9}})),
]


@pytest.mark.parametrize(("old", "new"), NOT_FOUND)
def test_without_one_it_stays_risky(old: Json, new: Json) -> None:
    (change,) = of_field(old, new)
    assert (change.severity, change.example) == ("risky", None)


def test_what_no_object_could_have_is_no_example() -> None:
    def field(pattern: str) -> Json:
        return {**obj(x=text(pattern=pattern)), **rules("!has(self.x) || self.x != 'z'")}

    def said(old: Json, new: Json) -> list[Change]:
        return [each for each in of_field(old, new) if each.kind.id.startswith("pattern")]

    # Only `z` is no longer matched, and the rule around the field has always refused it.
    assert [each.severity for each in said(field("^[a-z]$"), field("^[a-y]$"))] == ["risky"]
    assert [each.severity for each in said(field("^[a-z]+$"), field("^[a-y]+$"))] == ["breaking"]


def test_another_change_is_not_to_blame() -> None:
    old = obj(x=obj(a=text(pattern="^[a-y]$"), b=STRING))
    new = obj(x={**obj(a=text(pattern="^[a-z]$"), b=STRING), "required": ["b"]})
    found = {each.kind.id: each.severity for each in of_field(old, new)}
    assert found == {"pattern-changed": "risky", "required-added": "breaking"}


def test_a_rule_of_a_new_field_is_tried_without_it() -> None:
    old = {**obj(a=STRING), **rules("self.a != 'x'")}
    new = {**obj(a=STRING, fresh=STRING), **rules("self.a != 'y' || has(self.fresh)")}
    (change,) = [each for each in of_field(old, new) if each.kind.id.startswith("rule")]
    assert (change.kind.id, change.example) == ("rule-tightened", {"spec": {"x": {"a": "y"}}})


def test_only_so_many_fields_are_tried() -> None:
    old, new = (
        crd(version(schema=obj(spec=obj(**{f"f{i}": text(pattern=each) for i in range(60)}))))
        for each in ("^[a-z]*$", "^[a-y]*$")
    )
    found = [each.kind.id for each in compare(old, new).changes]
    assert 1 <= found.count("pattern-tightened") < 60
    assert found.count("pattern-tightened") + found.count("pattern-changed") == 60


HOSTILE = ["(" * 40 + "a" + ")" * 40, "[a-z]{1000}" * 20, "(a|b|c)*" * 100, "[" * 50, "(?i)a", r"\p{Greek}+"]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_patterns_that_are_made_to_hurt(pattern: str) -> None:
    old, new = (crd(version(schema=obj(spec=obj(x=text(pattern=each))))) for each in (pattern, pattern + "a"))
    assert compare(old, new).steps < 20_000


def test_a_map_is_tried_also_if_no_value_of_it_is_known() -> None:
    """A format that is none of integers: nothing made up has it."""
    entries = {"type": "object", "additionalProperties": {**INTEGER, "format": "date", "multipleOf": 0.1}}
    old, new = ({**entries, "minProperties": 2, **rules(each)} for each in ("true", "!has(self.fresh)"))
    assert [each.kind.id for each in of_field(old, new)] == ["rule-changed"]
