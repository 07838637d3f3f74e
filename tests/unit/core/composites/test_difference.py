"""What differs between two objects, field by field."""

import base64
from typing import Any

import pytest

from crdkeeper.core.composites.difference import differences
from crdkeeper.core.conversion.nesting import loads

Json = Any


def changed(before: Json, after: Json, **names: str) -> Json:
    """The fields by path."""
    return {each.path: (each.before, each.after) for each in differences(before, after, names)}


def config_map(data: Json, **metadata: Any) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": data}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"data.a": ("1", "2")}),
        ({"a": 1}, {"a": True}, {"data.a": ("1", "true")}),
        ({"a": None}, {}, {"data.a": ("null", None)}),
        ({"a": {"b": 1}}, {"a": {"b.c/d": 1}}, {"data.a.b": ("1", None), "data.a['b.c/d']": (None, "1")}),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, {"data.a[1]": ("2", "3"), "data.a[2]": (None, "4")}),
        (
            {"a": [{"name": "x", "v": 1}, {"name": "y"}]},
            {"a": [{"name": "y"}, {"name": "x", "v": 2}]},
            {"data.a[name=x].v": ("1", "2")},
        ),
        ({"a": [{"name": "x"}, {"name": "x"}]}, {"a": []}, {"data.a[0]": ('{"name":"x"}', None)}),
    ],
)
def test_fields_that_differ(before: Json, after: Json, found: Json) -> None:
    result = changed(config_map(before), config_map(after))
    assert {key: result.get(key) for key in found} == found
    assert bool(result) == bool(found)


def test_what_the_server_and_the_composer_set_is_left_out() -> None:
    ours = {"crdkeeper.dev/composite-uid": "u", "crdkeeper.dev/resource": "r"}
    before = config_map({}, uid="1", resourceVersion="1", managedFields=[{}], labels={"a": "b"})
    note = {"crdkeeper.dev/applied": "x", "crdkeeper.dev/outlives": "u"}
    after = config_map(
        {}, uid="2", resourceVersion="2", generation=3, labels={"a": "b", **ours}, annotations=note
    )
    assert changed(before, {**after, "status": {"x": 1}}) == {}


def test_a_new_object_is_told_field_by_field() -> None:
    after = config_map({"a": "b"}, ownerReferences=[{}], labels={"x": "y"})
    assert changed(None, after) == {"metadata.labels": (None, '{"x":"y"}'), "data.a": (None, '"b"')}
    assert changed(None, {**after, "immutable": True})["immutable"] == (None, "true")


def test_no_value_of_a_secret_is_shown() -> None:
    value = base64.b64encode(b"s3cr3t").decode()
    last = {"kubectl.kubernetes.io/last-applied-configuration": value}
    after = {**config_map({"p": value}, annotations=last), "kind": "Secret", "stringData": {"q": "s3cr3t"}}
    for before in (None, {**config_map({"p": "b2xk"}, annotations={}), "kind": "Secret"}):
        result = changed(before, after)
        assert {"data.p", "stringData.q"} <= result.keys() or "stringData" in result
        text = repr(result)
        assert "s3cr3t" not in text
        assert value not in text
        assert "b2xk" not in text


def test_no_value_of_what_may_copy_a_secret_is_shown() -> None:
    after = config_map({"a": "s3cr3t", "list": [{"name": "x", "v": "s3cr3t"}]}, labels={"b": "s3cr3t"})
    for before in (None, config_map({"a": "0ld", "gone": "0ld"})):
        found = [*differences(before, after, {}, copies_secrets=True)]
        assert {"data.a", "metadata.labels"} <= {each.path for each in found}
        assert {each.before for each in found} | {each.after for each in found} <= {None, "(not shown)"}


def test_uids_that_only_a_dry_run_gives_are_named() -> None:
    found = differences(config_map({}), config_map({"x": "id 123"}), {"123": "(uid of ConfigMap b)"})
    assert [each.after for each in found] == ['"id (uid of ConfigMap b)"']


def test_values_are_shortened_and_may_be_nested_as_deep_as_an_api_server_accepts() -> None:
    (long,) = differences(config_map({}), config_map({"x": "y" * 5000}), {})
    assert long.after is not None
    assert long.after.endswith("… (5,002 characters)")
    deep = loads('{"a":' + "[" * 5000 + "]" * 5000 + "}")
    other = loads('{"a":' + "[" * 5001 + "]" * 5001 + "}")
    assert changed(config_map(deep), config_map(deep)) == {}
    assert changed(config_map(deep), config_map(other))
