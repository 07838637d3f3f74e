"""A valid object that cannot be converted can be read all the same, without losses."""

from typing import Any

import pytest

from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.core.conversion.notes import PREFIX
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from tests.unit.core.conversion.samples import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    at,
    compiled,
    list_of,
    map_of,
    obj,
)

A = "hub: spec.a, spoke: spec.a"
ENUM = {**STRING, "enum": ["x", "y"]}

# schemas of both fields, the rest of the rule, a value of the hub, what the spoke shows
SHOWS: dict[str, tuple[Any, Any, str, Any, Any]] = {
    "a quantity": (STRING, INTEGER, "quantity: Mi", "abc", None),
    "a quantity that is too large": (STRING, INTEGER, "quantity: n", "9Ei", None),
    "a duration": (STRING, NUMBER, "duration: s", "1 minute", None),
    "a text for an integer": (STRING, INTEGER, "cast: true", "http", None),
    "a text for a number": (STRING, NUMBER, "cast: true", "1e999", None),
    "a text for a boolean": (STRING, BOOLEAN, "cast: true", "yes", None),
    "an integer for a boolean": (INTEGER, BOOLEAN, "cast: true", 2, None),
    "a value that no rule knows": (STRING, STRING, "values: [{hub: A, spoke: a}]", "B", None),
    "a list in a text": (STRING, list_of(INTEGER), "separator: ','", "1,two", None),
    "an item without a key": (
        list_of(obj(name=STRING, value=STRING)),
        map_of(STRING),
        "key: name",
        [{"name": "a", "value": "b"}, {"value": "c"}],
        {"a": "b"},
    ),
    "an expression": (STRING, INTEGER, "cel: {toSpoke: int(self), toHub: string(self)}", "x", None),
    "a fill": (STRING, INTEGER, "quantity: Mi, fill: {spoke: 7}", "abc", 7),
    "a default": (STRING, {**INTEGER, "default": 5}, "quantity: Mi", "abc", 5),
    "a fill beside a default": (STRING, {**INTEGER, "default": 5}, "cast: true, fill: {spoke: 7}", "abc", 7),
}
REQUIRED: dict[str, tuple[Any, Any, str, Any]] = {
    "an integer": (STRING, INTEGER, "cast: true", "abc"),
    "bounds": (STRING, {**INTEGER, "minimum": 10, "maximum": 11}, "cast: true", "abc"),
    "an enum": (
        STRING,
        {**STRING, "enum": ["a", "b"]},
        "values: [{hub: A, spoke: a}, {hub: B, spoke: b}]",
        "C",
    ),
    "a pattern": (INTEGER, {**STRING, "pattern": "^v[0-9]$"}, "cel: {toSpoke: string(self / 0)}", 1),
    "a nullable field": (STRING, {**INTEGER, "nullable": True}, "cast: true", "abc"),
    "a list": (STRING, {**list_of(INTEGER), "minItems": 1}, "separator: ','", "abc"),
}


def there_and_back(conversion: Conversion, value: Any) -> Any:
    tally = ConversionTally()
    before = at("v1", value)
    there = conversion.convert(before, "v2", tally)
    assert tally.stand_ins > 0
    assert conversion.convert(there, "v1") == before
    return there["spec"]


@pytest.mark.parametrize(("hub", "spoke", "rule", "value", "shown"), SHOWS.values(), ids=SHOWS)
def test_what_has_no_counterpart_is_kept_aside(
    hub: Any, spoke: Any, rule: str, value: Any, shown: Any
) -> None:
    conversion = compiled(obj(a=hub), {"v2": (obj(a=spoke), f"- {{{A}, {rule}}}")})
    assert there_and_back(conversion, {"a": value}) == ({} if shown is None else {"a": shown})


@pytest.mark.parametrize(("hub", "spoke", "rule", "value"), REQUIRED.values(), ids=REQUIRED)
def test_a_field_that_must_be_there_shows_what_its_schema_allows(
    hub: Any, spoke: Any, rule: str, value: Any
) -> None:
    schema = {**obj(a=spoke), "required": ["a"]}
    conversion = compiled(obj(a=hub), {"v2": (schema, f"- {{{A}, {rule}}}")})
    assert not Validator(schema).check(there_and_back(conversion, {"a": value}))


def test_a_text_without_parts_leaves_all_of_them_out() -> None:
    rule = "- {hub: spec.a, join: {template: '{host}:{port}', parts: {host: spec.host, port: spec.port}}}"
    spoke = obj(host=STRING, port=INTEGER)
    assert there_and_back(compiled(obj(a=STRING), {"v2": (spoke, rule)}), {"a": "x:http"}) == {}
    assert there_and_back(compiled(obj(a=STRING), {"v2": (spoke, rule)}), {"a": "x"}) == {}
    filled = rule.replace("}}}", "}}, fill: {spoke: {port: 80}}}")
    assert there_and_back(compiled(obj(a=STRING), {"v2": (spoke, filled)}), {"a": "x:http"}) == {"port": 80}


def test_an_edit_beside_it_leaves_it_and_an_edit_of_it_wins() -> None:
    schemas = obj(a=STRING, b=STRING), obj(a=INTEGER, b=STRING)
    conversion = compiled(schemas[0], {"v2": (schemas[1], f"- {{{A}, quantity: Mi}}")})
    there = conversion.convert(at("v1", {"a": "abc", "b": "x"}), "v2")
    beside = {**there, "spec": {**there["spec"], "b": "y"}}
    assert conversion.convert(beside, "v1") == at("v1", {"a": "abc", "b": "y"})
    edited = {**there, "spec": {**there["spec"], "a": 5}}
    assert conversion.convert(edited, "v1") == at("v1", {"a": "5Mi", "b": "x"})


def test_a_conversion_that_is_exact_by_its_schemas_keeps_what_they_do_not_know() -> None:
    # The value was written before the enum was narrowed.
    pairs = "values: [{hub: x, spoke: a}, {hub: y, spoke: b}]"
    conversion = compiled(obj(a=ENUM), {"v2": (obj(a={**STRING, "enum": ["a", "b"]}), f"- {{{A}, {pairs}}}")})
    there = conversion.convert(at("v1", {"a": "z"}), "v2")
    assert there["spec"] == {}
    assert PREFIX + "v1" in there["metadata"]["annotations"]


@pytest.mark.parametrize("value", ["not a label", "x" * 64, "-x", "é"])
def test_no_label_gets_a_value_that_the_api_server_refuses(value: str) -> None:
    rule = "- {hub: spec.a, spoke: 'metadata.labels[example.com/a]'}"
    conversion = compiled(obj(a=STRING), {"v2": (obj(), rule)})
    there = conversion.convert(at("v1", {"a": value}), "v2")
    assert "labels" not in there["metadata"]
    assert conversion.convert(there, "v1") == at("v1", {"a": value})


def test_no_annotation_is_another_thing_than_a_text() -> None:
    rule = "- {hub: spec.a, spoke: 'metadata.annotations[example.com/a]'}"
    conversion = compiled(obj(a=STRING), {"v2": (obj(), rule)})
    there = conversion.convert(at("v1", {"a": 5}), "v2")
    assert set(there["metadata"]["annotations"]) == {PREFIX + "v1"}
