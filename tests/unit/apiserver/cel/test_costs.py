"""Cost estimates equal the API server's.

tests/cluster/cel/test_cel_compiles_agree.py compares them with the real server, to six digits.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from crdkeeper.apiserver.cel.compilation import EXPRESSION_COST_LIMIT, RulePlace, compile_rules, cost_problem
from crdkeeper.apiserver.schema.props import VALIDATIONS
from tests.unit.apiserver.cel.compiling import SCHEMA, compiled, verdict


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("true", 0),
        # self, s, and one character of ten compared
        ("self.s == 'a'", 3),
        ("self.i > 1", 3),
        ("has(self.inner.x)", 2),
        # 40 bytes at a tenth of a unit each
        ("self.s == self.s", 8),
        ("self.s.contains(self.s)", 20),
        # 11 of a list, of which 5 elements cost 6 each
        ("self.names.all(x, x == 'a')", 28),
        ("self.i in [1, 2]", 14),
        # the keys of a map have no size in the schema
        ("self.labels.all(k, self.labels[k] == 'a')", 27),
        ("self.s.matches('^a+$')", 7),
        ("duration('1h') > self.du", 4),
        ("quantity(self.s).isGreaterThan(quantity('1'))", 8),
        ("self.names.sort() == self.names", 69),
        # up to the size of a request
        ("self.long == self.long", 314_577),
        ("self.long.matches(self.long)", 247_390_273_540),
        # the loop over n.tags is counted as one over n.other: the path is overwritten in between
        ("self.nodes.all(n, n.tags.all(t, n.other.exists(o, o == t)))", 141),
        ("self.nodes.all(n, n.other.all(t, n.tags.exists(o, o == t)))", 429),
        ("self.names.map(x, x + x).exists(y, y == 'a')", 129),
        # the size of an optional's value is unknown
        ("self.?s.optMap(x, x + 'a').orValue('b') == 'c'", 1_844_674_407_370_955_284),
    ],
)
def test_cost(text: str, cost: int) -> None:
    assert verdict(text).cost == cost


def test_a_rule_costs_as_often_as_its_node_can_occur() -> None:
    item: Mapping[str, Any] = {
        "type": "object",
        "properties": {"s": {"type": "string"}},
        VALIDATIONS: [{"rule": "self.s == 'a'"}],
    }
    bounded = {"type": "array", "maxItems": 7, "items": item}
    unbounded = {"type": "array", "items": item}
    assert _total(bounded, item) == 3 * 7
    # Each item takes at least {} and a comma of the 3 MiB of a request.
    assert _total(unbounded, item) == 3 * (3 * 1024 * 1024 // 3)
    assert _total({"type": "object", "maxProperties": 5, "additionalProperties": item}, item) == 15


def _total(container: Mapping[str, Any], item: Mapping[str, Any]) -> int:
    at = RulePlace.root({"type": "object", "properties": {"l": container}}).field("l", container)
    return compile_rules(at.items(item))[0].total_cost


@pytest.mark.parametrize(
    ("cost", "factor"),
    [
        (10_000_001, "1.000000x"),
        (14_900_000, "1.490000x"),
        (15_000_000, "1.5x"),
        (2**64 - 1, "more than 100x"),
    ],
)
def test_problem_with_a_cost(cost: int, factor: str) -> None:
    problem = cost_problem("estimated rule cost", cost, EXPRESSION_COST_LIMIT)
    assert problem is not None
    assert problem.startswith(f"estimated rule cost exceeds budget by factor of {factor} (try simplifying")


def test_no_problem_at_the_limit() -> None:
    assert cost_problem("estimated rule cost", EXPRESSION_COST_LIMIT, EXPRESSION_COST_LIMIT) is None


def test_message_expressions_have_a_cost_of_their_own() -> None:
    found = compiled({"rule": "true", "messageExpression": "self.long + self.long"}, SCHEMA)
    assert found.message is not None
    assert found.message.cost == 4 + 629_146
    assert found.total_cost == 0
