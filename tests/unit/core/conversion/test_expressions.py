"""Rules in CEL: their input, their possible results, and their failures."""

import json
import subprocess
import sys
from typing import Any

import pytest

from crdkeeper.apiserver.cel.expressions import BadExpression
from crdkeeper.core.conversion.expressions import expression
from crdkeeper.core.conversion.notes import PREFIX
from crdkeeper.core.conversion.values import Unconvertible
from tests.unit.core.conversion.samples import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    at,
    compiled,
    crd,
    errors,
    list_of,
    map_of,
    obj,
)

A = {"hub": "spec.a", "spoke": "spec.a"}
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}
TIME, DURATION, BYTES = ({**STRING, "format": each} for each in ("date-time", "duration", "byte"))
AB, XY = ["a", "b"], {"x": "x", "y": True}
MERGED = ["z", "y", "a", "b"]
BOTH, LISTED = obj(l=list_of(STRING), m=map_of(STRING)), {"l": ["z", "y"], "m": {"b": "", "a": ""}}
SPLIT = """- hub: spec.all
  spoke: spec.all
  each:
  - {hub: url, cel: {toHub: "object.host + ':' + string(object.port)"}}
  - {spoke: host, cel: {toSpoke: "object.url.split(':')[0]"}}
  - {spoke: port, cel: {toSpoke: "int(object.url.split(':')[1])"}, refuse: true}
"""


def to_spoke(source: Any, target: Any, text: str, **rule: Any) -> Any:
    """A conversion of the hub's `a` to the spoke's."""
    rules = [{**A, "cel": {"toSpoke": text}, **rule}]
    return compiled(obj(a=source, b=source), {"v2": (obj(a=target, b=source), json.dumps(rules))})


# the schema of the hub's field and the spoke's, an expression, a value, its result
GIVES: dict[str, tuple[Any, Any, str, Any, Any]] = {
    "self": (STRING, STRING, "self + '!'", "x", "x!"),
    "the object": (STRING, STRING, "object.metadata.name + object.spec.a", "x", "ax"),
    "a field that is not there": (STRING, STRING, "has(object.spec.b) ? object.spec.b : 'none'", "x", "none"),
    "an optional with a value": (STRING, STRING, "object.?spec.?a", "x", "x"),
    "null": (STRING, {**STRING, "nullable": True}, "null", "x", None),
    "a whole number": (NUMBER, NUMBER, "2", 1, 2),
    "a whole double for an integer": (NUMBER, INTEGER, "dyn(self)", 2.0, 2),
    "an integer or a string": (INTEGER, INT_OR_STRING, "self > 5 ? dyn(self) : dyn('few')", 1, "few"),
    "a map": (list_of(STRING), map_of(INTEGER), "self.transformMapEntry(i, v, {v: i})", ["x"], {"x": 0}),
    "fields of several types": (STRING, obj(x=STRING, y=BOOLEAN), "{'x': self, 'y': true}", "x", XY),
    "a list in order": (map_of(STRING), list_of(STRING), "self.map(k, k).sort()", {"b": "", "a": ""}, AB),
    "a list from a map": (map_of(STRING), list_of(STRING), "self.map(k, k)", {"b": "", "a": ""}, AB),
    "a list and one from a map": (BOTH, list_of(STRING), "self.l + self.m.map(k, k)", LISTED, MERGED),
    "a set and a list from a map": (
        obj(l={**list_of(STRING), "x-kubernetes-list-type": "set"}, m=map_of(STRING)),
        list_of(STRING),
        "self.l + self.m.map(k, k)",
        LISTED,
        MERGED,
    ),
    "such lists in one": (
        BOTH,
        list_of(STRING),
        "[self.l, self.m.map(k, k)].flatten()",
        LISTED,
        MERGED,
    ),
    "data as they are": (obj(x=STRING), obj(x=STRING, y=STRING), "self", {"x": "1"}, {"x": "1"}),
    "a time": (TIME, TIME, "self + duration('1h')", "2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z"),
    "a duration": (DURATION, DURATION, "self + self", "45s", "1m30s"),
    "bytes": (BYTES, BYTES, "self + b'b'", "YQ==", "YWI="),
    "anything": (STRING, ANYTHING, "[self]", "x", ["x"]),
}


@pytest.mark.parametrize(("source", "target", "text", "value", "wanted"), GIVES.values(), ids=GIVES)
def test_what_an_expression_gives(source: Any, target: Any, text: str, value: Any, wanted: Any) -> None:
    conversion = to_spoke(source, target, text)
    made = conversion.convert(at("v1", {"a": value}), "v2")
    assert made["spec"] == {"a": wanted}
    assert conversion.convert(made, "v1") == at("v1", {"a": value})


def test_what_leaves_a_field_unset() -> None:
    for text in ("optional.none()", "self == '' ? optional.none() : optional.of(self)", "object.?spec.?b"):
        assert to_spoke(STRING, STRING, text).convert(at("v1", {"a": ""}), "v2")["spec"] == {}
    # Without the field of self, nothing is evaluated; without self, the object alone decides.
    assert to_spoke(STRING, STRING, "'x'").convert(at("v1", {}), "v2") == at("v2", {})
    alone = compiled(
        obj(), {"v2": (obj(a=STRING), "- {spoke: spec.a, cel: {toSpoke: object.metadata.name}}")}
    )
    assert alone.convert(at("v1", {}), "v2") == at("v2", {"a": "a"})


def test_null_is_not_evaluated() -> None:
    null = {**STRING, "nullable": True}
    for target, wanted in ((null, {"a": None}), (STRING, {})):
        conversion = to_spoke(null, target, "self.upperAscii()")
        made = conversion.convert(at("v1", {"a": None}), "v2")
        assert made["spec"] == wanted
        assert conversion.convert(made, "v1") == at("v1", {"a": None})


def test_a_field_whose_way_back_nobody_wrote_is_kept_aside() -> None:
    conversion = to_spoke(STRING, STRING, "self + '!'")
    there = conversion.convert(at("v1", {"a": "x"}), "v2")
    assert there["metadata"]["annotations"].keys() == {PREFIX + "v1"}
    there["spec"]["a"] = "edited"
    assert conversion.convert(there, "v1")["spec"] == {"a": "x"}
    assert conversion.convert(conversion.convert(there, "v1"), "v2")["spec"] == {"a": "edited"}


def test_what_the_way_back_would_change_is_kept_aside_unless_it_was_edited() -> None:
    rules = "- {hub: spec.a, spoke: spec.a, cel: {toHub: self.lowerAscii(), toSpoke: self.upperAscii()}}"
    conversion = compiled(obj(a=STRING), {"v2": (obj(a=STRING), rules)})
    there = conversion.convert(at("v1", {"a": "mIxed"}), "v2")
    assert there["spec"] == {"a": "MIXED"}
    assert conversion.convert(there, "v1") == at("v1", {"a": "mIxed"})
    there["spec"]["a"] = "NEW"
    assert conversion.convert(there, "v1") == at("v1", {"a": "new"})


def test_items_are_objects_of_their_own() -> None:
    hub, spoke = obj(all=list_of(obj(url=STRING))), obj(all=list_of(obj(host=STRING, port=INTEGER)))
    conversion = compiled(hub, {"v2": (spoke, SPLIT)})
    new = at("v1", {"all": [{"url": "a:1"}, {"url": "b:2"}]})
    old = at("v2", {"all": [{"host": "a", "port": 1}, {"host": "b", "port": 2}]})
    assert conversion.convert(new, "v2") == old
    assert conversion.convert(old, "v1") == new
    rule = r"spec\.spokes\[0\]\.rules\[0\]\.each\[2\]\.cel\.toSpoke"
    with pytest.raises(Unconvertible, match=rf"^spec\.all: \[1\]: port: {rule}: index out of bounds"):
        conversion.convert(at("v1", {"all": [{"url": "a:1"}, {"url": "b"}]}), "v2")


def test_an_annotation_as_self() -> None:
    rules = "- {hub: spec.a, spoke: 'metadata.annotations[example.com/a]', cel: {toHub: self + '!'}}"
    conversion = compiled(obj(a=STRING), {"v2": (obj(), rules)})
    made = conversion.convert(at("v2", {}, annotations={"example.com/a": "x"}), "v1")
    assert made["spec"] == {"a": "x!"}
    assert conversion.convert(made, "v2") == at("v2", {}, annotations={"example.com/a": "x"})


# the schemas of the two fields, an expression, a part of the error
FAILS: dict[str, tuple[Any, Any, str, Any, str]] = {
    "an error of the evaluation": (INTEGER, INTEGER, "1 / self", 0, "division by zero"),
    "a field that is not there": (STRING, STRING, "object.spec.b", "x", "no such key$"),
    "data of another type": (INTEGER, INTEGER, "self + 1", "x", "expected int$"),
    "a result of another type": (STRING, INTEGER, "dyn(self)", "x", "it is a string, and no integer"),
    "a part of another type": (
        STRING,
        list_of(INTEGER),
        "[dyn(1), dyn(self)]",
        "x",
        r"\[1\] is a string, and no integer",
    ),
    "a field that nobody knows": (STRING, obj(x=STRING), "{'y': self}", "x", "y: there is no such field"),
    "null in it": (STRING, obj(x=STRING), "{'x': null}", "x", "x: null"),
    "what JSON does not have": (NUMBER, NUMBER, "self / 0.0", 1.0, "a number that JSON does not have"),
    "a type that is none of JSON": (STRING, ANYTHING, "quantity(self)", "1", "use string"),
    "too much work": (
        list_of(INTEGER),
        INTEGER,
        "self.map(a, self.map(b, self.map(c, a * b * c))).size()",
        [1] * 200,
        "may cost more than the API server allows",
    ),
}


@pytest.mark.parametrize(("source", "target", "text", "value", "words"), FAILS.values(), ids=FAILS)
def test_an_error_names_the_field_and_the_rule(
    source: Any, target: Any, text: str, value: Any, words: str
) -> None:
    with pytest.raises(
        Unconvertible, match=rf"^spec\.a: spec\.spokes\[0\]\.rules\[0\]\.cel\.toSpoke: .*{words}"
    ):
        to_spoke(source, target, text, refuse=True).convert(at("v1", {"a": value}), "v2")
    # Without `refuse` the field is left out, and nothing is lost.
    conversion = to_spoke(source, target, text)
    there = conversion.convert(at("v1", {"a": value}), "v2")
    assert there["spec"] == {}
    # What the schema of its own version does not allow is not restored.
    back = {} if words == "expected int$" else {"a": value}
    assert conversion.convert(there, "v1")["spec"] == back


def test_all_evaluations_of_an_object_together_are_limited() -> None:
    inner = "{hub: a, spoke: a, refuse: true, cel: {toSpoke: 'lists.range(5000).size()'}}"
    rules = f"- {{hub: spec.all, spoke: spec.all, each: [{inner}]}}"
    schema = obj(all=list_of(obj(a=INTEGER)))
    conversion = compiled(schema, {"v2": (schema, rules)})
    assert conversion.convert(at("v1", {"all": [{"a": 1}] * 3}), "v2")["spec"]["all"] == [{"a": 5000}] * 3
    for _ in range(2):
        with pytest.raises(Unconvertible, match="may cost more"):
            conversion.convert(at("v1", {"all": [{"a": 1}] * 10_000}), "v2")


# the rule, its path, a part of the message
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "a field that is not declared": (
        {**A, "cel": {"toHub": "object.spec.c"}},
        ".cel.toHub",
        "undefined field 'c'",
    ),
    "no syntax": ({**A, "cel": {"toSpoke": "self +"}}, ".cel.toSpoke", "Syntax error"),
    "a wrong type": ({**A, "cel": {"toHub": "self + 1"}}, ".cel.toHub", "no matching overload"),
    "a wrong result": (
        {**A, "cel": {"toHub": "1"}},
        ".cel.toHub",
        "gives a value of type int, but the field is string",
    ),
    "a wrong part": (
        {"hub": "spec.l", "spoke": "spec.l", "cel": {"toHub": "['x']"}},
        ".cel.toHub",
        "in what it gives: gives a value of type string, but the field is integer",
    ),
    "no expression": ({**A, "cel": {}}, ".cel", "has no expression"),
    "no field to write": (
        {"hub": "spec.a", "cel": {"toSpoke": "'x'"}},
        ".cel.toSpoke",
        "the rule names no field of the spoke",
    ),
    "no self": ({"hub": "spec.a", "cel": {"toHub": "self"}}, ".cel.toHub", "undeclared reference to 'self'"),
    "no oldSelf": ({**A, "cel": {"toHub": "oldSelf"}}, ".cel.toHub", "undeclared reference to 'oldSelf'"),
    "a bad pattern": ({**A, "cel": {"toHub": "self.find('(')"}}, ".cel.toHub", "missing closing"),
    "a type that CEL cannot see": (
        {"hub": "spec.any", "spoke": "spec.any", "cel": {"toHub": "self"}},
        ".cel.toHub",
        "CEL has no type for spec.any",
    ),
    "beside another": ({**A, "cast": True, "cel": {"toHub": "'x'"}}, "", "cast and cel exclude each other"),
}


@pytest.mark.parametrize(("rule", "where", "words"), WRONG.values(), ids=WRONG)
def test_expressions_that_cannot_work(rule: dict[str, Any], where: str, words: str) -> None:
    schema = obj(a=STRING, l=list_of(INTEGER), any=ANYTHING)
    found = errors(schema, schema, repr([rule]))
    assert [each for each in found if each.where == f"spec.spokes[0].rules[0]{where}"], found
    assert words in found[0].message


BAD_TEXTS = [
    " ",
    "(" * 5000,
    "a" * 8000,
    "self" + "+self" * 1600,
    "'\ud800'",
    "\ud800 + 1",
    "self.map(a,self)",
]


@pytest.mark.parametrize("text", BAD_TEXTS, ids=range(len(BAD_TEXTS)))
def test_a_text_that_is_no_expression_is_refused_in_bounded_time(text: str) -> None:
    with pytest.raises(BadExpression):
        expression(text, "here", crd(obj(a=STRING)), ("spec", "a"), STRING, top=True)


def test_the_engine_is_loaded_by_those_who_need_it() -> None:
    code = (
        "import sys\n"
        "from crdkeeper.core.conversion import objects\n"
        "print([each for each in sys.modules if each.endswith(('cel.compiler', 'cel.checker'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("wide", [10, 100])
def test_a_result_that_contains_itself_many_times(wide: int) -> None:
    repeated = f".optMap(x, [{', '.join(['x'] * wide)}])"
    conversion = to_spoke(STRING, ANYTHING, "optional.of(dyn(1))" + repeated * 8 + ".value()", refuse=True)
    with pytest.raises(Unconvertible, match="too many values"):
        conversion.convert(at("v1", {"a": "x"}), "v2")
