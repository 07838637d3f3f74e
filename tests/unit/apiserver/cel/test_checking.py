"""Expressions get the types, and the errors, that the API server gives them."""

import pytest

from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types import declarations
from crdkeeper.apiserver.cel.types.checker import UndecidedExpression, check
from crdkeeper.apiserver.cel.types.declared import declare
from tests.unit.apiserver.cel.compiling import SCHEMA, verdict


def _type(text: str) -> str:
    declared = declare(SCHEMA, root=True)
    assert declared is not None
    tree = parse(text)
    checked = check(tree, {"self": declared.type(), "oldSelf": declared.type()}, stored=False)
    assert not checked.problems
    return checked.types[tree].text


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("self", "selfType"),
        ("self.inner", "selfType.inner"),
        ("self.nodes", "list(selfType.nodes.@idx)"),
        ("self.nodes[0].tags", "list(string)"),
        ("self.labels", "map(string, string)"),
        ("self.labels.a", "string"),
        ("self.ios", "dyn"),
        ("self.du", "duration"),
        ("self.metadata.name", "string"),
        ("self.?s", "optional_type(string)"),
        ("self.?inner.x", "optional_type(int)"),
        ("self.names[?0].orValue('a')", "string"),
        ("optional.none()", "optional_type(dyn)"),
        ("[]", "list(dyn)"),
        ("[1, 2]", "list(int)"),
        ("[1, 'a']", "list(dyn)"),
        ("{'a': 1}", "map(string, int)"),
        ("self.names.map(x, x.size())", "list(int)"),
        ("self.names.transformMap(i, x, x)", "map(int, string)"),
        ("self.nodes.sortBy(n, n.tags.size())", "list(selfType.nodes.@idx)"),
        ("self.b ? 1 : self.i", "int"),
        ("self.ios + 1", "int"),
        ("self.du - self.du", "duration"),
        ("type(self.i)", "type(int)"),
        ("net.IP", "type(net.IP)"),
        ("google.protobuf.Timestamp", "type(timestamp)"),
        ("ip('1.1.1.1')", "net.IP"),
        ("quantity('1').add(2)", "kubernetes.Quantity"),
        ("format.named('x')", "optional_type(kubernetes.NamedFormat)"),
        ("self.i < 1.5", "bool"),
        ("null", "null"),
    ],
)
def test_type(text: str, type_: str) -> None:
    assert _type(text) == type_


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("self.x", "1:5: undefined field 'x'"),
        ("slef.s == 'a'", "1:1: undeclared reference to 'slef' (in container '')"),
        ("foo(1)", "1:4: undeclared reference to 'foo' (in container '')"),
        ("self.s == 1", "1:8: found no matching overload for '_==_' applied to '(string, int)'"),
        ("self.s.size(1)", "1:12: found no matching overload for 'size' applied to 'string.(int)'"),
        ("self.s.x", "1:7: type 'string' does not support field selection"),
        ("self.i && true", "1:5: expected type 'bool' but found 'int'"),
        (
            "self.s.all(x, true)",
            "1:5: expression of type 'string' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        ),
        ("[1, 'a'].size() == 2", "1:5: expected type 'int' but found 'string'"),
        ("{'a': 1, 2: 3}.size() == 2", "1:10: expected type 'string' but found 'int'"),
        ("[[], [1], ['a']].size() == 3", "1:11: expected type 'list(int)' but found 'list(string)'"),
        ("quantity('1').x == 1", "1:14: unexpected failed resolution of 'kubernetes.Quantity'"),
        ("bool{} == true", "1:5: 'bool' is not a message type"),
        ("self.names.includes('a')", "1:20: undeclared reference to 'includes' (in container '')"),
        ("duration('1x') == self.du", "1:10: invalid duration argument"),
        ("timestamp('x') == timestamp(0)", "1:11: invalid timestamp argument"),
        ("self.s.matches('(')", "1:16: invalid matches argument"),
        (
            "'%d'.format(['a']) == 'a'",
            "1:14: error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%s'.format([]) == 'a'", "1:12: index 0 out of range"),
    ],
)
def test_error(text: str, error: str) -> None:
    problem = verdict(text).problem
    assert problem is not None
    assert problem.splitlines()[0] == f"compilation failed: ERROR: <input>:{error}"


def test_leading_zeros_of_a_precision_do_not_count() -> None:
    problem = verdict(f"'%.{'0' * 20}{'9' * 20}f'.format([1.0]) == 'a'").problem
    assert problem is not None
    assert "value out of range" in problem


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("self.s.find('(') == 'a'", "error parsing regexp: missing closing ): `(`"),
        ("type(self.du) == duration", "reference to undefined type: duration"),
        ("self.ios[null] == 1", "invalid qualifier type: types.Null"),
    ],
)
def test_no_program(text: str, error: str) -> None:
    problem = verdict(text).problem
    assert problem is not None
    assert problem.startswith("program instantiation failed: ")
    assert error in problem


@pytest.mark.parametrize("text", ["self.i", "dyn(true)", "optional.of(true)", "null"])
def test_rule_must_be_bool(text: str) -> None:
    assert verdict(text).problem == "cel expression must evaluate to a bool"


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("oldSelf == self", True),
        ("self.names.all(oldSelf, oldSelf == 'a')", True),
        ("self == self", False),
        ("self.names.all(x, .oldSelf == self)", True),
    ],
)
def test_uses_old_self(text: str, used: bool) -> None:
    assert verdict(text).uses_old_self is used


@pytest.mark.parametrize(
    "text",
    [
        "google.protobuf.Int64Value{value: 1} == 1",
        "google.protobuf.NullValue.NULL_VALUE == 0",
        "[?dyn(1)].size() == 1",
        "self.ios[{'a': 1}] == 1",
    ],
)
def test_left_to_the_server(text: str) -> None:
    found = verdict(text)
    assert found.left is not None
    assert found.problem is None


def test_all_signatures_are_readable() -> None:
    count = 0
    for name in declarations.NAMES:
        overloads = declarations.overloads(name, stored=True)
        assert overloads
        count += len(overloads)
    assert count > 300


def test_what_is_new_is_for_rules_that_are_kept() -> None:
    declared = declare(SCHEMA, root=True)
    assert declared is not None
    tree = parse("self.names.includes('a')")
    assert check(tree, {"self": declared.type()}, stored=False).problems
    assert not check(tree, {"self": declared.type()}, stored=True).problems


def test_expansion_without_end_is_undecided() -> None:
    tree = parse("self.?s" + "".join(f".optMap(x{n}, x{n})" for n in range(40)))
    declared = declare(SCHEMA, root=True)
    assert declared is not None
    with pytest.raises(UndecidedExpression):
        check(tree, {"self": declared.type()}, stored=False)
