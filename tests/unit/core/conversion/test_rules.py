"""Each rule, in both directions, and the errors of impossible ones."""

# Long because it is two tables of cases.

import json
from typing import Any

import pytest

from crdkeeper.core.conversion.values import Unconvertible
from tests.unit.core.conversion.samples import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    at,
    compiled,
    errors,
    list_of,
    map_of,
    obj,
)

ENUM = {"type": "string", "enum": ["Small", "Large"]}
SIZES = "[{hub: Small, spoke: small}, {hub: Large, spoke: large}]"
LOWER = {"type": "string", "enum": ["small", "large"]}
NULLABLE = {"type": "string", "nullable": True}
PARTS = "{host: spec.host, port: spec.port}"
PORT_LIST = list_of(obj(name=STRING, port=INTEGER), "name")

# hub schema, spoke schema, rules, hub spec, spoke spec
BOTH_WAYS: dict[str, tuple[Any, Any, str, Any, Any]] = {
    "rename": (obj(a=STRING), obj(b=STRING), "- {hub: spec.a, spoke: spec.b}", {"a": "x"}, {"b": "x"}),
    "unset": (obj(a=STRING), obj(b=STRING), "- {hub: spec.a, spoke: spec.b}", {}, {}),
    "move": (
        obj(schedule=obj(cron=STRING), other=INTEGER),
        obj(cron=STRING, other=INTEGER),
        "- {hub: spec.schedule.cron, spoke: spec.cron}",
        {"schedule": {"cron": "x"}, "other": 1},
        {"cron": "x", "other": 1},
    ),
    "a whole object": (
        obj(a=obj(x=STRING)),
        obj(b=obj(x=STRING)),
        "- {hub: spec.a, spoke: spec.b}",
        {"a": {"x": "y"}},
        {"b": {"x": "y"}},
    ),
    "swap": (
        obj(a=STRING, b=STRING),
        obj(a=STRING, b=STRING),
        "- {hub: spec.a, spoke: spec.b}\n- {hub: spec.b, spoke: spec.a}",
        {"a": "x", "b": "y"},
        {"a": "y", "b": "x"},
    ),
    "values": (
        obj(size=ENUM),
        obj(size=LOWER),
        "- {hub: spec.size, spoke: spec.size, values: " + SIZES + "}",
        {"size": "Large"},
        {"size": "large"},
    ),
    "values that may be null": (
        obj(size={**ENUM, "nullable": True, "enum": [*ENUM["enum"], None]}, other=NULLABLE),
        obj(size={**LOWER, "nullable": True, "enum": [*LOWER["enum"], None]}, other=NULLABLE),
        f"- {{hub: spec.size, spoke: spec.size, values: {SIZES}}}",
        {"size": None, "other": None},
        {"size": None, "other": None},
    ),
    "scale": (
        obj(seconds=INTEGER),
        obj(millis=INTEGER),
        "- {hub: spec.seconds, spoke: spec.millis, scale: {hub: 1, spoke: 1000}}",
        {"seconds": 3},
        {"millis": 3000},
    ),
    "cast a number": (
        obj(port=INTEGER),
        obj(port=STRING),
        "- {hub: spec.port, spoke: spec.port, cast: true}",
        {"port": 8080},
        {"port": "8080"},
    ),
    "cast a boolean": (
        obj(on=BOOLEAN),
        obj(on=STRING),
        "- {hub: spec.on, spoke: spec.on, cast: true}",
        {"on": True},
        {"on": "true"},
    ),
    "quantity": (
        obj(memory=STRING),
        obj(memoryMiB=INTEGER),
        "- {hub: spec.memory, spoke: spec.memoryMiB, quantity: Mi}",
        {"memory": "512Mi"},
        {"memoryMiB": 512},
    ),
    "duration": (
        obj(timeoutSeconds=INTEGER),
        obj(timeout=STRING),
        "- {hub: spec.timeoutSeconds, spoke: spec.timeout, duration: s}",
        {"timeoutSeconds": 5400},
        {"timeout": "1h30m0s"},
    ),
    "wrap": (
        obj(hosts=list_of(STRING)),
        obj(host=STRING),
        "- {hub: spec.hosts, spoke: spec.host, wrap: true}",
        {"hosts": ["x"]},
        {"host": "x"},
    ),
    "key": (
        obj(ports=map_of(obj(port=INTEGER))),
        obj(ports=PORT_LIST),
        "- {hub: spec.ports, spoke: spec.ports, key: name}",
        {"ports": {"web": {"port": 80}, "db": {}}},
        {"ports": [{"name": "db"}, {"name": "web", "port": 80}]},
    ),
    "key, with rules inside": (
        obj(ports=list_of(obj(name=STRING, number=INTEGER), "name")),
        obj(ports=map_of(obj(port=STRING))),
        "- {hub: spec.ports, spoke: spec.ports, key: name, each: [{hub: number, spoke: port, cast: true}]}",
        {"ports": [{"name": "web", "number": 80}]},
        {"ports": {"web": {"port": "80"}}},
    ),
    "each item": (
        obj(ports=list_of(obj(name=STRING, number=INTEGER))),
        obj(ports=PORT_LIST),
        "- {hub: spec.ports, spoke: spec.ports, each: [{hub: number, spoke: port}]}",
        {"ports": [{"name": "web", "number": 80}, {}]},
        {"ports": [{"name": "web", "port": 80}, {}]},
    ),
    "each value": (
        obj(ports=map_of(obj(number=INTEGER))),
        obj(ports=map_of(obj(port=INTEGER))),
        "- {hub: spec.ports, spoke: spec.ports, each: [{hub: number, spoke: port}]}",
        {"ports": {"web": {"number": 80}}},
        {"ports": {"web": {"port": 80}}},
    ),
    "join": (
        obj(host=STRING, port=INTEGER),
        obj(hostPort=STRING),
        '- {spoke: spec.hostPort, join: {template: "{host}:{port}", parts: ' + PARTS + "}}",
        {"host": "::1", "port": 80},
        {"hostPort": "::1:80"},
    ),
}


@pytest.mark.parametrize(("hub", "spoke", "rules", "one", "other"), BOTH_WAYS.values(), ids=BOTH_WAYS)
def test_both_ways(hub: Any, spoke: Any, rules: str, one: Any, other: Any) -> None:
    conversion = compiled(hub, {"v2": (spoke, rules)})
    assert conversion.convert(at("v1", one), "v2") == at("v2", other)
    assert conversion.convert(at("v2", other), "v1") == at("v1", one)


def test_an_annotation_is_a_place() -> None:
    rules = "- {hub: spec.owner, spoke: 'metadata.annotations[example.com/owner]'}"
    conversion = compiled(obj(owner=STRING), {"v2": (obj(), rules)})
    old = at("v2", {}, annotations={"example.com/owner": "me", "other": "x"})
    new = conversion.convert(old, "v1")
    assert new == at("v1", {"owner": "me"}, annotations={"other": "x"})
    assert conversion.convert(new, "v2") == old


def test_what_has_no_counterpart_is_an_error_that_names_the_field() -> None:
    values = "[{hub: Small, spoke: small}]"
    each = f"[{{hub: a, spoke: a, values: {values}}}]"
    rules = f"- {{hub: spec.list, spoke: spec.list, refuse: true, each: {each}}}"
    schema = obj(list=list_of(obj(a=STRING)))
    conversion = compiled(schema, {"v2": (schema, rules)})
    with pytest.raises(
        Unconvertible, match=r"spec\.list: \[1\]: a: a string that is none of the rule's values"
    ):
        conversion.convert(at("v1", {"list": [{"a": "Small"}, {"a": "huge"}]}), "v2")


def test_the_object_itself_is_left_alone() -> None:
    for hub, spoke, rules, one, other in BOTH_WAYS.values():
        conversion = compiled(hub, {"v2": (spoke, rules)})
        for version, to, spec in (("v1", "v2", one), ("v2", "v1", other)):
            value = at(version, spec)
            before = json.dumps(value)
            conversion.convert(value, to)
            assert json.dumps(value) == before


# hub schema, spoke schema, rules, path, a part of the message
WRONG: dict[str, tuple[Any, Any, str, str, str]] = {
    "a field that is gone": (
        obj(a=STRING),
        obj(),
        "",
        "spec.spokes[0].version",
        "spec.a: the spoke has no such field; add a rule such as {hub: spec.a, aside: true}",
    ),
    "a field that looks like another": (
        obj(schedule=STRING),
        obj(cronSchedule=STRING),
        "",
        "spec.spokes[0].version",
        "add a rule such as {hub: spec.schedule, spoke: spec.cronSchedule}",
    ),
    "another type": (
        obj(a=STRING),
        obj(a=INTEGER),
        "",
        "spec.spokes[0].version",
        "add a rule such as {hub: spec.a, spoke: spec.a, cast: true}",
    ),
    "items that differ": (
        obj(a=list_of(obj(x=STRING))),
        obj(a=list_of(obj(y=STRING))),
        "",
        "spec.spokes[0].version",
        "{hub: spec.a, spoke: spec.a, each: [{hub: x, aside: true}, {spoke: y, aside: true}]}",
    ),
    "deep inside of each": (
        obj(a=list_of(obj(x=STRING, z=STRING))),
        obj(a=list_of(obj(y=STRING))),
        "- {hub: spec.a, spoke: spec.a, each: [{hub: x, spoke: y}]}",
        "spec.spokes[0].rules[0].each",
        "z: the spoke has no such field",
    ),
    "no such field": (
        obj(a=STRING),
        obj(a=STRING),
        "- {hub: spec.a, spoke: spec.b}",
        "spec.spokes[0].rules[0].spoke",
        "spec.b: the spoke has no such field",
    ),
    "no field": (obj(), obj(), "- {cast: true}", "spec.spokes[0].rules[0]", "names neither"),
    "one side alone": (
        obj(a=STRING),
        obj(),
        "- {hub: spec.a}",
        "spec.spokes[0].rules[0]",
        "say aside, drop or cel",
    ),
    "both sides aside": (
        obj(a=STRING),
        obj(a=STRING),
        "- {hub: spec.a, spoke: spec.a, aside: true}",
        "spec.spokes[0].rules[0]",
        "name one side",
    ),
    "two kinds": (
        obj(a=STRING),
        obj(a=STRING),
        "- {hub: spec.a, spoke: spec.a, cast: true, wrap: true}",
        "spec.spokes[0].rules[0]",
        "cast and wrap exclude each other",
    ),
    "twice": (
        obj(a=STRING, b=STRING),
        obj(a=STRING, b=STRING),
        "- {hub: spec.a, spoke: spec.b}\n- {hub: spec.a, spoke: spec.a}",
        "spec.spokes[0].rules[1].hub",
        "spec.spokes[0].rules[0].hub is about spec.a already",
    ),
    "metadata": (
        obj(a=STRING),
        obj(),
        "- {hub: spec.a, spoke: metadata.name}",
        "spec.spokes[0].rules[0].spoke",
        "single annotations and labels only",
    ),
    "what is kept aside": (
        obj(a=STRING),
        obj(),
        "- {hub: spec.a, spoke: 'metadata.annotations[conversion.crdkeeper.dev/v1]'}",
        "spec.spokes[0].rules[0].spoke",
        "holds what the conversion keeps aside",
    ),
    "no path": (
        obj(a=STRING),
        obj(),
        "- {hub: spec.a, spoke: spec..b}",
        "spec.spokes[0].rules[0].spoke",
        "not a field such as",
    ),
    "a value that is missing": (
        obj(size=ENUM),
        obj(size=LOWER),
        "- {hub: spec.size, spoke: spec.size, values: [{hub: Small, spoke: small}]}",
        "spec.spokes[0].rules[0].values",
        "lacks 'Large', which the hub allows",
    ),
    "a value for null": (
        obj(size=ENUM),
        obj(size=LOWER),
        f"- {{hub: spec.size, spoke: spec.size, values: [{{hub: null, spoke: none}}, {SIZES[1:]}}}",
        "spec.spokes[0].rules[0].values",
        "must not contain null, which always becomes null",
    ),
    "a unit that is none": (
        obj(a=STRING),
        obj(a=INTEGER),
        "- {hub: spec.a, spoke: spec.a, quantity: MB}",
        "spec.spokes[0].rules[0].quantity",
        "'MB' is none of Ki, Mi",
    ),
    "a template that cannot be read back": (
        obj(a=STRING, b=STRING),
        obj(c=STRING),
        '- {spoke: spec.c, join: {template: "{a}{b}", parts: {a: spec.a, b: spec.b}}}',
        "spec.spokes[0].rules[0].join.template",
        "needs a text between two parts",
    ),
    "a separator without a list": (
        obj(a=STRING),
        obj(a=INTEGER),
        "- {hub: spec.a, spoke: spec.a, separator: ','}",
        "spec.spokes[0].rules[0].separator",
        "needs a list of scalars on one side and a string on the other",
    ),
    "a wrapped list of other things": (
        obj(a=list_of(obj(x=STRING))),
        obj(a=obj(y=STRING)),
        "- {hub: spec.a, spoke: spec.a, wrap: true}",
        "spec.spokes[0].rules[0].wrap",
        "add each: [...]",
    ),
    "a map of values that has no single field": (
        obj(a=list_of(obj(name=STRING, x=STRING, y=STRING))),
        obj(a=map_of(STRING)),
        "- {hub: spec.a, spoke: spec.a, key: name}",
        "spec.spokes[0].rules[0].key",
        "beside name the items must have one other field",
    ),
    "rules for what is no object": (
        obj(a=STRING),
        obj(a=STRING),
        "- {hub: spec.a, spoke: spec.a, each: []}",
        "spec.spokes[0].rules[0].each",
        "needs two lists or two maps of objects, or two objects",
    ),
    "rules for items that are no objects": (
        obj(a=list_of(STRING)),
        obj(a=list_of(STRING)),
        "- {hub: spec.a, spoke: spec.a, each: []}",
        "spec.spokes[0].rules[0].each",
        "is for objects, not for string; use cel",
    ),
    "a fill for no side": (
        obj(a=STRING),
        obj(a=STRING),
        "- {hub: spec.a, spoke: spec.a, fill: x, cel: {toHub: self}}",
        "spec.spokes[0].rules[0].fill",
        "must be {hub: …, spoke: …}",
    ),
    "a fill that the schema does not allow": (
        obj(a=STRING),
        obj(a=INTEGER),
        "- {hub: spec.a, spoke: spec.a, cast: true, fill: {spoke: none}}",
        "spec.spokes[0].rules[0].fill.spoke",
        "the schema does not allow this value",
    ),
    "a fill for parts that there are not": (
        obj(a=STRING),
        obj(b=STRING),
        "- {hub: spec.a, join: {template: 'x-{b}', parts: {b: spec.b}}, fill: {spoke: {c: x}}}",
        "spec.spokes[0].rules[0].fill.spoke",
        "must have values by the parts: b",
    ),
    "a fill for a move": (
        obj(a=STRING),
        obj(b=STRING),
        "- {hub: spec.a, spoke: spec.b, fill: {hub: x}}",
        "spec.spokes[0].rules[0].fill",
        "not for a move",
    ),
    "fill and refuse": (
        obj(a=STRING),
        obj(a=INTEGER),
        "- {hub: spec.a, spoke: spec.a, cast: true, fill: {spoke: 0}, refuse: true}",
        "spec.spokes[0].rules[0]",
        "exclude each other",
    ),
    "refuse for what one side alone has": (
        obj(a=STRING),
        obj(),
        "- {hub: spec.a, aside: true, refuse: true}",
        "spec.spokes[0].rules[0].refuse",
        "is for a rule by which a value may have no counterpart",
    ),
    "an error in rules within": (
        obj(a=list_of(obj(x=STRING))),
        obj(a=obj(x=INTEGER)),
        "- {hub: spec.a, spoke: spec.a, wrap: true, each: [{hub: x, spoke: x}]}",
        "spec.spokes[0].rules[0].each[0]",
        "the types differ (string in the hub, integer in the spoke)",
    ),
    "an entry of a map whose rest nobody wants": (
        obj(a=map_of(STRING)),
        obj(b=STRING),
        "- {hub: 'spec.a[b]', spoke: spec.b}",
        "spec.spokes[0].version",
        "spec.a: the spoke has no such field; add a rule such as {hub: spec.a, aside: true}",
    ),
    "a whole that is dropped with a part that is not": (
        obj(a=map_of(STRING)),
        obj(b=STRING),
        "- {hub: 'spec.a[b]', spoke: spec.b}\n- {hub: spec.a, drop: true}",
        "spec.spokes[0].rules[1].hub",
        "spec.spokes[0].rules[0].hub is about spec.a.b already",
    ),
    "another item than the first": (
        obj(a=list_of(STRING)),
        obj(b=STRING),
        "- {hub: 'spec.a[1]', spoke: spec.b}",
        "spec.spokes[0].rules[0].hub",
        "spec.a[1]: the hub has no such field",
    ),
    "types that do not fit": (
        obj(a=list_of(STRING)),
        obj(a=INTEGER),
        "- {hub: spec.a, spoke: spec.a, cast: true}",
        "spec.spokes[0].rules[0].cast",
        "does not fit the types array (hub) and integer (spoke)",
    ),
}


@pytest.mark.parametrize(("hub", "spoke", "rules", "where", "words"), WRONG.values(), ids=WRONG)
def test_rules_that_cannot_work(hub: Any, spoke: Any, rules: str, where: str, words: str) -> None:
    found = errors(hub, spoke, rules)
    assert any(each.where == where and words in each.message for each in found), found


def test_rules_of_numbers() -> None:
    rules = "- {hub: spec.ratio, spoke: spec.percent, scale: {hub: 1, spoke: 100}}"
    conversion = compiled(obj(ratio=NUMBER), {"v2": (obj(percent=INTEGER), rules)})
    assert conversion.convert(at("v1", {"ratio": 0.25}), "v2") == at("v2", {"percent": 25})
