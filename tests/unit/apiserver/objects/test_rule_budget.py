"""Where the API server ends the evaluation of rules because of what they cost, and what it says then.

The words were seen on the API server; that the costs are right is tested on the cluster
(test_cel_costs_agree).
"""

from typing import Any

import pytest

from crdkeeper.apiserver.cel.types.checker import check
from tests.unit.apiserver.objects.samples import INTEGER, PRESERVE, TEXT, admitted, resource, said, thing

LIST: Any = {"type": "array", "items": INTEGER}
RULE = "self.sort().size() >= 0"
"""For a list of n elements it costs 2n² and 14 more."""
WITHIN, ABOVE = 707, 708
"""How many elements an evaluation can sort, and how many it cannot."""
OUT = "validation failed due to running out of cost budget, no further validation rules will be run"
CALL = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to"


def ruled(schema: dict[str, Any], *rules: Any) -> dict[str, Any]:
    written = [{"rule": each} if isinstance(each, str) else each for each in rules]
    return schema | {"x-kubernetes-validations": written}


def sorted_by(*rules: Any) -> dict[str, Any]:
    return ruled(LIST, *rules)


def test_a_rule_may_cost_a_million() -> None:
    assert said(admitted(sorted_by(RULE), [0] * WITHIN)) == []
    assert said(admitted(sorted_by(RULE, "false"), [0] * ABOVE)) == [
        f'spec.a: Invalid value: "array": {CALL} call cost exceeds limit for rule: {RULE}'
    ]


def test_what_was_found_before_the_end_is_said() -> None:
    found = said(admitted(sorted_by("self[0] > 0", {"rule": RULE, "message": "m"}, "false"), [0] * ABOVE))
    assert found == [
        "spec.a: Invalid value: failed rule: self[0] > 0",
        f'spec.a: Invalid value: "array": {CALL} call cost exceeds limit for rule: m',
    ]


def test_all_rules_for_an_object_may_cost_ten_millions() -> None:
    schema = {"type": "array", "items": sorted_by(RULE)}
    assert said(admitted(schema, [[0] * WITHIN] * 10)) == []
    assert said(admitted(schema, [[0] * WITHIN] * 11)) == [f'spec.a[10]: Invalid value: "array": {OUT}']
    spent = [[0] * WITHIN] * 10
    assert 10_000_000 - 10 * (2 * WITHIN**2 + 14) == 2_880 == 2 * (37**2 + 7**2 + 1) + 3 * 14
    assert said(admitted(schema, [*spent, [0] * 37, [0] * 7, [0]])) == []
    assert said(admitted(schema, [*spent, [0] * 37, [0] * 7, [0], []])) == [
        f'spec.a[13]: Invalid value: "array": {OUT}'
    ]
    assert said(admitted(schema, [*spent, [0] * 37, [0] * 8, [0]])) == [
        f'spec.a[11]: Invalid value: "array": {OUT}'
    ]


def test_a_message_has_its_own_end() -> None:
    rule = {"rule": "self.size() == 0", "messageExpression": "string(self.sort().size())"}
    assert said(admitted(sorted_by(rule), [0] * WITHIN)) == [f"spec.a: Invalid value: {WITHIN}"]
    assert said(admitted(sorted_by(rule, "false"), [0] * ABOVE)) == [
        'spec.a: Invalid value: "array": no further validation rules will be run due to call cost exceeds '
        'limit for messageExpression: "string(self.sort().size())"'
    ]
    spending = {"type": "array", "items": sorted_by(RULE, rule | {"rule": "self.size() != 700"})}
    assert said(admitted(spending, [*([[0] * 701] * 10), [0] * 290])) == []
    assert said(admitted(spending, [*([[0] * 701] * 9), [0] * 700])) == [
        'spec.a[9]: Invalid value: "array": messageExpression evaluation failed due to running out of cost '
        "budget, no further validation rules will be run"
    ]


def test_a_message_that_is_forgiven_ends_all_the_same() -> None:
    rule = {"rule": "self.size() == 0", "messageExpression": "string(self.sort().size())"}
    again = {"rule": "oldSelf.size() == 0"}
    value = [0] * ABOVE
    assert said(admitted(sorted_by(rule, again), value, old=value)) == []
    assert said(admitted(sorted_by(again), value, old=value)) == [
        "spec.a: Invalid value: failed rule: oldSelf.size() == 0"
    ]


def fields(**rules: Any) -> dict[str, Any]:
    return {"type": "object", "properties": rules}


def test_fields_beside_the_end_count_only_if_their_order_does_not_matter() -> None:
    over = sorted_by(RULE)
    value = {"x": 1, "y": [0] * ABOVE, "z": 1}
    ended = f'spec.a.y: Invalid value: "array": {CALL} call cost exceeds limit for rule: {RULE}'
    fine = ruled(INTEGER, "self > 0")
    assert said(admitted(fields(x=fine, y=over, z=fine), value)) == [ended]
    bad = ruled(INTEGER, "self > 1")
    for schema in (fields(x=bad, y=over), fields(y=over, z=bad), fields(x=fine, y=over, z=over)):
        outcome = admitted(
            schema, value | {"z": [0] * ABOVE} if schema["properties"].get("z") is over else value
        )
        assert outcome.unchecked
        assert not outcome.violations
    alone = {"x": None, "y": [0] * ABOVE}
    assert said(admitted(fields(x=bad | {"nullable": True}, y=over), alone)) == [ended]


def test_a_rule_with_a_bound_above_the_limit_may_still_pass() -> None:
    schema = ruled({"type": "array", "items": TEXT}, "self.all(x, self.all(y, x == y || x != y))")
    assert said(admitted(schema, ["x"] * 400)) == []
    assert said(admitted(schema, ["x"] * 600)) != []


def test_transition_rules_are_counted_where_there_is_an_old_value() -> None:
    schema = sorted_by("oldSelf.sort().size() >= 0")
    assert said(admitted(schema, [0] * ABOVE)) == []
    assert said(admitted(schema, [0], old=[0] * WITHIN)) == []
    assert len(said(admitted(schema, [0], old=[0] * ABOVE))) == 1


def test_ordinary_rules_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("counted without need")

    monkeypatch.setattr("crdkeeper.apiserver.objects.rulecompilation.CountedProgram", fail)
    schema = resource(a=sorted_by(RULE))
    assert said(schema.admit(thing(a=[0] * 500), None)) == []


def test_a_rule_that_is_counted_is_compiled_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def noted(*args: Any, **options: Any) -> Any:
        compiled.append(args)
        return check(*args, **options)

    monkeypatch.setattr("crdkeeper.apiserver.cel.compilation.check", noted)
    schema = sorted_by(RULE, *(f"self.size() != {i}" for i in range(9)))
    assert said(admitted(schema, [0] * WITHIN)) == []
    assert len(compiled) == 2 * 10


SCRIPTS = {"type": "object", "properties": {"name": TEXT, "script": TEXT}}
BYTES = {"type": "string", "format": "byte"}


@pytest.mark.parametrize(
    ("items", "value", "rule"),
    [
        # Lists are searched with all that is in their elements.
        (
            SCRIPTS,
            [{"name": f"n{i}", "script": "x" * 3_000} for i in range(60)],
            "self.all(x, self.indexOf(x) == self.lastIndexOf(x))",
        ),
        # So they are with what CEL does not see in them.
        (
            {"type": "object", "properties": {"n": INTEGER}, **PRESERVE},
            [{"n": i, **{f"x{j}": j for j in range(300)}} for i in range(60)],
            "self.all(x, self.indexOf(x) >= 0)",
        ),
        # The target of optMap is evaluated twice.
        (INTEGER, [0] * 45_000, "optional.of(self.map(x, x)).optMap(l, l.size()).orValue(0) > 0"),
        # So are the arguments and elements after a failing one, which have their price, too.
        (INTEGER, [1_000] * 300, "self.all(x, self[x] == self.map(y, y).size() || true)"),
        (INTEGER, [1_000] * 300, "self.map(x, self[x] + self.map(y, y).size()).size() > 0 || true"),
        (INTEGER, [10_000] * 1_100, "self.all(x, self[x] in self || true)"),
        (TEXT, ["x" * 30_000, *["y"] * 399], "self.all(x, self[0] + string(1 / 0) == '' || true)"),
        (TEXT, ["x" * 30_000, *["y"] * 399], "self.all(x, self[0].contains(string(1 / 0)) || true)"),
        (TEXT, ["x" * 30_000, *["y"] * 399], "self.all(x, string(1 / 0).endsWith(self[0]) || true)"),
        # Separators, bytes and the contents of optionals are read.
        (TEXT, ["x" * 1_000, *[""] * 79], "self.all(x, self.join(self[0]).size() > 0)"),
        (BYTES, ["A" * 5_600] * 60, "self.all(x, self.all(y, !(x < y)))"),
        (TEXT, ["x" * 4_000] * 60, "self.all(x, self.all(y, self[?0] == self[?1]))"),
        # A call with what is no list fails, but costs as much.
        (
            {"x-kubernetes-int-or-string": True},
            ["x" * 5_000, *[1] * 399],
            "self.all(x, sets.contains(x, self) || true)",
        ),
        # A failing list has the size 1, which the depth multiplies.
        (LIST, [], "self[5].flatten(1000001).size() > 0 || true"),
    ],
)
def test_no_evaluation_costs_more_than_its_bound(items: Any, value: Any, rule: str) -> None:
    schema = ruled({"type": "array", "items": items}, rule)
    assert said(admitted(schema, value)) == [
        f'spec.a: Invalid value: "array": {CALL} call cost exceeds limit for rule: {rule}'
    ]
