"""What a version cannot hold comes back, edits win, and ways over several versions lose nothing."""

from typing import Any

import pytest

from crdkeeper.core.conversion.keptaside import PREFIX
from crdkeeper.core.conversion.objects import Conversion
from tests.unit.core.conversion.samples import INTEGER, STRING, at, compiled, list_of, map_of, obj

ASIDE = "- {hub: spec.extra, aside: true}"
MEMORY = "- {hub: spec.memory, spoke: spec.memoryMiB, quantity: Mi}"


def kept(value: dict[str, Any]) -> set[str]:
    annotations = value["metadata"].get("annotations", {})
    return {key.removeprefix(PREFIX) for key in annotations if key.startswith(PREFIX)}


@pytest.fixture
def aside() -> Conversion:
    return compiled(obj(a=STRING, extra=STRING), {"v2": (obj(a=STRING), ASIDE)})


def test_what_one_side_alone_has_comes_back(aside: Conversion) -> None:
    old = at("v1", {"a": "x", "extra": "y"})
    new = aside.convert(old, "v2")
    assert new["spec"] == {"a": "x"}
    assert kept(new) == {"v1"}
    assert aside.convert(new, "v1") == old


def test_nothing_is_noted_where_nothing_is_missing(aside: Conversion) -> None:
    assert aside.convert(at("v1", {"a": "x"}), "v2") == at("v2", {"a": "x"})


def test_an_edit_beside_it_is_kept(aside: Conversion) -> None:
    new = aside.convert(at("v1", {"a": "x", "extra": "y"}), "v2")
    new["spec"]["a"] = "edited"
    assert aside.convert(new, "v1") == at("v1", {"a": "edited", "extra": "y"})


def test_a_value_that_was_rounded_comes_back_unless_it_was_edited() -> None:
    conversion = compiled(obj(memory=STRING), {"v2": (obj(memoryMiB=INTEGER), MEMORY)})
    old = at("v1", {"memory": "1500000Ki"})
    new = conversion.convert(old, "v2")
    assert new["spec"] == {"memoryMiB": 1464}
    assert conversion.convert(new, "v1") == old
    new["spec"]["memoryMiB"] = 2048
    assert conversion.convert(new, "v1") == at("v1", {"memory": "2048Mi"})


def test_a_field_that_was_deleted_stays_deleted() -> None:
    conversion = compiled(obj(memory=STRING), {"v2": (obj(memoryMiB=INTEGER), MEMORY)})
    new = conversion.convert(at("v1", {"memory": "1500000Ki"}), "v2")
    del new["spec"]["memoryMiB"]
    assert conversion.convert(new, "v1") == at("v1", {})


LISTS = {
    "a list-type map": (list_of(obj(name=STRING, extra=STRING), "name"), list_of(obj(name=STRING), "name")),
    "a list": (list_of(obj(name=STRING, extra=STRING)), list_of(obj(name=STRING))),
}


@pytest.mark.parametrize(("hub", "spoke"), LISTS.values(), ids=LISTS)
def test_items_that_were_moved_keep_what_is_theirs(hub: Any, spoke: Any) -> None:
    rules = "- {hub: spec.list, spoke: spec.list, each: [{hub: extra, aside: true}]}"
    conversion = compiled(obj(list=hub), {"v2": (obj(list=spoke), rules)})
    items = [{"name": "a", "extra": "1"}, {"name": "b", "extra": "2"}, {"name": "c"}]
    new = conversion.convert(at("v1", {"list": items}), "v2")
    assert new["spec"] == {"list": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    assert conversion.convert(new, "v1") == at("v1", {"list": items})
    new["spec"]["list"] = [{"name": "new"}, {"name": "b"}, {"name": "a"}]
    assert conversion.convert(new, "v1") == at(
        "v1", {"list": [{"name": "new"}, {"name": "b", "extra": "2"}, {"name": "a", "extra": "1"}]}
    )


def test_the_order_of_a_list_that_becomes_a_map() -> None:
    items = list_of(obj(name=STRING, a=STRING, extra=STRING), "name")
    rules = "- {hub: spec.all, spoke: spec.all, key: name, each: [{spoke: extra, aside: true}]}"
    conversion = compiled(obj(all=map_of(obj(a=STRING))), {"v2": (obj(all=items), rules)})
    listed = [{"name": "c", "a": "1"}, {"name": "a", "extra": "x"}, {"name": "b"}]
    new = conversion.convert(at("v2", {"all": listed}), "v1")
    assert new["spec"] == {"all": {"c": {"a": "1"}, "a": {}, "b": {}}}
    new["spec"]["all"] = dict(sorted(new["spec"]["all"].items()))
    assert conversion.convert(new, "v2") == at("v2", {"all": listed})
    new["spec"]["all"] = {"0": {}, "a": {"a": "2"}, "c": {"a": "1"}}
    assert conversion.convert(new, "v2") == at(
        "v2", {"all": [{"name": "c", "a": "1"}, {"name": "a", "a": "2", "extra": "x"}, {"name": "0"}]}
    )


def test_further_items_of_a_list_that_becomes_one_value() -> None:
    rules = "- {hub: spec.host, spoke: spec.hosts, wrap: true}"
    conversion = compiled(obj(host=STRING), {"v2": (obj(hosts=list_of(STRING)), rules)})
    for hosts in (["a", "b"], ["a"], []):
        old = at("v2", {"hosts": hosts})
        new = conversion.convert(old, "v1")
        assert new["spec"] == ({"host": "a"} if hosts else {})
        assert conversion.convert(new, "v2") == old


def test_what_may_be_lost_is_lost_without_a_note() -> None:
    conversion = compiled(
        obj(a=STRING, extra=STRING), {"v2": (obj(a=STRING), "- {hub: spec.extra, drop: true, fill: none}")}
    )
    new = conversion.convert(at("v1", {"a": "x", "extra": "y"}), "v2")
    assert new == at("v2", {"a": "x"})
    assert conversion.convert(new, "v1") == at("v1", {"a": "x", "extra": "none"})


def test_a_fill_is_for_objects_that_never_had_a_value() -> None:
    rules = "- {hub: spec.mode, aside: true, fill: Auto}"
    conversion = compiled(obj(mode=STRING), {"v2": (obj(), rules)})
    assert conversion.convert(at("v2", {}), "v1") == at("v1", {"mode": "Auto"})
    for spec in ({"mode": "Manual"}, {}):
        assert conversion.convert(conversion.convert(at("v1", spec), "v2"), "v1") == at("v1", spec)


def test_an_annotation_that_somebody_broke_is_worth_nothing(aside: Conversion) -> None:
    for text in (
        "",
        "{",
        "[]",
        '{"fields": 1}',
        '{"fields": [{"at": []}, {"at": "x"}, 1], "order": "x"}',
        "[" * 5000,
    ):
        broken = at("v2", {"a": "x"}, annotations={PREFIX + "v1": text})
        assert aside.convert(broken, "v1") == at("v1", {"a": "x"})


@pytest.fixture
def three() -> Conversion:
    """v1 knows all but `third`; v2 lacks `two`, v3 lacks `three` and alone has `third`."""
    return compiled(
        obj(a=STRING, two=STRING, three=STRING),
        {
            "v2": (obj(a=STRING, three=STRING), "- {hub: spec.two, aside: true}"),
            "v3": (
                obj(b=STRING, two=STRING, third=STRING),
                "- {hub: spec.a, spoke: spec.b}\n- {hub: spec.three, aside: true}\n"
                "- {spoke: spec.third, aside: true}",
            ),
        },
    )


FULL: dict[str, Any] = {
    "v1": {"a": "1", "two": "2", "three": "3"},
    "v2": {"a": "1", "three": "3"},
    "v3": {"b": "1", "two": "2", "third": "t"},
}
WAYS = [
    "v1 v2 v3 v1",
    "v1 v3 v2 v1",
    "v2 v3 v1 v2",
    "v3 v2 v1 v3",
    "v3 v1 v2 v3",
    "v1 v2 v3 v2 v1",
    "v3 v2 v3 v1 v2 v3",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_way_over_several_versions_loses_nothing(three: Conversion, way: str) -> None:
    first, *rest = way.split()
    start = value = at(first, FULL[first])
    for version in rest:
        value = three.convert(value, version)
    assert value == start


def test_what_a_third_version_can_hold_is_there_although_the_second_could_not(three: Conversion) -> None:
    value = three.convert(three.convert(at("v1", FULL["v1"]), "v2"), "v3")
    assert value["spec"] == {"b": "1", "two": "2"}


def test_edits_on_the_way_are_kept(three: Conversion) -> None:
    value = three.convert(three.convert(at("v1", FULL["v1"]), "v2"), "v3")
    value["spec"] |= {"b": "edited", "third": "new"}
    home = three.convert(value, "v1")
    assert home["spec"] == {"a": "edited", "two": "2", "three": "3"}
    assert three.convert(home, "v3")["spec"] == {"b": "edited", "two": "2", "third": "new"}
