"""Changes of a CRD outside its schemas: names, versions, subresources, conversion."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.core.compatibility import definitionkinds
from crdkeeper.core.compatibility.change import ChangeKind, Impact
from crdkeeper.core.compatibility.compare import NotComparable, all_kinds, compare
from tests.unit.core.compatibility.crds import STRING, Json, changed, crd, obj, told, version

Do = Callable[[Json], None]
Told = list[tuple[str, str, str]]

WIDE, NARROW = obj(spec=obj(a=STRING, b=STRING)), obj(spec=obj(a=STRING))
SERVICE: Json = {"namespace": "default", "name": "converter"}


def webhook(**service: Any) -> Json:
    config = {"clientConfig": {"service": {**SERVICE, **service}}, "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": config}


def spec(**fields: Any) -> Do:
    return lambda crd: crd["spec"].update(copy.deepcopy(fields))


def names(**fields: Any) -> Do:
    return lambda crd: crd["spec"]["names"].update(copy.deepcopy(fields))


def first(**fields: Any) -> Do:
    return lambda crd: crd["spec"]["versions"][0].update(copy.deepcopy(fields))


def second(**fields: Any) -> Do:
    return lambda crd: crd["spec"]["versions"][1].update(copy.deepcopy(fields))


def drop(index: int) -> Do:
    return lambda crd: crd["spec"]["versions"].pop(index)


def flip(crd: Json) -> None:
    first(storage=False)(crd)
    second(storage=True)(crd)


def replace_first(crd: Json) -> None:
    flip(crd)
    drop(0)(crd)


TWO = crd(version("v1"), version("v2"))
SCALE: Json = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b"}
STATUS: Json = {"status": {}}
COLUMN: Json = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
HOOKED = crd(version("v1"), version("v2", NARROW), conversion=webhook())

CASES: list[tuple[Json, Do, Told]] = [
    (crd(), spec(scope="Cluster"), [("scope", "spec.scope", "W!R!S!O!")]),
    (
        crd(),
        names(kind="Gadget"),
        [
            ("kind", "spec.names.kind", "W!R!S!O!"),
            ("list-kind", "spec.names.listKind", "R?"),
            ("name-removed", "spec.names.singular", "W?R?"),
        ],
    ),
    (crd(), names(listKind="Widgets"), [("list-kind", "spec.names.listKind", "R?")]),
    (crd(), names(singular="thing"), [("name-removed", "spec.names.singular", "W?R?")]),
    (crd(), names(singular="widget"), []),
    (crd(), names(shortNames=["w"]), [("name-added", "spec.names.shortNames", "")]),
    (
        crd(names={"plural": "widgets", "kind": "Widget", "categories": ["all"]}),
        names(categories=[]),
        [("name-removed", "spec.names.categories", "W?R?")],
    ),
    (crd(), spec(preserveUnknownFields=False), []),
    (
        crd(preserveUnknownFields=True),
        spec(preserveUnknownFields=False),
        [("preserve-unknown-fields", "spec.preserveUnknownFields", "W!R!S!")],
    ),
    # versions
    (
        TWO,
        drop(1),
        [
            ("version-removed", "spec.versions", "W!R!"),
            ("version-maybe-stored", "spec.versions", "O?"),
            ("apply-of-removed-version", "spec.versions", "W?"),
        ],
    ),
    (
        crd(version("v1"), version("v2")),
        replace_first,
        [
            ("stored-version-removed", "spec.versions", "S!O!"),
            ("version-removed", "spec.versions", "W!R!"),
            ("apply-of-removed-version", "spec.versions", "W?"),
            ("storage-version", "storage", "O?"),
        ],
    ),
    (
        {**TWO, "status": {"storedVersions": ["v1"]}},
        drop(1),
        [("version-removed", "spec.versions", "W!R!"), ("apply-of-removed-version", "spec.versions", "W?")],
    ),
    (
        {**TWO, "status": {"storedVersions": ["v1", "v2"]}},
        drop(1),
        [
            ("stored-version-removed", "spec.versions", "S!O!"),
            ("version-removed", "spec.versions", "W!R!"),
            ("apply-of-removed-version", "spec.versions", "W?"),
        ],
    ),
    (
        crd(version("v1"), version("v2", served=False), stored=["v1"]),
        drop(1),
        [("version-dropped", "spec.versions", ""), ("apply-of-removed-version", "spec.versions", "W?")],
    ),
    (TWO, second(served=False), [("version-not-served", "served", "W!R!")]),
    (
        crd(),
        first(served=False),
        [("version-not-served", "served", "W!R!"), ("none-served", "spec.versions", "W?R?")],
    ),
    (crd(version(served=False)), first(served=True), [("version-served", "served", "")]),
    (crd(version(served=False)), first(), [("none-served", "spec.versions", "W?R?")]),
    (
        crd(version("v1"), version("v2", served=False)),
        second(served=True),
        [("version-served", "served", "")],
    ),
    (TWO, flip, [("storage-version", "storage", "O?")]),
    (
        crd(),
        lambda crd: crd["spec"].update(versions=[version("v1"), version("v2", storage=True)]),
        [("storage-version-new", "storage", "S?O?"), ("version-added", "spec.versions", "")],
    ),
    (
        crd(),
        lambda crd: crd["spec"]["versions"].append(version("v1beta1")),
        [("version-added", "spec.versions", "")],
    ),
    (TWO, first(deprecated=True, deprecationWarning="use v2"), [("deprecation", "deprecated", "")]),
    # beside the schema
    (crd(), first(subresources=STATUS), [("status-added", "subresources.status", "")]),
    (
        crd(version(schema=obj(status=obj(a=STRING)))),
        first(subresources=STATUS),
        [("status-enabled", "subresources.status", "W!")],
    ),
    (
        crd(version("v1", NARROW), version("v2", obj(status=obj(a=STRING)))),
        first(subresources=STATUS),
        [("status-enabled", "subresources.status", "W!")],
    ),
    (
        crd(version(subresources=STATUS)),
        first(subresources={}),
        [("status-disabled", "subresources.status", "W!")],
    ),
    (
        crd(),
        first(subresources={"scale": SCALE}),
        [
            ("scale-values", "subresources.scale.specReplicasPath", "W?S?"),
            ("scale-added", "subresources.scale", ""),
        ],
    ),
    (
        crd(version(subresources={"scale": SCALE})),
        first(subresources={}),
        [("scale-removed", "subresources.scale", "W!R!")],
    ),
    (
        crd(version(subresources={"scale": SCALE})),
        first(subresources={"scale": {**SCALE, "specReplicasPath": ".spec.b"}}),
        [("scale-path", "subresources.scale.specReplicasPath", "W!R!")],
    ),
    (
        crd(version(subresources={"scale": SCALE})),
        first(subresources={"scale": {**SCALE, "labelSelectorPath": ".status.c"}}),
        [("selector-path-added", "subresources.scale.labelSelectorPath", "")],
    ),
    (crd(), first(additionalPrinterColumns=[COLUMN]), [("columns", "additionalPrinterColumns", "")]),
    (
        crd(),
        first(selectableFields=[{"jsonPath": ".spec.a"}]),
        [("selectable-field-added", "selectableFields", "")],
    ),
    (
        crd(version(selectableFields=[{"jsonPath": ".spec.a"}])),
        first(selectableFields=[]),
        [("selectable-field-removed", "selectableFields", "R!")],
    ),
    (
        crd(version("v1", storage=True), version("v2", storage=True)),
        names(shortNames=["w"]),
        [("not-accepted", "spec.versions", "O?"), ("name-added", "spec.names.shortNames", "")],
    ),
    (
        crd(),
        first(schema={}),
        [
            ("refused", "spec.versions[0].schema.openAPIV3Schema", "O!"),
            ("schema-removed", "schema", "W!R!S!"),
        ],
    ),
    # conversion
    (TWO, spec(conversion={"strategy": "None"}), []),
    (crd(), spec(conversion=webhook()), []),
    (TWO, spec(conversion=webhook()), [("conversion-webhook", "spec.conversion.strategy", "O?")]),
    (
        HOOKED,
        spec(conversion=webhook(name="other")),
        [("conversion-webhook", "spec.conversion.webhook.clientConfig", "O?")],
    ),
    (HOOKED, spec(conversion=webhook(port=443)), []),
    (
        crd(version("v1"), version("v2"), conversion=webhook()),
        spec(conversion=None),
        [("conversion-needless", "spec.conversion.strategy", "")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("base", "change", "expected"), CASES)
def test_change(base: Json, change: Do, expected: Told) -> None:
    assert sorted(told(changed(change, base))) == sorted(expected)


@pytest.mark.parametrize(("base", "change"), [each[:2] for each in CASES])
def test_what_the_server_refuses_is_never_left_out(base: Json, change: Do) -> None:
    # A team leaves out all that it can.
    off = dict.fromkeys(each.id for each in all_kinds() if not each.fixed)
    new = copy.deepcopy(base)
    change(new)
    everything, rest = compare(base, new), compare(base, new, severities=off)
    assert rest.left_out == sum(everything.counts.values()) - sum(rest.counts.values())
    established = [{"type": "Established", "status": "True"}]
    old = {**base, "status": {**base.get("status", {}), "conditions": established}}
    assert bool(check_update(new, old).violations) == bool(rest.counts)
    assert all(each.kind.fixed for each in rest.changes)


def test_fixed_kinds_keep_their_severity() -> None:
    safe = dict.fromkeys((each.id for each in all_kinds()), Impact.SAFE)
    new = copy.deepcopy(TWO)
    new["spec"].update(scope="Cluster", versions=new["spec"]["versions"][:1])
    found = compare(TWO, new, severities=safe)
    assert [each.kind.id for each in found.changes if each.severity is Impact.BREAKING] == ["scope"]
    assert found.counts == {Impact.BREAKING: 1, Impact.SAFE: 3}
    assert (found.chosen, found.left_out, found.severity) == (3, 0, Impact.BREAKING)


def test_no_longer_converted() -> None:
    # What the webhook carried between the versions is reported field by field.
    base = crd(version("v1", WIDE), version("v2", NARROW), conversion=webhook())
    assert told(changed(spec(conversion=None), base)) == [
        ("conversion-dropped", "spec.conversion.strategy", "W!R!S!"),
        ("served-field", "spec.b", "W!R!S!"),
    ]


def test_review_versions() -> None:
    def drop_beta(crd: Json) -> None:
        crd["spec"]["conversion"]["webhook"]["conversionReviewVersions"] = ["v1"]

    base = copy.deepcopy(HOOKED)
    base["spec"]["conversion"]["webhook"]["conversionReviewVersions"] = ["v1beta1", "v1"]
    (change,) = changed(drop_beta, base).changes
    assert (change.kind.id, change.message) == ("review-version-removed", "v1beta1 removed")


def test_identity() -> None:
    new = crd(group="other.com", names={"plural": "gadgets", "kind": "Widget"})
    changes = told(compare(crd(), new))
    assert [id for id, _, _ in changes] == ["identity", "identity"]


def test_a_whole_crd_comes_or_goes() -> None:
    assert told(compare(None, crd())) == [("definition-added", "spec", "")]
    assert told(compare(None, crd(version(served=False)))) == [
        ("none-served", "spec.versions", "W?R?"),
        ("definition-added", "spec", ""),
    ]
    assert told(compare(None, {"spec": {"versions": 3}})) == [("definition-added", "spec", "")]
    assert told(compare(crd(), None)) == [("definition-removed", "spec", "W!R!S!")]
    assert told(compare(None, None)) == []


def test_the_version_that_clients_prefer() -> None:
    base = crd(version("v1beta1", NARROW))

    def add_v1(schema: Json) -> Do:
        return lambda crd: crd["spec"]["versions"].append(version("v1", schema, storage=False))

    with_other_schema = {id: effects for id, _, effects in told(changed(add_v1(WIDE), base))}
    assert with_other_schema["preferred-version"] == "R?"
    assert [id for id, _, _ in told(changed(add_v1(NARROW), base))] == ["version-added"]

    def replace_by_v1(crd: Json) -> None:
        add_v1(WIDE)(crd)
        first(served=False)(crd)

    no_longer_served = [id for id, _, _ in told(changed(replace_by_v1, base))]
    assert no_longer_served == ["version-not-served", "version-added"]


def test_a_version_that_is_not_served_matters_to_what_is_stored_only() -> None:
    old = crd(version("v1", WIDE, served=False, storage=True), version("v2"))
    assert told(changed(first(schema={"openAPIV3Schema": NARROW}), old)) == [
        ("field-removed", "spec.b", "S!")
    ]
    old["status"] = {"storedVersions": ["v1"]}
    assert told(changed(second(served=False, schema={"openAPIV3Schema": obj()}), old)) == [
        ("version-not-served", "served", "W!R!"),
        ("none-served", "spec.versions", "W?R?"),
    ]


def test_objects_may_be_stored_at_a_version_that_was_once_the_storage_version() -> None:
    def removed_b(stored: list[str] | None) -> Told:
        versions = version("v1", WIDE, served=False), version("v2", WIDE, storage=True)
        return told(changed(first(schema={"openAPIV3Schema": NARROW}), crd(*versions, stored=stored)))

    assert removed_b(["v1", "v2"]) == [("field-removed", "spec.b", "S!")]
    assert removed_b(["v2"]) == []
    # A file does not show it.
    assert removed_b(None) == [("field-removed", "spec.b", "S?")]


def test_every_kind_has_a_case() -> None:
    kinds = {each.id for each in vars(definitionkinds).values() if isinstance(each, ChangeKind)}
    elsewhere = {
        "identity", "definition-added", "definition-removed", "conversion-dropped", "review-version-removed",
        "preferred-version",
    } | {id for id in kinds if id.startswith("served-")}  # fmt: skip
    of_a_schema = {"schema-removed"}
    assert (kinds - elsewhere) | of_a_schema == {id for _, _, expected in CASES for id, _, _ in expected}


def test_kinds_are_declared_once_and_explained() -> None:
    kinds = all_kinds()
    assert len(kinds) > 80
    assert all(each.why.endswith(".") and each.remedy.endswith(".") for each in kinds)


BAD: list[tuple[Any, str]] = [
    (
        {"apiVersion": "apiextensions.k8s.io/v1beta1"},
        'apiVersion: "apiextensions.k8s.io/v1beta1" is not compared',
    ),
    (crd(scope=3), "spec.scope: Invalid value: 3: must be a string, not a number"),
]


@pytest.mark.parametrize(("document", "message"), BAD)
def test_what_cannot_be_compared(document: Json, message: str) -> None:
    with pytest.raises(NotComparable, match=message.replace("(", r"\(")) as new:
        compare(crd(), document)
    assert new.value.is_new
    with pytest.raises(NotComparable) as old:
        compare(document, crd())
    assert not old.value.is_new


def test_the_worst_comes_first_and_counts() -> None:
    def change(crd: Json) -> None:
        names(shortNames=["w"])(crd)
        first(schema={"openAPIV3Schema": obj(spec=obj(b=STRING))})(crd)

    comparison = changed(change)
    assert [each.severity for each in comparison.changes] == sorted(
        (each.severity for each in comparison.changes), key=lambda each: each.rank
    )
    assert comparison.severity is Impact.BREAKING
    assert comparison.counts == {Impact.BREAKING: 1, Impact.SAFE: 2}
    assert comparison.complete


def test_two_files_that_are_invalid_alike_are_not_called_compatible() -> None:
    both = crd(version("v1", storage=True), version("v2", storage=True))
    assert told(compare(both, copy.deepcopy(both))) == [("not-accepted", "spec.versions", "O?")]
