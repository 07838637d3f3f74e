"""The exact cost of evaluations: the figures are those of the API server's own evaluator (1.37)."""

import random
from contextlib import suppress
from typing import Any

import pytest

from crdkeeper.apiserver.cel.counting.program import STOPPED, Counted, CountedProgram
from crdkeeper.apiserver.cel.counting.tracker import TOO_LONG
from crdkeeper.apiserver.cel.run.binding import bind
from crdkeeper.apiserver.cel.run.evaluate import Account, compile_program
from crdkeeper.apiserver.cel.syntax.nodes import CelSyntaxError
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types.checker import Checked, check
from crdkeeper.apiserver.cel.types.declared import declare
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from tests.cluster.cel.compiling.expressions import Nested
from tests.cluster.cel.compiling.schemas import SELF
from tests.cluster.cel.costs.data import DATA, RULES

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
SCHEMA: Any = {
    "type": "object",
    "properties": {
        "a": TEXT,
        "n": INTEGER,
        "b": {"type": "boolean"},
        "absent": TEXT,
        "l": {"type": "array", "items": INTEGER},
        "t": {"type": "array", "items": TEXT},
        "m": {"type": "object", "additionalProperties": INTEGER},
        "o": {"type": "object", "properties": {"x": INTEGER, "y": TEXT}},
        "i": {"x-kubernetes-int-or-string": True},
        "p": {"type": "array", "items": {"type": "object", "properties": {"x": INTEGER}}},
    },
}
OBJECT: Any = {
    "a": "0123456789abcdefghijé",
    "n": 3,
    "b": True,
    "l": [3, 1, 2],
    "t": ["ab", "c"],
    "m": {"k": 1},
    "o": {"x": 2, "y": "z"},
    "i": 7,
    "p": [{"x": 1}, {"x": 2}],
}
MANY: Any = {**OBJECT, "m": {"k": 1, "l": 2, "m": 3}}
SEED, RANDOM = 20, 1500


def checked(expression: str, schema: Any = SCHEMA) -> tuple[Any, Checked]:
    declared = declare(schema, root=False)
    assert declared is not None
    tree = parse(expression)
    return tree, check(tree, {"self": declared.type(), "oldSelf": declared.type()}, stored=True)


def counted(expression: str, data: Any = OBJECT, **limits: int) -> Counted:
    return CountedProgram(*checked(expression)).evaluate({"self": bind(data, SCHEMA)}, **limits)


COSTS: list[tuple[str, int]] = [
    ("true", 0),
    ("self.n == 3", 3),
    ("self.o.x == 2", 4),
    ("has(self.o)", 1),
    ("has(self.o.x)", 2),
    ("has(self.absent)", 1),
    ("self.absent == 'x'", 3),
    ("self.b && self.n == 3 || self.absent == 'x'", 5),
    ("self.b || self.absent == 'x'", 2),
    ("self.b ? self.n == 3 : self.absent == 'x'", 5),
    ("(self.b ? self.o : self.o).x == 2", 5),
    ("has((self.b ? self.o : self.o).x)", 3),
    ("self.l[0] == 3", 4),
    ("self.l[self.n - 3] == 3", 7),
    ("self.l[self.l[1]] == 1", 6),
    ("self.m[self.a] == 1", 5),
    ("self.m['k'] == 1", 4),
    ("self.m[?self.a].hasValue()", 4),
    ("self.?absent.orValue('') == ''", 1),
    ("self.?o.optMap(o, o.x + o.x).orValue(1) == 4", 13),
    ("has(self.?o.x)", 2),
    ("self.l.all(x, x > 0)", 18),
    ("self.l.exists(x, x == 1)", 18),
    ("self.l.exists_one(x, x == 1)", 12),
    ("self.l.map(x, x + 1).size() == 3", 47),
    ("self.l.map(x, x > 1, x).size() == 2", 37),
    ("self.l.filter(x, x > 1).size() == 2", 37),
    ("self.l.all(i, x, i < x)", 17),
    ("self.l.transformList(i, x, x * i).size() == 3", 50),
    ("self.l.transformMap(i, x, x).size() == 3", 17),
    ("self.m.transformMapEntry(k, v, {k: v}).size() == 1", 39),
    ("self.l.exists(x, x / 0 == 1) || true", 24),
    ("self.l.map(x, self.l.map(y, x * y)).size() == 3", 185),
    ("self.l.sortBy(x, -x)[0] == 3", 79),
    ("[1, 2, 3].size() == 3", 2),
    ("[self.n, 2].size() == 2", 14),
    ("{'a': 1}.size() == 1", 2),
    ("{'a': self.n}.size() == 1", 34),
    ("self.n in [1, 2, 3]", 2),
    ("self.n in self.l", 7),
    ("self.n in [1, self.n]", 16),
    ("self.i in self.l", 7),
    ("int('3') == 3", 1),
    ("string(self.n) == '3'", 4),
    ("self.a == self.a", 7),
    ("self.a != self.a", 7),
    ("self.a < self.a", 7),
    ("self.l == self.l", 5),
    ("self == self", 3),
    ("self.a + self.a == ''", 9),
    ("self.a.startsWith(self.a)", 7),
    ("self.a.contains(self.a)", 13),
    ("self.a.contains('0')", 5),
    ("self.a.matches('^[0-9a-z\u00e9]*$')", 11),
    ("self.a.matches(self.a)", 22),
    ("self.a.find('[a-z]+') == 'abcdefghij'", 9),
    ("self.a.lowerAscii() == self.a", 10),
    ("self.a.split('').size() == 21", 9),
    ("self.t.join(self.a).size() == 24", 11),
    ("self.a.replace('0', self.a).size() == 41", 11),
    ("self.a.indexOf('j') == 19", 5),
    ("self.t.indexOf('c') == 1", 3),
    ("self.l.sum() == 6", 6),
    ("self.t.max() == 'c'", 3),
    ("self.l.isSorted()", 5),
    ("self.l.sort()[0] == 1", 34),
    ("self.t.sort()[0] == 'ab'", 24),
    ("self.l.distinct().size() == 3", 33),
    ("self.l.slice(0, 2).size() == 2", 17),
    ("self.l.reverse()[0] == 2", 19),
    ("[self.l].flatten().size() == 3", 26),
    ("[self.l].flatten(2).size() == 3", 27),
    ("lists.range(self.n).size() == 3", 18),
    ("sets.contains(self.l, [1, 2])", 9),
    ("sets.equivalent(self.l, self.l)", 23),
    ("ip('::1') == ip('::1')", 3),
    ("ip('::1') != ip('::2')", 4),
    ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3),
    ("cidr('10.0.0.0/9').containsIP(ip('10.0.0.1'))", 3),
    ("cidr('10.0.0.0/9').containsCIDR('10.1.0.0/16')", 6),
    ("isIP(self.a)", 5),
    ("quantity('1Gi').isGreaterThan(quantity('1'))", 3),
    ("url('https://a.b/c').getHost() == 'a.b'", 4),
    ("semver('1.2.3').major() == 1", 3),
    ("format.dns1123Label().validate(self.a).hasValue()", 28),
    ("format.uri().validate(self.a).hasValue()", 832),
    ("'%s'.format([self.a]) == self.a", 18),
    ("bytes(self.a) == bytes(self.a)", 13),
    ("strings.quote(self.a) != ''", 5),
    ("duration('1h') > duration('1m')", 1),
    ("self.i == 7", 3),
    ("self.i + 1 == 8", 4),
    ("dyn(self.a).contains('0')", 6),
    ("type(self.n) == int", 4),
    ("self.absent.contains(self.a)", 7),
    ("self.l[7] == self.l[0] + self.l[1]", 11),
    ("dyn(self.n) < dyn(self.a)", 7),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "cost"), COSTS)
def test_the_cost_is_that_of_the_server(expression: str, cost: int) -> None:
    assert counted(expression).cost == cost


@pytest.mark.parametrize(
    "expression",
    [
        *(each for each, _ in COSTS),
        "self.l.filter(x, false).exists_one(x, true)",
        "self.l.filter(x, false).sortBy(x, x).size() == 0",
    ],
)
def test_the_bound_is_no_less_than_the_cost(expression: str) -> None:
    tree, types = checked(expression)
    account = Account()
    with suppress(EvaluationError):
        compile_program(tree, types.overloads).evaluate({"self": bind(OBJECT, SCHEMA)}, account)
    assert Account().left - account.left >= counted(expression).cost


def test_an_evaluation_stops_above_the_limit() -> None:
    expression = "self.l.all(x, x > 0) && self.a.contains(self.a)"
    whole = counted(expression)
    assert (whole.value, whole.stopped) == (True, False)
    assert counted(expression, limit=whole.cost) == whole
    for limit in range(whole.cost):
        found = counted(expression, limit=limit)
        assert found.stopped
        assert limit < found.cost <= whole.cost
        assert isinstance(found.value, EvaluationError)
        assert found.value.message == STOPPED


def test_no_operator_absorbs_the_stop() -> None:
    assert counted("self.l.exists(x, self.l.all(y, y > 0) || true) || true", limit=10).stopped


@pytest.mark.parametrize(
    ("expression", "by_chance"),
    [
        ("self.m.all(k, self.m[k] > 0)", False),
        ("self.m.all(k, self.m[k] > 1)", True),
        ("self.m.exists(k, v, v == 3)", True),
        ("self.m.map(k, self.m[k]).size() == 3", False),
        ("self.m.transformMap(k, v, 1 / (v - 1)).size() == 3", True),
        ("self.m.map(k, k).exists(k, k == 'l')", True),
    ],
)
def test_the_order_in_a_map_can_decide_on_the_cost(expression: str, by_chance: bool) -> None:
    assert counted(expression, MANY).by_chance is by_chance
    assert counted(expression, MANY, limit=12).by_chance is by_chance
    assert not counted(expression).by_chance


def test_our_own_work_is_bounded_where_the_server_takes_nothing_for_it() -> None:
    with pytest.raises(Indeterminate):
        counted("lists.range(900).all(x, !lists.range(900).exists_one(y, false))", work=100_000)
    with pytest.raises(Indeterminate):
        counted("'x'.replace('', self.a).replace('', self.a).replace('', self.a).size() > 0", work=1_000)


def test_what_holds_itself_twice_again_and_again_is_not_gone_through() -> None:
    doubled = "[self.a]" + ".map(x, [x, x])" * 40
    with pytest.raises(Indeterminate, match=TOO_LONG):
        counted(f"{doubled}.indexOf({doubled}[0]) == 0")
    assert counted(f"{doubled}.size() == 1").value is True


@pytest.mark.parametrize(
    "expression",
    [
        "self.all(x, self.exists_one(y, x == y))",
        "self.all(x, self.all(y, x != y || true))",
        "self.all(x, x in self)",
        "self.distinct().size() == 20",
        "sets.contains(self, self)",
    ],
)
def test_a_comparison_is_as_much_work_as_there_is_in_the_values(expression: str) -> None:
    held = {"type": "object", "properties": {"a": {"type": "array", "items": INTEGER}}}
    schema = {"type": "array", "items": held}
    program = CountedProgram(*checked(expression, schema))
    small = [{"a": [n]} for n in range(20)]
    large = [{"a": [*[1] * 2_000, n]} for n in range(20)]
    cost = program.evaluate({"self": bind(small, schema)}, work=100_000).cost
    assert program.evaluate({"self": bind(large, schema)}).cost == cost
    with pytest.raises(Indeterminate, match=TOO_LONG):
        program.evaluate({"self": bind(large, schema)}, work=100_000)


def test_merging_sets_is_work() -> None:
    schema = {"type": "array", "x-kubernetes-list-type": "set", "items": INTEGER}
    program = CountedProgram(*checked("self.all(x, (self + self)[0] == 0)", schema))
    with pytest.raises(Indeterminate, match=TOO_LONG):
        program.evaluate({"self": bind([*range(2_000)], schema)}, work=100_000)


def test_both_ways_to_evaluate_agree() -> None:
    """And so does each with the server, in the tests on the cluster."""
    nested, compared = Nested(random.Random(SEED)), 0
    for expression in [*RULES, *(nested.rule() for _ in range(RANDOM))]:
        try:
            tree, types = checked(expression, SELF)
        except CelSyntaxError:
            continue
        if types.problems:
            continue
        for data in DATA:
            variables = {"self": bind(data, SELF), "oldSelf": bind(DATA[0], SELF)}
            assert _counted(tree, types, variables) == _fast(tree, types, variables), expression
            compared += 1
    assert compared > RANDOM


def _counted(tree: Any, types: Checked, variables: Any) -> Any:
    try:
        value = CountedProgram(tree, types).evaluate(variables).value
    except Indeterminate:
        return Indeterminate
    return value.message if isinstance(value, EvaluationError) else value is True


def _fast(tree: Any, types: Checked, variables: Any) -> Any:
    try:
        return compile_program(tree, types.overloads).evaluate(variables) is True
    except EvaluationError as error:
        return error.message
    except Indeterminate:
        return Indeterminate
