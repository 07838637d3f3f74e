# ruff: noqa: E501
"""Values and errors of expressions; tests/cluster compares them with the API server's."""

import math
from time import process_time
from typing import Any

import pytest

from crdkeeper.apiserver.cel.run.budget import Account
from crdkeeper.apiserver.cel.run.evaluate import compile_program
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types.checker import check
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.unordered import NO_ORDER
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate
from tests.unit.apiserver.cel.running import outcome, value

DOUBLED = "[1]" + ".map(x, [x, x])" * 40


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("9223372036854775807 + 1", "!integer overflow"),
        ("-9223372036854775808 - 1", "!integer overflow"),
        ("1u - 2u", "!unsigned integer overflow"),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("1 / 0", "!division by zero"),
        ("1 % 0", "!modulus by zero"),
        ("1.0 / 0.0", math.inf),
        ("dyn(1) + 1.0", "!no such overload"),
        ("dyn(true) + 1", "!no such overload: _+_"),
        ("dyn('a') - 'b'", "!no such overload"),
        ("dyn([1]) < [2]", "!no such overload: _<_"),
        ("1 == 1.0 && dyn(1u) == 1", True),
        ("dyn(9007199254740993) == 9007199254740992.0", True),
        ("double('NaN') == double('NaN')", False),
        ("double('NaN') < 1.0", "!NaN values cannot be ordered"),
        ("'a' < 'b' && b'a' < b'b' && false < true", True),
    ],
)
def test_operators(expression: str, expected: object) -> None:
    assert outcome(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1/0 > 1 || true", True),
        ("1/0 > 1 && false", False),
        ("1/0 > 1 || 2 % 0 > 1", "!division by zero"),
        ("true || 1/0 > 1", True),
        ("{'b': 1, 'a': 2}.map(k, k).sortBy(k, k) == ['a', 'b']", True),
        ("[1, 2].all(x, x == 1 ? 1 / 0 > 0 : 1 % 0 > 0)", "!division by zero"),
        ("{'a': 1, 'b': 2}.map(k, k).sort() == ['a', 'b'] && 'a' in {'a': 1, 'b': 2}.map(k, k)", True),
        ("{'a': 1.5, 'b': 2.25}.transformList(k, v, v).sum()", 3.75),
        ("{'a': 9, 'b': -2}.transformList(k, v, v).sum()", 7),
        ("{'a': 1, 'b': 2}.map(k, k) == ['a', 'c'] || {'a': 1}.map(k, k)[0] != 'a'", False),
        ("['a', 'c'] == {'a': 1, 'b': 2}.map(k, k)", False),
        ("dyn(1) || true", True),
        ("dyn(1) || false", "!no such overload"),
        ("true ? 1 : 1/0", 1),
        ("[1, 2, 3].all(x, 10 / (x - 2) > 20)", False),
        ("[1, 2, 3].all(x, 10 / (x - 2) != 0)", "!division by zero"),
        ("[1, 2, 3].exists(x, 10 / (x - 2) > 5)", True),
        ("[1, 2].exists_one(x, 1 / (x - 1) == 1)", "!division by zero"),
        ("[0, 1].exists_one(x, x == 0 ? 1 / x > 0 : 1 % 0 > 0)", "!modulus by zero"),
        ("[0, 1].map(x, x == 0 ? 1 / x : 1 % 0)", "!division by zero"),
        ("[0, 1].filter(x, x == 0 ? 1 / x > 0 : 1 % 0 > 0)", "!modulus by zero"),
        ("['5'].map(s, quantity(s)).all(q, q.isLessThan(quantity('1Pi')) && !q.isInteger())", True),
        ("[1, 2].all(i, [quantity('5')].all(q, q.isInteger() && q.isLessThan(quantity('1Pi'))))", True),
        ("[quantity('5')].all(q, q != quantity('1Pi') && q.asInteger() == 5)", True),
        ("quantity('1') != quantity('1').add(0)", True),
        ("quantity('1') == quantity('1').add(0)", "!no such overload"),
        ("[1].sortBy(x, 1/0) == [1] || true", True),
        ("dyn({}).flatten(1) == [] || true", True),
    ],
)
def test_errors_go_where_the_server_lets_them(expression: str, expected: object) -> None:
    assert outcome(expression) == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("dyn(1).distinct() == [1] || true", "types.Int is not traits.Lister: missing method Contains"),
        ("[].flatten(dyn('a')) == [] || true", "ref.Val is types.String, not types.Int"),
        ("[].flatten(1/0) == [] || true", "ref.Val is *types.Err, not types.Int"),
        ("(1/0 == 1 ? [1] : []).flatten(dyn(1u)) == [] || true", "ref.Val is types.Uint, not types.Int"),
    ],
)
def test_panics_go_everywhere(expression: str, said: str) -> None:
    assert outcome(expression) == f"!internal error: interface conversion: {said}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("{'a': 1}.b", "!no such key: b"),
        ("[1][1]", "!index out of bounds: 1"),
        ("[1][dyn(1.5)]", "!unsupported index value 1.5 in list"),
        ("[1][dyn('a')]", "!unsupported index type 'string' in list"),
        ("{'a': 1}[dyn(null)]", "!invalid qualifier type: types.Null"),
        ("{1: 'x'}[dyn(1u)]", "x"),
        ("has({'a': {}}.a.b)", False),
        ("has({}.a.b)", "!no such key: a"),
        ("{'a': 1}.?b.orValue(2)", 2),
        ("{}.?a.b.c.hasValue()", False),
        ("optional.none().value()", "!optional.none() dereference"),
        ("1/0 in []", False),
        ("dyn(1.0) in [1]", True),
        ("string(1e6) + string(100000.0) + string(1e-5)", "1e+061000001e-05"),
        ("'%.2f|%e|%.12e|%x'.format([1234.5, 1234.5, 1.5, -255])", "1,234.50|1.234500\u00d710⁰³|1.500000\u00d710⁰⁰|-ff"),
        ("'%s'.format([{'b': [1.0, null], 'a': duration('1s')}])", '{"a":duration("1s"), "b":[1.000000, null]}'),
        ("'a*'.size() == 2 && 'baac'.findAll('a*') == ['', 'aa', '']", True),
        ("'x'.matches('(' + 'a')", "!error parsing regexp: missing closing ): `(a`"),
        ("duration('-1.5h').getMinutes()", -90),
        ("string(duration('1.5s')) + string(timestamp('2024-01-01T00:00:00.10+01:00'))", "1.5s2024-01-01T00:00:00.1+01:00"),
        ("timestamp('2024-03-10T12:00:00Z').getHours('America/New_York')", 8),
        ("timestamp(0).getHours('x:30')", '!strconv.Atoi: parsing "x": invalid syntax'),
        ("timestamp(0).getHours('a zone')", "!unknown time zone a zone"),
        ("ip('1:0:0:4:0:0:0:8') == ip('1:0:0:4::8') && !isIP('01.2.3.4')", True),
        ("url('http://a:80/b%20c?x=1#y').getEscapedPath()", "/b%20c"),
        ("semver('v1', true).minor()", 0),
        ("[[1], [2, [3]]].flatten(2) == [1, 2, 3]", True),
        ("dyn({}).flatten()", "!no such overload: map(dyn, dyn).flatten()"),
        ("dyn(optional.none()).flatten(1)", "!no such overload: optional_type(dyn).flatten(int)"),
        ("['b', 'a'].sort()[0] + ['b', 'a'].sortBy(x, x)[1]", "ab"),
        ("format.dns1035Label().validate('1a').value()[0].startsWith('a DNS-1035 label')", True),
    ],
)  # fmt: skip
def test_selection_and_library(expression: str, expected: object) -> None:
    assert outcome(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000)))",
        "lists.range(100000000)",
        "lists.range(900000).sort()",
        " == ".join(["[1]" + ".map(x, [x, x])" * 30] * 2),
        f"{DOUBLED}.flatten().size() == 2",
        f"{DOUBLED}.indexOf({DOUBLED}[0]) == 0",
        f"'%s'.format([{DOUBLED}]) == ''",
        "lists.range(200).map(x, 'x').join('').replace('', lists.range(100000).map(x, 'y').join(''))",
        "'%.100000f'.format([1.0])",
        "quantity('1e1000000000')",
        "timestamp(0).getHours('Local')",
        "timestamp(0).getHours('Mars/Base')",
        "[].sum()",
        "{'a': 0.1, 'b': 0.7, 'c': 0.2}.transformList(k, v, v).sum() == 1.0",
        "{'a': 9223372036854775807, 'b': 1, 'c': -1}.transformList(k, v, v).sum()",
        "!(dyn(b'a') in ['a'])",
        "dyn(semver('1.0.0')) in ['1.0.0']",
        "{'a': 1, 'b': 2}.map(k, k)[0]",
        "{'a': 1, 'b': 2}.map(k, k).sortBy(k, 1)",
        "{'a': 1, 'b': 2}.map(k, k).filter(k, true).join()",
        "{'a': 1, 'b': 2}.map(k, k).all(i, k, i > 0 || k == 'a')",
        "['a', 'b'] == {'a': 1, 'b': 2}.map(k, k)",
        "[{'a': 1, 'b': 2}.map(k, k)].flatten()[0]",
        "'%s'.format([{'a': 1, 'b': 2}.map(k, k)])",
        "[] + {'a': 1, 'b': 2}.transformList(k, v, v) == [1, 2]",
        "{'a': 0, 'b': 1}.all(k, v, v == 0 ? v / 0 == 1 : k.charAt(9) == '')",
        "{'a': 0, 'b': 1}.exists_one(k, v, v == 0 ? v / 0 == 1 : k.charAt(9) == '')",
        "{'a': 0, 'b': 1}.transformList(k, v, v == 0 ? string(v / 0) : k.charAt(9))",
        "{'a': 0, 'b': 1}.transformList(k, v, v == 0 ? v / 0 == 1 : true, k.charAt(9))",
    ],
)
def test_what_only_the_server_can_tell_is_left_to_it(expression: str) -> None:
    with pytest.raises(Indeterminate):
        value(expression)


TEXTS: Any = {"type": "array", "items": {"type": "string"}}
NUMBERS: Any = {"type": "object", "additionalProperties": {"type": "integer"}}
LISTS: Any = {
    "type": "object",
    "properties": {
        "l": TEXTS,
        "s": {**TEXTS, "x-kubernetes-list-type": "set"},
        "k": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"],
        },
        "m": NUMBERS,
        "n": NUMBERS,
    },
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("self.l == self.m.map(k, k + k)", False),
        ("self.s == self.m.map(k, k)", True),
        ("(self.l + self.m.map(k, k)).size()", 4),
        ("[self.l, self.m.map(k, k)].flatten().size()", 4),
        ("self.m.map(k, k).all(i, k, k != '')", True),
        ("self.l == self.m.map(k, k)", None),
        ("[self.l] == [self.m.map(k, k)]", None),
        ("(self.l + self.m.map(k, k))[2] == 'a'", None),
        ("(self.s + self.m.map(k, k))[0] == 'a'", True),
        ("(self.s + self.m.map(k, k + k)).size()", 4),
        ("'bb' in self.s + self.m.map(k, k + k)", True),
        ("(self.s + self.m.map(k, k + k))[2] == 'aa'", None),
        ("(self.s + self.m.map(k, k + k)) == ['bb', 'b', 'aa', 'a']", True),
        ("self.l + ['aa', 'bb'] == self.s + self.m.map(k, k + k)", None),
        ("(self.s + self.m.map(k, k + k) + ['a', 'c']).size()", 5),
        ("(self.l + self.m.map(k, k))[1]", "b"),
        ("(self.k + dyn(self.m.map(k, {'n': k}))).size()", None),
        ("(self.k + dyn(self.m.map(k, {'n': k + k}))).size()", 3),
    ],
)
def test_a_list_made_from_a_map_has_no_order_beside_one_of_the_object(
    expression: str, expected: object
) -> None:
    data = {"l": ["a", "b"], "s": ["a", "b"], "k": [{"n": "a"}], "m": {"a": 1, "b": 2}}
    if expected is None:
        with pytest.raises(Indeterminate, match=NO_ORDER):
            value(expression, data, LISTS)
    else:
        assert value(expression, data, LISTS) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "self.m.map(k, k) == self.n.map(k, k)",
        "[self.m.map(k, k)] == [self.n.map(k, k)]",
        "optional.of(self.m.map(k, k)) == optional.of(self.n.map(k, k))",
    ],
)
def test_the_elements_of_lists_made_from_maps_are_not_compared_with_each_other(expression: str) -> None:
    names = [f"n{i}" for i in range(20_000)]
    data = {"m": dict.fromkeys(names, 1), "n": dict.fromkeys(reversed(names), 1)}
    with pytest.raises(Indeterminate, match=NO_ORDER):
        value(expression, data, LISTS)


def test_a_deep_expression_ends() -> None:
    compared = " == ".join(["[" * 60 + "1" + "]" * 60] * 2)
    assert value(compared) is True
    long = " + ".join(["1"] * 200)
    assert value(long) == 200


def test_an_account_adds_up_the_cost_of_all_rules() -> None:
    program = compile_program(parse("lists.range(1000).all(x, x >= 0)"))
    account = Account()
    program.evaluate({}, account)
    spent = Account().left - account.left
    assert 1000 < spent < 100_000
    account.left = spent
    assert program.evaluate({}, account) is True
    with pytest.raises(Indeterminate):
        program.evaluate({}, account)


def test_old_self_may_be_absent_or_optional() -> None:
    program = compile_program(parse("oldSelf.orValue(1) == 1"))
    assert program.evaluate({"oldSelf": NONE}) is True
    assert program.evaluate({"oldSelf": OptionalValue(2)}) is False
    with pytest.raises(EvaluationError, match=r"no such attribute\(s\): oldSelf"):
        program.evaluate({})


def test_a_name_after_a_dot_is_not_that_of_a_variable_of_a_macro() -> None:
    assert value("[1].all(self, self == 1 && .self == 2)", 2, {"type": "integer"}) is True


def test_an_error_that_is_sorted_by_keys_of_one_type_is_a_panic() -> None:
    tree = parse("[[1]].map(x, x[0] / 0 == 1 ? x : x)[0].sortBy(x, x) == [] || true")
    checked = check(tree, {}, stored=False)
    with pytest.raises(EvaluationError, match=r"internal error: .*\*types\.Err is not traits\.Lister"):
        compile_program(tree, checked.overloads).evaluate({})


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0 == [[1 / 0].map(x, x)[0]].distinct()[0]",
        "'a'.split('')[5] in ['b'].map(x, 'b'.split('')[7]).distinct()",
    ],
)
def test_an_error_on_the_left_does_not_hide_a_panic_on_the_right(expression: str) -> None:
    with pytest.raises(EvaluationError, match="internal error: interface conversion"):
        compile_program(parse(expression)).evaluate({})


@pytest.mark.parametrize(
    ("expression", "value_"),
    [
        ("(self.b ? has(self.?o.x) : false) == true", False),
        ("self.b && has(self.?o.x)", True),
        ("self.b ? has(self.o.x) : false", True),
        ("(self.b ? has(self.?p.x) : false) == false", False),
        ("has(self.?p.x) == false", True),
    ],
)
def test_the_branch_of_a_conditional_is_not_tested_for_presence_in_an_optional(
    expression: str, value_: bool
) -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"b": {"type": "boolean"}, "o": inner, "p": inner}}
    assert value(expression, {"b": True, "o": {"x": 1}}, schema) is value_


def test_errors_over_a_map_that_are_alike_or_decided_by_another_entry() -> None:
    assert outcome("{'a': 1, 'b': 2}.all(k, v, v / 0 == 1)") == "!division by zero"
    assert (
        outcome(
            "{'a': 0, 'b': 1, 'c': 2}.all(k, v, v == 0 ? v / 0 == 1 : v == 1 ? k.charAt(9) == '' : false)"
        )
        is False
    )
    assert outcome("{'a': 1, 'b': 2}.map(k, k.charAt(9))").startswith("!index out of range")


def test_the_last_index_of_a_text() -> None:
    assert value("['bc', 'a', 'x', ''].map(x, 'abcabc'.lastIndexOf(x))") == [4, 3, -1, 6]
    assert value("[0, 1, 3, 4, 6].map(x, 'abcabc'.lastIndexOf('bc', x))") == [-1, 1, 1, 4, -1]


def test_the_last_index_of_a_long_text_is_found_in_linear_time() -> None:
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"text": text, "part": text}}
    data = {"text": "a" * 600_000, "part": "ab" + "a" * 300_000}
    seconds = process_time()
    assert value("self.text.lastIndexOf(self.part)", data, schema) == -1
    assert process_time() - seconds < 5


def test_leading_zeros_do_not_count() -> None:
    zeros = "0" * 2_000
    assert value(f"int('{zeros}7')") == 7
    assert value(f"isQuantity('1e{zeros}5')") is True
    assert value(f"timestamp(0).getHours('{zeros}1:00')") == 1


def test_the_distinct_elements_of_an_empty_set_are_a_set() -> None:
    assert value("(self.s.distinct() + ['x', 'x']).size()", {"s": []}, LISTS) == 1
