"""The size of values, by which the bound of a cost and its count go alike."""

from typing import Any

import pytest

from crdkeeper.apiserver.cel.counting.prices import price_of
from crdkeeper.apiserver.cel.library.format import format_text
from crdkeeper.apiserver.cel.run.binding import bind
from crdkeeper.apiserver.cel.run.budget import CONSTANT_CALL, cost_of
from crdkeeper.apiserver.cel.values.containers import CelMap
from crdkeeper.apiserver.cel.values.network import cidr, ip
from crdkeeper.apiserver.cel.values.sizes import size_of
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate

KNOWN: Any = {"type": "object", "properties": {"n": {"type": "integer"}}}
UNSEEN = {f"x{i}": i for i in range(300)}


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("äöü", 3),
        (b"abcd", 4),
        ([1, 2], 2),
        (7, 1),
        (None, 1),
        (ip("10.0.0.1"), 4),
        (ip("::1"), 16),
        (cidr("10.0.0.0/8"), 1),
        (cidr("10.0.0.0/25"), 4),
        (cidr("10.0.0.0/0"), 0),
        (cidr("::/128"), 16),
    ],
)
def test_sizes(value: Any, size: int) -> None:
    assert size_of(value) == size


@pytest.mark.parametrize("network", ["10.0.0.0/32", "::/128", "::/0"])
def test_the_bound_for_addresses_is_no_less_than_their_cost(network: str) -> None:
    one, text = cidr(network), network.partition("/")[0]
    for function, overload, args in (
        ("containsIP", "cidr_contains_ip_ip", [one, ip(text)]),
        ("containsIP", "cidr_contains_ip_string", [one, text]),
        ("containsCIDR", "cidr_contains_cidr", [one, one]),
        ("containsCIDR", "cidr_contains_cidr_string", [one, network]),
    ):
        assert cost_of(function)(args) + CONSTANT_CALL >= price_of(function, overload)(args, True)


@pytest.mark.parametrize(
    ("function", "overload", "args", "result"),
    [
        ("reverse", "list_reverse", [[]], []),
        ("reverse", "list_reverse", [[1, 2]], [2, 1]),
        ("slice", "list_slice", [[], 0, 0], []),
        ("lists.range", "lists_range", [0], []),
        ("lists.range", "lists_range", [-1], EvaluationError("no list")),
        ("distinct", "list_distinct", [[]], []),
        ("sort", "list_string_sort", [["a", "b"]], ["a", "b"]),
        ("flatten", "list_flatten", [[]], []),
        ("join", "list_join_string", [[""] * 100, "x" * 1_000], "x" * 99_000),
        ("indexOf", "list_a_index_of_int", [[CelMap.of_strings({"a": "x" * 1_000})], 1], -1),
        ("indexOf", "list_a_index_of_int", [[bind({"n": 1, **UNSEEN}, KNOWN)], 1], -1),
    ],
)
def test_the_bound_for_lists_is_no_less_than_their_cost(
    function: str, overload: str, args: list[Any], result: Any
) -> None:
    assert cost_of(function)(args) + CONSTANT_CALL >= price_of(function, overload)(args, result)


def test_a_field_that_cel_does_not_see_costs_two() -> None:
    price = price_of("indexOf", "list_a_index_of_int")
    assert price([[bind({"n": 1, **UNSEEN}, KNOWN)], 1], -1) == 1 + 2 * len(UNSEEN)


@pytest.mark.parametrize(
    "value", ["x" * 1_000, b"x" * 1_000, -1e308, {"a": "x" * 1_000}], ids=lambda each: type(each).__name__
)
def test_the_bound_for_format_grows_with_the_text_of_each_value(value: Any) -> None:
    each = CelMap.of_strings(value) if type(value) is dict else value
    values: list[Any] = [[each] * 100]
    assert cost_of("format")(["%s", values]) >= len(format_text("%s", values)) // 10


@pytest.mark.parametrize("values", [["x" * 100_000] * 101, [[1e308] * 101] * 500])
def test_a_text_that_may_be_too_long_is_not_made(values: list[Any]) -> None:
    with pytest.raises(Indeterminate):
        cost_of("format")(["%s", [values]])
