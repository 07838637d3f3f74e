"""A rule as a whole: the format of errors, what is checked, and bounded time."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.apiserver.cel.compilation import CannotDeclare, RulePlace, compile_rules
from crdkeeper.apiserver.schema.props import VALIDATIONS
from tests.unit.apiserver.cel.compiling import SCHEMA, compiled, verdict


def test_errors_are_shown_with_their_line() -> None:
    assert verdict("self.s ==\n\tself.x && 'é' == self.y").problem == (
        "compilation failed: ERROR: <input>:2:6: undefined field 'x'\n"
        " |  self.x && 'é' == self.y\n"
        " | .....^\n"
        "ERROR: <input>:2:23: undefined field 'y'\n"
        " |  self.x && 'é' == self.y\n"
        " | ............\uff0e.........^"
    )


def test_the_mark_below_a_wide_character_is_wide() -> None:
    problem = verdict("'é' == 1 || self.`s`.é").problem
    assert problem is not None
    assert problem.endswith("\uff3e")


def test_at_most_a_hundred_errors_are_shown() -> None:
    problem = verdict(" || ".join(f"x{n}" for n in range(120))).problem
    assert problem is not None
    assert problem.count("ERROR: ") == 100
    assert problem.endswith("\n20 more errors were truncated")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_rule_is_not_compiled(text: str) -> None:
    assert compiled({"rule": text, "messageExpression": "self.x"}).rule is None


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("'a' + self.s", None),
        ("self.i", "messageExpression must evaluate to a string"),
        ("self.x", "messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'x'"),
        ("string(int('x'))", "messageExpression instantiation failed: type conversion error"),
    ],
)
def test_message_expression(expression: str, problem: str | None) -> None:
    found = compiled({"rule": "self.b", "messageExpression": expression})
    assert found.rule is not None
    assert found.rule.problem is None
    assert found.message is not None
    if problem is None:
        assert found.message.problem is None
    else:
        assert found.message.problem is not None
        assert found.message.problem.startswith(problem)


def test_message_of_a_rule_that_does_not_compile_is_not_looked_at() -> None:
    assert compiled({"rule": "self.x", "messageExpression": "self.x"}).message is None


def test_optional_old_self() -> None:
    assert verdict("oldSelf.s == 'a'").problem is None
    found = compiled({"rule": "oldSelf.s == 'a'", "optionalOldSelf": True}).rule
    assert found is not None
    assert found.problem is not None
    found = compiled({"rule": "oldSelf.s == optional.of('a')", "optionalOldSelf": True}).rule
    assert found is not None
    assert found.problem is None


def test_a_node_that_cel_cannot_see() -> None:
    schema = {"x-kubernetes-preserve-unknown-fields": True, VALIDATIONS: [{"rule": "true"}]}
    place = RulePlace.root({"type": "object", "properties": {"u": schema}}).field("u", schema)
    with pytest.raises(CannotDeclare, match="unable to convert structural schema"):
        compile_rules(place)


def test_types_are_those_that_the_node_above_declares() -> None:
    metadata: dict[str, Any] = {"type": "object", VALIDATIONS: [{"rule": "self.name == 'a'"}]}
    root = {"type": "object", "properties": {"metadata": metadata}}
    alone = compile_rules(RulePlace.root(root).field("metadata", metadata))[0].rule
    assert alone is not None
    assert alone.problem is not None
    with_rules = {**root, VALIDATIONS: [{"rule": "true"}]}
    below = compile_rules(RulePlace.root(with_rules).field("metadata", metadata))[0].rule
    assert below is not None
    assert below.problem is None


def _doubling(depth: int) -> str:
    text = "true"
    for n in range(depth, 0, -1):
        text = f"[{{v{n - 1}: v{n - 1}}}].all(v{n}, {text})"
    return f"[1].all(v0, {text})"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "self.?s" + "".join(f".optMap(x{n}, x{n})" for n in range(40)) + ".hasValue()", id="optMap"
        ),
        pytest.param(_doubling(60), id="types"),
        pytest.param("(" * 99_000, id="parentheses"),
        pytest.param("[" * 200 + "]" * 200, id="lists"),
    ],
)
def test_bombs_are_left_to_the_server(text: str) -> None:
    assert verdict(text).left is not None


@pytest.mark.parametrize(
    "text",
    ["a" * 100_001, "self.s" + ".s" * 20_000, '"' * 99_999, "'" + "\\" * 99_990, "1" * 90_000, "a?" * 30_000],
)
def test_bombs_that_the_server_refuses(text: str) -> None:
    assert verdict(text).problem is not None


@pytest.mark.parametrize(
    "text", ["self.i == 1 && " * 6000 + "true", "!" * 90_000 + "true", "[" + "1," * 30_000 + "1].size() > 1"]
)
def test_long_rules_that_the_server_takes(text: str) -> None:
    found = verdict(text)
    assert (found.problem, found.left) == (None, None)


_PIECES = (
    "self s names nodes all map has optMap x 1 'a' b'a' 1.5 null true . .? ( ) [ ] { } , : ? + - == < in && "
    "|| ! int duration format type optional of `s` é \\ \" ''"
)
_WORDS = st.sampled_from((*_PIECES.split(), " ", "\n"))


@given(st.lists(_WORDS, max_size=30).map("".join) | st.text(max_size=40))
def test_any_text_gets_a_verdict(text: str) -> None:
    found = compiled({"rule": text, "messageExpression": text}, SCHEMA).rule
    if found is not None:
        assert found.problem is None or found.left is None
