"""Each convention about a CRD as a whole: what violates it, and the closest case that does not."""

from typing import Any

import pytest

from crdkeeper.core.lint.registry import all_conventions
from tests.unit.core.lint import test_fields
from tests.unit.core.lint.definitions import (
    AGE,
    CONDITION,
    CONDITIONS,
    NUMBER,
    READY,
    TEXT,
    check,
    definition,
    ids,
    schema,
    version,
)

Json = dict[str, Any]
OPEN: Json = {"x-kubernetes-preserve-unknown-fields": True}
WITH_PHASE = schema(status={"phase": TEXT})
NO_STATUS = schema()
del NO_STATUS["properties"]["status"]
SIZE = schema({"replicas": NUMBER}, {"replicas": NUMBER, "selector": TEXT})
NAMED: Json = {"type": "object", "properties": {"replicas": TEXT}}
KEPT = schema({"replicas": {"type": "object", **OPEN}}, {"replicas": NUMBER, "selector": TEXT})
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
WEBHOOK = {"service": {"namespace": "a", "name": "b"}}


def conditions(**keywords: Any) -> Json:
    return schema(status={"conditions": {**CONDITIONS, **keywords}})


def with_required_status(*names: str) -> Json:
    content = schema()
    content["properties"]["status"]["required"] = list(names)
    return content


def without(source: Json, *names: str) -> Json:
    return {key: value for key, value in source.items() if key not in names}


def column(path: str, type_: str = "string", content: Json | None = None) -> Json:
    columns = [{"name": "X", "type": type_, "jsonPath": path}, READY, AGE]
    return version(content or SIZE, additionalPrinterColumns=columns)


def scaled(content: Json | None = None, **paths: str | None) -> Json:
    scale = {key: value for key, value in {**SCALE, **paths}.items() if value is not None}
    return version(content or SIZE, subresources={"status": {}, "scale": scale})


def converted(client: Json, **annotations: str) -> Json:
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    metadata = {"name": "widgets.example.com", "annotations": annotations}
    return definition(conversion={"strategy": "Webhook", "webhook": webhook}, metadata=metadata)


def two(old: Json | None = None, new: Json | None = None, **fields: Any) -> Json:
    """v1beta1, and v1 which is stored."""
    older = {"served": True, "storage": False, **(old or {})}
    return definition(version(name="v1beta1", **older), version(name="v1", **(new or {})), **fields)


def wide(properties: int) -> Json:
    text = {"type": "string", "maxLength": 9, "description": "<" * 100}
    return definition(version(schema({f"field{i}": text for i in range(properties)})))


NARROW = {"schema": {"openAPIV3Schema": schema({"extra": TEXT})}}

# id, a CRD that breaks the convention, one that keeps it
WHOLE: list[tuple[str, Json, Json]] = [
    ("apply-size", wide(450), wide(200)),
    ("category-all", definition(names={"categories": ["all"]}), definition(names={"categories": ["mine"]})),
    ("column-age", definition(version(additionalPrinterColumns=[READY])), definition()),
    (
        "column-date",
        definition(column(".metadata.creationTimestamp")),
        definition(column(".metadata.creationTimestamp", "date")),
    ),
    (
        "column-list",
        definition(column(".status.conditions[*].type")),
        definition(column(".status.conditions[0].type")),
    ),
    ("column-syntax", definition(column('.spec["replicas"]')), definition(column(".spec['replicas']"))),
    ("column-ready", definition(version(additionalPrinterColumns=[AGE])), definition()),
    ("column-target", definition(column(".spec.sise")), definition(column(".spec.replicas"))),
    ("column-target", definition(column(".metadata.nam")), definition(column(".metadata.name"))),
    (
        "column-target",
        definition(column('.status.conditions[?(@.kind=="Ready")].status')),
        definition(column('.status.conditions[?(@.type=="Ready")].status')),
    ),
    ("column-type", definition(column(".spec.color", "integer")), definition(column(".spec.color"))),
    ("column-type", definition(column(".spec.replicas", "date")), definition(column(".spec.replicas"))),
    (
        "conditions-list",
        definition(version(conditions(**{"x-kubernetes-list-type": "atomic"}))),
        definition(),
    ),
    (
        "conditions-list",
        definition(version(conditions(**{"x-kubernetes-list-map-keys": ["type", "status"]}))),
        definition(),
    ),
    (
        "conditions-fields",
        definition(version(conditions(items=without(CONDITION, "required")))),
        definition(),
    ),
    ("conversion-ca", converted(WEBHOOK), converted({**WEBHOOK, "caBundle": "YQ=="})),
    ("conversion-ca", converted(WEBHOOK), converted(WEBHOOK, **{"cert-manager.io/inject-ca-from": "a/b"})),
    ("conversion-loss", two(NARROW), two()),
    ("conversion-loss", two(new=NARROW), two(new=NARROW, old=NARROW)),
    ("conversion-loss", two(NARROW), two({**NARROW, "served": False})),
    ("conversion-loss", two(NARROW), two(NARROW, conversion={"strategy": "Webhook"})),
    (
        "conversion-loss",
        two({"schema": {"openAPIV3Schema": schema({"color": NUMBER})}}),
        two({"schema": {"openAPIV3Schema": schema({"color": {**TEXT, "maxLength": 65}})}}),
    ),
    ("definition-size", wide(2000), wide(1000)),
    (
        "deprecation-text",
        definition(version(deprecated=True, deprecationWarning=None)),
        two({"deprecated": True}),
    ),
    (
        "deprecation-text",
        definition(version(deprecated=True)),
        definition(version(deprecated=True, deprecationWarning="Use gadgets.")),
    ),
    (
        "observed-generation",
        definition(version(conditions(items={**CONDITION, "properties": {"type": TEXT, "status": TEXT}}))),
        definition(
            version(
                schema(
                    status={
                        "conditions": {**CONDITIONS, "items": {**CONDITION, "properties": {"type": TEXT}}},
                        "observedGeneration": NUMBER,
                    }
                )
            )
        ),
    ),
    ("open-schema", definition(version(schema(**OPEN))), definition()),
    (
        "open-schema",
        definition(version(schema(spec_keywords=OPEN))),
        definition(version(schema({"extra": {"type": "object", "description": "Free.", **OPEN}}))),
    ),
    (
        "open-schema",
        definition(version(schema(spec_keywords=OPEN))),
        definition(
            version(
                schema(
                    {
                        "spec": {
                            "type": "object",
                            "description": "Free.",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    }
                )
            )
        ),
    ),
    ("resource-names", definition(names={"kind": "widget"}), definition()),
    ("resource-names", definition(names={"plural": "wid-gets"}), definition(names={"plural": "widgetry"})),
    ("resource-names", definition(names={"singular": "wid"}), definition(names={"singular": "widget"})),
    (
        "resource-names",
        definition(names={"listKind": "Widgets"}),
        definition(names={"listKind": "WidgetList"}),
    ),
    ("scale-selector", definition(scaled(labelSelectorPath=None)), definition(scaled())),
    ("scale-target", definition(scaled(specReplicasPath=".spec.size")), definition(scaled())),
    (
        "scale-target",
        definition(scaled(KEPT)),
        definition(scaled()),
    ),
    (
        "scale-target",
        definition(scaled({**schema({}), "properties": {"spec": {**NAMED, **OPEN}, "status": OPEN}})),
        definition(scaled({**schema({}), "properties": {"spec": OPEN, "status": OPEN}})),
    ),
    ("scale-target", definition(scaled(statusReplicasPath=".status.selector")), definition(scaled())),
    ("scale-target", definition(scaled(labelSelectorPath=".status.replicas")), definition(scaled())),
    ("short-name", definition(names={"shortNames": ["po"]}), definition(names={"shortNames": ["wd"]})),
    ("short-name", definition(names={"shortNames": ["job"]}), definition(names={"shortNames": ["jb"]})),
    ("status-in-manifest", definition(status={"storedVersions": []}), definition()),
    ("status-phase", definition(version(WITH_PHASE)), definition()),
    (
        "status-required",
        definition(version(schema(required=["status"]))),
        definition(version(schema(required=["spec"]))),
    ),
    (
        "status-fields",
        definition(version(with_required_status("conditions"))),
        definition(version(with_required_status())),
    ),
    (
        "status-schema",
        definition(version(NO_STATUS, additionalPrinterColumns=[AGE])),
        definition(version(NO_STATUS, subresources=None, additionalPrinterColumns=[AGE])),
    ),
    ("status-subresource", definition(version(subresources=None)), definition()),
    (
        "storage-deprecated",
        definition(
            version(deprecated=True, deprecationWarning="Go."), version(name="v1beta1", storage=False)
        ),
        definition(version(), version(name="v1beta1", storage=False)),
    ),
    (
        "storage-stability",
        definition(version(name="v1beta1"), version(name="v1", storage=False)),
        definition(version(name="v1beta1"), version(name="v1alpha1", storage=False)),
    ),
    ("version-style", definition(version(name="version1")), definition(version(name="v10beta2"))),
]

SAID_ELSEWHERE = {
    *("names-conflict", "server-condition", "ignore-invalid", "ignore-unused", "immutable-bypass"),
    *("immutable-open", "column-empty", "column-invalid", "forbidden-keyword"),
}


def test_the_flawless_definition_is() -> None:
    assert check(definition()) == []


@pytest.mark.parametrize(("id", "bad", "good"), WHOLE)
def test_a_definition(id: str, bad: Json, good: Json) -> None:
    assert id in ids(bad)
    assert id not in ids(good)


def test_every_convention_has_a_case() -> None:
    covered = {case[0] for case in (*WHOLE, *test_fields.FIELDS)} | SAID_ELSEWHERE
    assert covered == {each.id for each in all_conventions()}


def test_a_live_definition_is_no_manifest() -> None:
    crd = {**wide(2000), "status": {"storedVersions": ["v1alpha1"]}}
    assert check(crd, live=True) == []


def test_in_a_cluster_nobody_will_set_what_is_missing() -> None:
    (found,) = check(converted(WEBHOOK, **{"cert-manager.io/inject-ca-from": "a/b"}), live=True)
    assert (found.rule.id, found.severity.value) == ("conversion-ca", "warning")
    newer = {"schema": {"openAPIV3Schema": schema({"newer": TEXT})}}
    severities = {each.field: each.severity.value for each in check(two(NARROW, newer), live=True)}
    assert severities == {"v1beta1:.spec.extra": "warning", "v1:.spec.newer": "info"}
    assert {each.severity.value for each in check(two(NARROW, newer))} == {"info"}


def test_a_version_that_is_neither_served_nor_stored_goes_as_it_is() -> None:
    assert ids(two({"served": False, "schema": {"openAPIV3Schema": WITH_PHASE}})) == []


def test_a_version_that_is_stored_counts_though_it_is_not_served() -> None:
    assert ids(definition(version(WITH_PHASE, served=False))) == ["status-phase"]


def of(content: Json) -> Json:
    return {"schema": {"openAPIV3Schema": content}}


OPEN_FIELD = {"type": "object", "description": "Free.", **OPEN}
MAP = {"type": "object", "description": "A map.", "maxProperties": 3, "additionalProperties": TEXT}
NAMED_ROOT = schema()
NAMED_ROOT["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (of(schema({"x": OPEN_FIELD})), of(schema({"x": {**OPEN_FIELD, "properties": {"a": TEXT}}}))),
        (of(schema({"x": OPEN_FIELD})), of(schema({"x": TEXT}))),
        (of(schema({"x": MAP})), of(schema({"x": {**MAP, "description": "The same."}}))),
        (of(NAMED_ROOT), of(schema())),
        ({"schema": None}, of(schema())),
        (of(schema()), {"schema": None}),
        ({}, {"storage": False}),
    ],
)
def test_what_differs_and_is_not_lost(old: Json, new: Json) -> None:
    assert "conversion-loss" not in ids(two(old, new))


@pytest.mark.parametrize("inner", ["items", "additionalProperties"])
def test_what_is_lost_deeper(inner: str) -> None:
    def outer(*names: str) -> Json:
        item = {"type": "object", "properties": dict.fromkeys(names, TEXT)}
        return schema({"x": {"type": "array" if inner == "items" else "object", inner: item}})

    found = check(two(of(outer("a", "b")), of(outer("a"))))
    fields = [each.field for each in found if each.rule.id == "conversion-loss"]
    assert fields == [f"v1beta1:.spec.x{'[*]' if inner == 'items' else '.*'}.b"]


def test_what_is_lost_is_named_at_its_place() -> None:
    found = check(two(NARROW, NARROW | {"schema": {"openAPIV3Schema": schema({"newer": TEXT})}}))
    assert [(each.field, each.steps[:3]) for each in found] == [
        ("v1beta1:.spec.extra", ("spec", "versions", 0)),
        ("v1:.spec.newer", ("spec", "versions", 1)),
    ]


@pytest.mark.parametrize(
    ("newer", "conversion", "severities"),
    [
        ({}, None, ["warning"]),
        ({"newer": TEXT}, None, ["info", "info"]),
        ({"newer": TEXT}, {"strategy": "None"}, ["warning", "info"]),
        ({"extra": NUMBER}, None, ["warning"]),
    ],
)
def test_versions_that_differ_both_ways_await_a_webhook(
    newer: Json, conversion: Json | None, severities: list[str]
) -> None:
    fields = {"conversion": conversion} if conversion else {}
    found = check(two(NARROW, {"schema": {"openAPIV3Schema": schema(newer)}}, **fields))
    assert [each.severity.value for each in found] == severities


GOING: Json = {"deprecated": True, "deprecationWarning": "Use v1."}


@pytest.mark.parametrize(
    ("old", "new", "severities"),
    [
        ({}, NARROW, ["info"]),
        ({**NARROW, "storage": True}, {"storage": False}, ["warning"]),
        ({**NARROW, "storage": True}, {"storage": False, "served": False}, []),
        (GOING, NARROW, ["info"]),
        ({**NARROW, **GOING}, {}, ["info"]),
        ({**NARROW, **GOING, "storage": True}, {"storage": False}, ["info"]),
        ({**GOING, "storage": True}, {**NARROW, "storage": False}, ["warning"]),
        ({}, {**NARROW, "served": False}, ["info"]),
        (NARROW, {"served": False}, ["warning"]),
    ],
)
def test_what_only_an_older_version_loses_is_known(old: Json, new: Json, severities: list[str]) -> None:
    found = check(two(old, new))
    assert [each.severity.value for each in found if each.rule.id == "conversion-loss"] == severities


@pytest.mark.parametrize(
    ("scope", "severity", "message"),
    [
        ("Namespaced", "info", "`kubectl delete all --all` deletes these objects too"),
        (
            "Cluster",
            "warning",
            "`kubectl delete all --all` in any namespace deletes these objects of the whole cluster",
        ),
    ],
)
def test_the_category_says_what_goes_wrong(scope: str, severity: str, message: str) -> None:
    (found,) = check(definition(names={"categories": ["all"]}, scope=scope))
    assert (found.severity.value, found.message) == (severity, message)


def test_the_size_tells_where_it_comes_from() -> None:
    text = {"type": "string", "maxLength": 9, "description": "<" * 100}
    broad = {"type": "object", "description": "Much.", "properties": {f"field{i}": text for i in range(450)}}
    crd = definition(version(schema({"broad": {"type": "array", "maxItems": 2, "items": broad, **OPEN}})))
    (found,) = [each for each in check(crd) if each.rule.id == "apply-size"]
    assert found.message.endswith("; v1alpha1:.spec.broad alone has 99%")
