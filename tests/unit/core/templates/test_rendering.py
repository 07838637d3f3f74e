"""The objects of a composite, and why others are not there."""

from typing import Any

import pytest

from crdkeeper.core.templates.kinds import TargetKind
from crdkeeper.core.templates.rendered import ResourceState
from tests.unit.core.templates.compositions import (
    COMPOSITE,
    DATABASE,
    config_map,
    named,
    rendered,
    server,
    summary,
)


def specs(*resources: Any, **given: Any) -> list[dict[str, Any]]:
    return [each["spec"] for each in rendered(*resources, **given).objects]


def there(name: str, **fields: Any) -> dict[str, Any]:
    """A Server that exists."""
    metadata = {"name": name, "namespace": "shop", "uid": "u"}
    return {"apiVersion": "example.com/v1", "kind": "Server", "metadata": metadata, **fields}


WITHOUT = {**DATABASE, "spec": {"names": []}}
SPEC = DATABASE["spec"]

# fields of a template, and what they become
VALUES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "literals": ({"text": "a", "replicas": 1}, {"text": "a", "replicas": 1}),
    "the value's type": ({"replicas": "${composite.spec.replicas + 1}"}, {"replicas": 3}),
    "joined": ({"text": "${composite.spec.engine}-${composite.spec.replicas}!"}, {"text": "postgres-2!"}),
    "a flag in a text": ({"text": "is ${composite.spec.enabled}"}, {"text": "is true"}),
    "an escape": ({"text": "$${a}${composite.spec.replicas}"}, {"text": "${a}2"}),
    "a comment": ({"text": "v${composite.spec.replicas // two\n}"}, {"text": "v2"}),
    "a list": ({"texts": "${composite.spec.names}"}, {"texts": ["a", "b"]}),
    "a list with one": ({"texts": ["x", "${composite.spec.engine}"]}, {"texts": ["x", "postgres"]}),
    "nothing": ({"text": "${optional.none()}"}, {}),
    "an optional": ({"text": "${composite.spec.?engine}"}, {"text": "postgres"}),
    "an absent optional": ({"limits": "${composite.spec.?limits}"}, {}),
    "nothing in a list": ({"texts": ["${optional.none()}", "x"]}, {"texts": ["x"]}),
    "an object": (
        {"open": "${{'a': [1, {'b': composite.spec.engine}]}}"},
        {"open": {"a": [1, {"b": "postgres"}]}},
    ),
    "an integer or string": ({"port": "${true ? dyn(1) : dyn('http')}"}, {"port": 1}),
    "null": ({"text": None, "replicas": 1}, {"replicas": 1}),
    "null in a list": ({"texts": [None, "x"]}, {"texts": ["x"]}),
    "null where all is allowed": ({"open": {"a": None}}, {"open": {"a": None}}),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(case: str) -> None:
    fields, wanted = VALUES[case]
    (made,) = specs(server("a", **fields))
    assert made == wanted


def test_the_composites_namespace_is_filled_in() -> None:
    (made,) = rendered(server("a")).objects
    assert made == {
        "apiVersion": "example.com/v1",
        "kind": "Server",
        "metadata": {"name": "orders-a", "namespace": "shop"},
        "spec": {},
    }


def test_a_composite_without_a_namespace_fills_in_none() -> None:
    resource = server("a")
    resource["template"]["kind"] = "Region"
    given = {**DATABASE, "metadata": {"name": "orders"}}
    (made,) = rendered(resource, given=given, composite=TargetKind(COMPOSITE, False)).objects
    assert made["metadata"] == {"name": "orders-a"}


def test_a_namespace_that_is_null_is_filled_in() -> None:
    resource = server("a")
    resource["template"]["metadata"] |= {"namespace": None, "labels": None}
    (made,) = rendered(resource).objects
    assert made["metadata"] == {"name": "orders-a", "namespace": "shop"}


def test_another_namespace_is_refused() -> None:
    resource = server("a")
    resource["template"]["metadata"]["namespace"] = "${composite.spec.engine}"
    assert summary(rendered(resource)) == {
        "a": "failed the namespace is postgres, but a composite composes only in its own, shop"
    }


@pytest.mark.parametrize("name", ["a/b", "..", "x%2f", "x" * 254])
def test_what_is_no_name_is_refused(name: str) -> None:
    made = named(rendered(server("a", called="${'" + name + "'}")))["a"]
    assert (made.state, made.objects) == (ResourceState.FAILED, ())
    assert "is not the name of an object" in made.why


def test_what_a_template_sets_is_known_before_the_object_exists() -> None:
    a, b = server("a", text="x"), server("b", text="${a.spec.text}-${a.metadata.namespace}")
    assert specs(a, b) == [{"text": "x"}, {"text": "x-shop"}]


def test_the_object_in_the_cluster_counts() -> None:
    a, b = server("a", text="x"), server("b", text="${a.spec.text}", replicas="${a.status.ready}")
    exists = there("orders-a", spec={"text": "defaulted"}, status={"ready": 3})
    assert specs(a, b, observed=[exists])[1] == {"text": "defaulted", "replicas": 3}


def test_a_value_that_is_not_there_yet_is_named() -> None:
    a, b, c = server("a"), server("b", replicas="${a.status.ready}"), server("c", text="${b.metadata.name}")
    made = rendered(a, b, c)
    assert summary(made) == {"a": "rendered", "b": "waiting a.status", "c": "waiting b"}
    assert str(named(made)["b"].path) == "spec.resources[1].template.spec.replicas"
    made = rendered(a, b, c, observed=[there("orders-a", status={})])
    assert summary(made)["b"] == "waiting a.status.ready"


def test_a_value_that_the_composite_lacks_is_an_error() -> None:
    made = named(rendered(server("a", text="${composite.spec.engine}"), given=WITHOUT))["a"]
    assert (made.state, made.why) == (ResourceState.FAILED, "composite.spec.engine is not set")
    assert (str(made.path), made.column) == ("spec.resources[0].template.spec.text", 3)
    assert made.hint == "Ask with ?, or give it a default."


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("enabled ? a.status.phase : composite.spec.engine", "waiting a.status"),
        ("enabled ? a.spec.text : c.spec.text", "waiting a.spec.text"),
        ("enabled && a.metadata.name != '' ? c.spec.text : a.spec.text", "waiting c.spec.text"),
        ("enabled ? composite.spec.engine : a.status.phase", "failed composite.spec.engine is not set"),
        ("enabled ? composite.spec.names[1] : a.status.phase", "failed composite.spec.names[1] is not set"),
        ("enabled ? composite.spec.limits['b'] : a.spec.text", "failed composite.spec.limits.b is not set"),
    ],
)
@pytest.mark.parametrize("text", ["", "x"])
def test_of_what_an_expression_lacks_the_part_that_it_needed_is_named(
    expression: str, said: str, text: str
) -> None:
    b = server("b", text=f"{text}${{composite.spec.{expression}}}")
    given = {**DATABASE, "spec": {"enabled": True, "names": ["a"], "limits": {}}}
    exists = [there("orders-a", spec={}), there("orders-c", spec={})]
    assert summary(rendered(server("a"), b, server("c"), given=given, observed=exists))["b"] == said


@pytest.mark.parametrize("field", ["uid", "creationTimestamp", "generation"])
def test_what_a_composite_has_only_in_a_cluster_is_waited_for(field: str) -> None:
    made = rendered(server("a", text="x${composite.metadata." + field + "}"))
    assert summary(made) == {"a": f"waiting composite.metadata.{field}, which is known in a cluster only"}


def test_what_has_an_error_is_not_waited_for_by_its_name_alone() -> None:
    a, b = server("a", replicas="${int(composite.spec.engine)}"), server("b", text="${a.metadata.name}")
    assert summary(rendered(a, b))["b"] == "waiting a, which has an error"


def test_other_errors_are_told_without_values() -> None:
    made = rendered(server("a", replicas="${int(composite.spec.engine)}"))
    assert summary(made) == {"a": "failed type conversion error from 'string' to 'int'"}
    made = rendered(server("a", since="${timestamp(composite.spec.engine)}"))
    assert "postgres" not in summary(made)["a"]


def test_includewhen() -> None:
    off = {**DATABASE, "spec": {**SPEC, "enabled": False}}
    a = server("a", IncludeWhen=["${composite.spec.enabled}"])
    assert summary(rendered(a)) == {"a": "rendered"}
    assert summary(rendered(a, given=off)) == {"a": "excluded includeWhen is false"}


def test_what_refers_to_an_excluded_resource_is_excluded() -> None:
    a = server("a", text="t", IncludeWhen=["${!composite.spec.enabled}"])
    hard, after = server("b", text="${a.spec.text}"), server("c", text="${b.metadata.name}")
    assert summary(rendered(a, hard, after)) == {
        "a": "excluded includeWhen is false",
        "b": "excluded it refers to a, which is excluded",
        "c": "excluded it refers to b, which is excluded",
    }


def test_unless_it_asks_with_a_question_mark() -> None:
    a = server("a", text="t", IncludeWhen=["${!composite.spec.enabled}"])
    assert specs(a, server("b", text="${a.?spec.?text}", replicas=1)) == [{"replicas": 1}]
    assert specs(a, server("b", text="${a.?spec.text.orValue('none')}")) == [{"text": "none"}]
    both = server("b", text="${a.?spec.?text}", texts=["${a.spec.text}"])
    assert summary(rendered(a, both))["b"] == "excluded it refers to a, which is excluded"


def test_an_excluded_collection_is_empty_for_those_that_ask() -> None:
    a = server("a", called="${x}", ForEach=[{"x": "${composite.spec.names}"}], IncludeWhen=["${false}"])
    assert specs(a, server("b", text="${a[?0].?metadata.?name.orValue('none')}")) == [{"text": "none"}]
    assert summary(rendered(a, server("b", replicas="${a.size()}")))["b"].startswith("excluded")


def test_an_includewhen_that_cannot_be_computed_is_pending() -> None:
    a, b = server("a"), server("b", IncludeWhen=["${a.status.ready > 0}"])
    c = server("c", text="${b.metadata.name}")
    assert summary(rendered(a, b, c)) == {
        "a": "rendered",
        "b": "pending Server shop/orders-a",
        "c": "waiting b",
    }
    false = server("b", IncludeWhen=["${a.status.ready > 0}", "${false}"])
    assert summary(rendered(a, false))["b"] == "excluded includeWhen is false"
    later = rendered(a, b, observed=[there("orders-a", status={})])
    assert summary(later)["b"] == "pending a.status.ready"
    no = rendered(a, b, observed=[there("orders-a", status={"ready": 0})])
    assert summary(no)["b"] == "excluded includeWhen is false"


@pytest.mark.parametrize(
    "decides",
    [
        {"IncludeWhen": ["${a.?status.?ready.orValue(0) > 0}"]},
        {"IncludeWhen": ["${has(a.status)}"]},
        {"IncludeWhen": ["${a.spec.text == 'x'}"]},
        {"ForEach": [{"x": "${a.?status.?phase.hasValue() ? ['p'] : []}"}]},
    ],
)
def test_what_does_not_exist_decides_nothing(decides: dict[str, Any]) -> None:
    a, b = server("a"), server("b", **decides)
    made = named(rendered(a, b))["b"]
    assert made.state in (ResourceState.PENDING, ResourceState.WAITING)
    assert made.why == "Server shop/orders-a"
    made = named(rendered(a, b, observed=[there("orders-a", spec={"text": "y"})]))["b"]
    assert not made.objects
    up = there("orders-a", spec={"text": "x"}, status={"ready": 1, "phase": "up"})
    assert len(named(rendered(a, b, observed=[up]))["b"].objects) == 1


def test_a_collection_that_is_not_complete_decides_nothing() -> None:
    a = server("a", called="${x}", ForEach=[{"x": "${composite.spec.names}"}])
    b = server("b", IncludeWhen=["${a.exists(each, each.?status.?ready.orValue(0) > 0)}"])
    assert summary(rendered(a, b, observed=[there("a", status={})]))["b"] == "pending Server shop/b"
    both = [there("a", status={}), there("b", status={})]
    assert summary(rendered(a, b, observed=both))["b"] == "excluded includeWhen is false"


def test_what_does_not_exist_names_nothing() -> None:
    a, b = server("a", text="x"), server("b", called="${a.?status.?phase.orValue('none')}")
    made = named(rendered(a, b))["b"]
    assert (made.state, made.why) == (ResourceState.WAITING, "Server shop/orders-a")
    assert str(made.path) == "spec.resources[1].template.metadata.name"
    up = there("orders-a", status={"phase": "up"})
    assert rendered(a, b, observed=[up]).objects[1]["metadata"]["name"] == "up"
    by_spec = server("b", called="${a.spec.text}")
    assert summary(rendered(a, by_spec))["b"] == "waiting Server shop/orders-a"
    by_name = server("b", called="${a.metadata.name}-${a.metadata.namespace}")
    assert rendered(a, by_name).objects[1]["metadata"]["name"] == "orders-a-shop"


def test_what_has_readywhen_is_waited_for() -> None:
    a = server("a", ReadyWhen=["${a.status.phase != ''}", "${a.status.ready == composite.spec.replicas}"])
    b = server("b", text="${a.metadata.name}")
    made = rendered(a, b)
    assert named(made)["a"].unready == "Server shop/orders-a does not exist yet"
    assert summary(made)["b"] == "waiting a to be ready: Server shop/orders-a does not exist yet"
    made = rendered(a, b, observed=[there("orders-a", status={"phase": "up"})])
    assert summary(made)["b"] == "waiting a to be ready: Server shop/orders-a waits for a.status.ready"
    made = rendered(a, b, observed=[there("orders-a", status={"phase": "up", "ready": 1})])
    assert summary(made)["b"] == "waiting a to be ready: readyWhen[1] is false for Server shop/orders-a"
    made = rendered(a, b, observed=[there("orders-a", status={"phase": "up", "ready": 2})])
    assert (summary(made), named(made)["a"].unready) == ({"a": "rendered", "b": "rendered"}, None)


def test_foreach_makes_each_combination() -> None:
    lists = [{"x": "${composite.spec.names}"}, {"y": "${composite.spec.sizes}"}]
    a = server("a", called="${x}-${y}", ForEach=lists, text="${x}", replicas="${y}")
    made = rendered(a, server("b", texts="${a.map(each, each.metadata.name)}"))
    assert [each["metadata"]["name"] for each in made.objects] == ["a-1", "a-2", "b-1", "b-2", "orders-b"]
    assert made.objects[-1]["spec"] == {"texts": ["a-1", "a-2", "b-1", "b-2"]}
    assert rendered(a, given=WITHOUT | {"spec": {"names": [], "sizes": [1]}}).objects == []


def test_foreach_of_an_optional() -> None:
    a = server("a", called="${x}", ForEach=[{"x": "${composite.spec.?names}"}])
    assert len(rendered(a).objects) == 2
    assert summary(rendered(a, given={**DATABASE, "spec": {}})) == {"a": "rendered"}


def test_readywhen_of_a_collection_is_about_each() -> None:
    a = server(
        "a", called="${x}", ForEach=[{"x": "${composite.spec.names}"}], ReadyWhen=["${each.status.ready > 0}"]
    )
    up = [there("a", status={"ready": 1}), there("b", status={"ready": 0})]
    assert named(rendered(a, observed=up))["a"].unready == "readyWhen[0] is false for Server shop/b"


def test_items_of_one_name_are_refused() -> None:
    a = server("a", ForEach=[{"x": "${composite.spec.names}"}])
    made = named(rendered(a))["a"]
    assert (made.state, made.why, made.objects) == (
        ResourceState.FAILED,
        "two of its items are Server shop/orders-a",
        (),
    )
    assert str(made.path) == "spec.resources[0].template.metadata.name"


def test_two_resources_that_are_the_same_object_are_refused() -> None:
    made = rendered(server("a", called="x"), server("b", called="x"))
    assert summary(made) == {"a": "rendered", "b": "failed a is also Server shop/x"}
    assert made.disputed == {made.resources[0].objects[0].identity}


ZONE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones", "namespace": "platform"}


def test_an_external_object_is_only_read() -> None:
    zone = {"name": "zone", "externalRef": ZONE}
    a = server("a", text="${zone.data.name}")
    made = rendered(a, zone)
    assert summary(made) == {"zone": "waiting ConfigMap platform/zones", "a": "waiting zone"}
    metadata = {"name": "zones", "namespace": "platform"}
    exists = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"name": "east"}}
    made = rendered(a, zone, observed=[exists])
    assert summary(made) == {"zone": "read", "a": "rendered"}
    assert [each["spec"] for each in made.objects] == [{"text": "east"}]


def test_an_external_collection_is_a_list() -> None:
    zones = {
        "name": "zones",
        "externalRef": {**ZONE, "name": "${x}"},
        "forEach": [{"x": "${composite.spec.names}"}],
    }
    b = server("b", texts="${zones.map(each, each.metadata.name)}")
    exist = [{**ZONE, "metadata": {"name": name, "namespace": "platform"}} for name in ("a", "b")]
    assert summary(rendered(zones, b, observed=exist[:1])) == {
        "zones": "waiting ConfigMap platform/b",
        "b": "waiting zones",
    }
    assert specs(zones, b, observed=exist) == [{"texts": ["a", "b"]}]
    assert specs(zones, b, given=WITHOUT) == [{"texts": []}]


def test_an_external_object_with_readywhen_is_waited_for() -> None:
    zone = {"name": "zone", "externalRef": ZONE, "readyWhen": ["${has(zone.data)}"]}
    a = server("a", text="${zone.metadata.name}")
    exists = {**ZONE, "metadata": {"name": "zones", "namespace": "platform"}}
    assert summary(rendered(zone, a, observed=[exists])) == {
        "zone": "read",
        "a": "waiting zone to be ready: readyWhen[0] is false for ConfigMap platform/zones",
    }
    assert summary(rendered(zone, a, observed=[{**exists, "data": {}}]))["a"] == "rendered"


def test_the_status_has_what_is_known() -> None:
    status = {
        "address": "${a.metadata.name}.${composite.metadata.namespace}",
        "replicas": "${a.status.ready}",
    }
    made = rendered(server("a", ReadyWhen=["${false}"]), status=status)
    assert made.status == {"address": "orders-a.shop"}
    assert [(str(each.path), each.kind, each.text) for each in made.gaps] == [
        ("spec.status.replicas", "not yet", "waits for a.status")
    ]
    made = rendered(server("a"), status=status, observed=[there("orders-a", status={"ready": 1})])
    assert (made.status, made.gaps) == ({"address": "orders-a.shop", "replicas": 1}, [])


def test_the_status_of_an_excluded_resource_is_left_out() -> None:
    made = rendered(server("a", IncludeWhen=["${false}"]), status={"address": "${a.metadata.name}"})
    assert made.status == {}
    assert [(each.status_path, each.kind, each.text) for each in made.gaps] == [
        (("address",), "excluded", "refers to a, which is excluded")
    ]


def test_a_value_of_an_unknown_kind_is_checked_when_it_is_there() -> None:
    a, b = config_map("a", x="text"), server("b", replicas="${a.data.x}")
    assert summary(rendered(a, b))["b"] == "failed does not fit: it is a string, and no integer"


def test_nothing_is_changed_and_all_is_the_same_again() -> None:
    before = repr(DATABASE)
    resources = (server("a", texts="${composite.spec.names}"), server("b", texts="${a.spec.texts}"))
    one, two = rendered(*resources), rendered(*resources)
    assert repr(one.objects) == repr(two.objects)
    assert repr(DATABASE) == before
