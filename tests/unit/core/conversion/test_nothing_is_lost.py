"""What a version cannot hold comes back, edits win, and paths through several versions lose nothing."""

import copy
import json
from typing import Any

import pytest

from crdkeeper.core.conversion.keptaside import differences
from crdkeeper.core.conversion.notes import PREFIX
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
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


def test_what_may_be_lost_within_a_wrapped_list_is_lost_without_a_note() -> None:
    rules = (
        "- {hub: spec.one, spoke: spec.all, wrap: true, each: [{hub: x, drop: true}, {spoke: y, drop: true}]}"
    )
    hub, spoke = obj(one=obj(x=STRING, z=STRING)), obj(all=list_of(obj(y=STRING, z=STRING)))
    conversion = compiled(hub, {"v2": (spoke, rules)})
    assert conversion.convert(at("v1", {"one": {"x": "1", "z": "3"}}), "v2") == at(
        "v2", {"all": [{"z": "3"}]}
    )
    assert conversion.convert(at("v2", {"all": [{"y": "1", "z": "3"}]}), "v1") == at(
        "v1", {"one": {"z": "3"}}
    )
    for listed in ([], [{"z": "3"}, {"y": "1"}]):
        old = at("v2", {"all": listed})
        assert conversion.convert(conversion.convert(old, "v1"), "v2") == old


def test_a_fill_is_for_objects_that_never_had_a_value() -> None:
    rules = "- {hub: spec.mode, aside: true, fill: Auto}"
    conversion = compiled(obj(mode=STRING), {"v2": (obj(), rules)})
    assert conversion.convert(at("v2", {}), "v1") == at("v1", {"mode": "Auto"})
    for spec in ({"mode": "Manual"}, {}):
        assert conversion.convert(conversion.convert(at("v1", spec), "v2"), "v1") == at("v1", spec)


def test_a_fill_makes_no_objects_around_it() -> None:
    rules = "- {hub: spec.ref.kind, aside: true, fill: Node}\n- {hub: spec.ref.name, spoke: spec.node}"
    hub = obj(ref=obj(kind=STRING, name=STRING))
    conversion = compiled(hub, {"v2": (obj(node=STRING), rules)})
    assert conversion.convert(at("v2", {}), "v1") == at("v1", {})
    made = conversion.convert(at("v2", {"node": "n"}), "v1")
    assert made == at("v1", {"ref": {"name": "n", "kind": "Node"}})


def test_the_rest_of_a_map_and_of_a_list_is_kept_aside() -> None:
    rules = (
        "- {hub: 'spec.settings[size]', spoke: spec.size}\n- {hub: spec.settings, aside: true}\n"
        "- {hub: 'spec.ports[0].number', spoke: spec.port}\n- {hub: spec.ports, aside: true}"
    )
    port = obj(number=INTEGER, name=STRING)
    hub = obj(settings=map_of(STRING), ports=list_of(port))
    conversion = compiled(hub, {"v2": (obj(size=STRING, port=INTEGER), rules)})
    ports = [{"number": 1, "name": "a"}, {"number": 2}]
    old = at("v1", {"settings": {"size": "x", "other": "y"}, "ports": ports})
    new = conversion.convert(old, "v2")
    assert new["spec"] == {"size": "x", "port": 1}
    assert conversion.convert(new, "v1") == old
    new["spec"]["size"] = "edited"
    assert conversion.convert(new, "v1")["spec"] == {
        "settings": {"size": "edited", "other": "y"},
        "ports": ports,
    }


def test_fields_of_a_first_item_that_both_sides_have() -> None:
    schema = obj(all=list_of(obj(a=STRING, b=STRING, c=STRING)))
    swap = (
        "- {hub: 'spec.all[0].a', spoke: 'spec.all[0].b'}\n- {hub: 'spec.all[0].b', spoke: 'spec.all[0].a'}"
    )
    conversion = compiled(schema, {"v2": (schema, swap)})
    old = at("v1", {"all": [{"a": "1", "c": "3"}, {"a": "9"}]})
    before = copy.deepcopy(old)
    new = conversion.convert(old, "v2")
    assert new["spec"] == {"all": [{"b": "1", "c": "3"}, {"a": "9"}]}
    assert conversion.convert(new, "v1") == old == before


def test_an_object_that_a_field_moves_into_goes_with_it() -> None:
    hub, spoke = obj(image=obj(name=STRING, tag=STRING)), obj(image=obj(name=STRING), tag=STRING)
    conversion = compiled(hub, {"v2": (spoke, "- {hub: spec.image.tag, spoke: spec.tag}")})
    specs: list[dict[str, Any]] = [{"tag": "1"}, {"tag": "1", "image": {}}, {"image": {}}, {}]
    for spec in specs:
        assert conversion.convert(conversion.convert(at("v2", spec), "v1"), "v2") == at("v2", spec)


def test_items_with_one_key_and_items_without_a_value() -> None:
    items = list_of(obj(name=STRING, value=STRING), "name", "value")
    rules = "- {hub: spec.args, spoke: spec.args, key: name}"
    conversion = compiled(obj(args=items), {"v2": (obj(args=map_of(STRING)), rules)})
    listed = [{"name": "v", "value": "4"}, {"name": "v", "value": "5"}, {"name": "quiet"}]
    new = conversion.convert(at("v1", {"args": listed}), "v2")
    assert new["spec"] == {"args": {"v": "4"}}
    assert conversion.convert(new, "v1") == at("v1", {"args": listed})


def test_an_item_with_the_separator_in_it() -> None:
    rules = "- {hub: spec.hosts, spoke: spec.hosts, separator: ','}"
    conversion = compiled(obj(hosts=list_of(STRING)), {"v2": (obj(hosts=STRING), rules)})
    for hosts in ([], [""], ["a,b", "c"], ["", ""]):
        old = at("v1", {"hosts": hosts})
        assert conversion.convert(conversion.convert(old, "v2"), "v1") == old


def test_null_is_null_on_the_other_side_if_it_can_be() -> None:
    rules = "- {hub: spec.a, spoke: spec.a, cast: true}\n- {hub: spec.b, spoke: spec.c}"
    null = {"nullable": True}
    for spoke, wanted in ((obj(a={**STRING, **null}, c=STRING), {"a": None}), (obj(a=STRING, c=STRING), {})):
        hub = obj(a={**INTEGER, **null}, b={**STRING, **null})
        conversion = compiled(hub, {"v2": (spoke, rules)})
        new = conversion.convert(at("v1", {"a": None, "b": None}), "v2")
        assert new["spec"] == wanted
        assert conversion.convert(new, "v1") == at("v1", {"a": None, "b": None})


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
    """v1 has everything but `third`; v2 lacks `two`, v3 lacks `three` and alone has `third`."""
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


STRICT = {**obj(b=STRING), "required": ["b"]}
NO_MORE = {"type": "string", "maxLength": 3}


@pytest.mark.parametrize(
    ("strict", "lax", "value"),
    [
        (STRICT, obj(b=STRING), {}),
        (NO_MORE, STRING, "much longer"),
        (list_of(STRICT), list_of(obj(b=STRING)), [{}]),
    ],
    ids=["required", "limit", "items"],
)
def test_what_a_spoke_allows_and_the_hub_does_not_comes_back_from_another_spoke(
    strict: Any, lax: Any, value: Any
) -> None:
    laxer = compiled(obj(a=strict), {"v2": (obj(a=lax), ""), "v3": (obj(), "- {hub: spec.a, aside: true}")})
    start = at("v2", {"a": value})
    stored = laxer.convert(start, "v3")
    assert stored["spec"] == {}
    assert laxer.convert(stored, "v2") == start
    # The hub itself shows nothing that it does not allow.
    assert laxer.convert(stored, "v1")["spec"] == {}
    stricter = compiled(
        obj(a=lax), {"v2": (obj(a=strict), ""), "v3": (obj(), "- {hub: spec.a, aside: true}")}
    )
    assert stricter.convert(stored, "v1")["spec"] == {"a": value}


def test_what_neither_the_hub_nor_the_last_version_allows_is_not_forged() -> None:
    both = compiled(
        obj(a=NO_MORE), {"v2": (obj(a=NO_MORE), ""), "v3": (obj(), "- {hub: spec.a, aside: true}")}
    )
    for value in ("much longer", 5):
        note = json.dumps({"fields": [{"at": ["spec", "a"], "was": value}]})
        forged = at("v3", {}, annotations={PREFIX + "v1": note})
        tally = ConversionTally()
        assert both.convert(forged, "v2", tally)["spec"] == {}
        assert tally.ignored == 1


def test_what_a_third_version_can_hold_is_there_although_the_second_could_not(three: Conversion) -> None:
    value = three.convert(three.convert(at("v1", FULL["v1"]), "v2"), "v3")
    assert value["spec"] == {"b": "1", "two": "2"}


def test_edits_on_the_way_are_kept(three: Conversion) -> None:
    value = three.convert(three.convert(at("v1", FULL["v1"]), "v2"), "v3")
    value["spec"] |= {"b": "edited", "third": "new"}
    home = three.convert(value, "v1")
    assert home["spec"] == {"a": "edited", "two": "2", "three": "3"}
    assert three.convert(home, "v3")["spec"] == {"b": "edited", "two": "2", "third": "new"}


def test_every_process_keeps_the_same_aside_in_the_same_words() -> None:
    fields = {f"field{i}": i for i in range(40)}
    found = [each["at"] for each in differences({"spec": fields}, {"spec": {}}, None)]
    # The hashes of strings, and with them the order of a set, differ from process to process.
    assert found == sorted(found)


def test_no_detour_rounds_what_neither_version_rounds() -> None:
    rounded = "- {hub: spec.memory, spoke: spec.memoryMiB, quantity: Mi}\n- {spoke: spec.extra, aside: true}"
    conversion = compiled(
        obj(memory=STRING),
        {"v2": (obj(memory=STRING), ""), "v3": (obj(memoryMiB=INTEGER, extra=STRING), rounded)},
    )
    home = conversion.convert(at("v3", {"memoryMiB": 1, "extra": "x"}), "v1")
    home["spec"]["memory"] = "1500000Ki"
    assert conversion.convert(home, "v2")["spec"] == {"memory": "1500000Ki"}


def test_an_annotation_beside_those_that_others_have_made_since() -> None:
    rules = "- {hub: 'metadata.annotations[example.com/a]', aside: true}"
    conversion = compiled(obj(), {"v2": (obj(), rules)})
    new = conversion.convert(at("v1", {}, annotations={"example.com/a": "x"}), "v2")
    new["metadata"]["annotations"]["example.com/b"] = "y"
    made = conversion.convert(new, "v1")
    assert made["metadata"]["annotations"] == {"example.com/a": "x", "example.com/b": "y"}


def test_what_the_api_server_would_default_need_not_be_there() -> None:
    port = {**obj(number=INTEGER, protocol={**STRING, "default": "TCP"}), "required": ["number", "protocol"]}
    conversion = compiled(obj(port=port), {"v2": (obj(), "- {hub: spec.port, aside: true}")})
    for spec, comes_back in (({"port": {"number": 1}}, True), ({"port": {"protocol": "UDP"}}, False)):
        made = conversion.convert(conversion.convert(at("v1", spec), "v2"), "v1")
        assert made == at("v1", spec if comes_back else {})
