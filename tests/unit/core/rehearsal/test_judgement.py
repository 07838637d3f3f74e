"""What a new CRD does to an object; test_rehearse_predictions.py in tests/cluster proves it."""

import copy
from typing import Any

import pytest

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.rehearsal.definition import CompiledDefinition, compile_definition
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.judgement import Judge, between_views
from tests.unit.core.rehearsal.crds import INTEGER, TEXT, crd, definition, effects, told, version, widget

Json = Any
SHORT = TEXT | {"maxLength": 2}
RULE = [{"rule": "has(self.b)", "message": "b is needed"}]


@pytest.mark.parametrize(
    ("old", "new", "spec", "expected"),
    [
        ({"a": TEXT}, {"a": TEXT}, {"a": "x"}, set()),
        ({"a": TEXT, "b": TEXT}, {"a": TEXT}, {"a": "x", "b": "y"}, {(EffectKind.PRUNED, "spec.b", "v1")}),
        ({"a": TEXT}, {"a": TEXT, "b": INTEGER | {"default": 1}}, {"a": "x"},
            {(EffectKind.DEFAULTED, "spec.b", "v1")}),
        # Ratcheting tolerates what does not change in a write, but not in a creation.
        ({"a": TEXT}, {"a": SHORT}, {"a": "long"}, {(EffectKind.REFUSED, "spec.a", "v1")}),
        ({"a": TEXT}, {"a": SHORT}, {"a": "s"}, set()),
        ({"a": TEXT}, {"a": TEXT, "b": TEXT, "required": ["b"]}, {"a": "x"},
            {(EffectKind.REFUSED, "spec.b", "v1")}),
        ({"a": TEXT}, {"a": TEXT, "b": TEXT, "rules": RULE}, {"a": "x"},
            {(EffectKind.REFUSED, "spec", "v1")}),
        # A violation of a rule under a change made by a default is not tolerated.
        (
            {"a": TEXT},
            {"a": TEXT, "b": TEXT, "c": TEXT | {"default": "d"}, "rules": RULE},
            {"a": "x"},
            {(EffectKind.REFUSED, "spec", "v1"), (EffectKind.DEFAULTED, "spec.c", "v1")},
        ),
        ({"a": TEXT | {"nullable": True}}, {"a": TEXT | {"default": "d"}}, {"a": None},
            {(EffectKind.CHANGED, "spec.a", "v1")}),
    ],
)  # fmt: skip
def test_effects(old: Json, new: Json, spec: Json, expected: set[Any]) -> None:
    found = effects(definition(version(**old)), definition(version(**new)), widget(spec))
    assert told(found) == expected


@pytest.mark.parametrize("storage", ["v1", "v2"])
def test_a_default_of_a_new_version_is_not_uncertain_for_those_who_exist(storage: str) -> None:
    """Whether the same default is stored decides only what is said of the version that nobody uses."""
    fields: Json = {"a": TEXT, "b": INTEGER | {"default": 1}}
    old = definition(version(**fields))
    new = definition(
        version("v1", storage=storage == "v1", **fields), version("v2", storage=storage == "v2", **fields)
    )
    found = effects(old, new, widget({"a": "x", "b": 1}))
    assert [each for each in found if not each.at_new_version] == []


def test_fields_that_the_crd_preserves_are_pruned_once_it_does_not() -> None:
    keeping = definition(version(a=TEXT), preserveUnknownFields=True)
    pruning = compile_definition(crd(version(a=TEXT)), known=keeping)
    obj = widget({"a": "x", "b": 1})
    assert told(effects(keeping, pruning, obj)) == {(EffectKind.PRUNED, "spec.b", "v1")}
    assert effects(keeping, keeping, obj) == []
    # A field is no longer named, but nothing is pruned.
    naming = definition(version(a=TEXT, b=INTEGER), preserveUnknownFields=True)
    assert effects(naming, keeping, obj) == []
    assert told(effects(naming, pruning, obj)) == {(EffectKind.PRUNED, "spec.b", "v1")}


def test_a_list_type_is_checked_at_a_creation_only_where_it_was_violated_before() -> None:
    tags = {"type": "array", "items": TEXT}
    old = definition(version(tags=tags))
    new = definition(version(tags=tags | {"x-kubernetes-list-type": "set"}))
    assert told(effects(old, new, widget({"tags": ["a", "a"]}))) == {
        (EffectKind.REFUSED, "spec.tags[*]", "v1")
    }


def test_scale_is_not_forgiven() -> None:
    scale = {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.n"}}
    old = definition(version(a=INTEGER))
    new = definition(version(a=INTEGER, subresources=scale))
    assert told(effects(old, new, widget({"a": -1}))) == {
        (EffectKind.REFUSED, ".spec.a", "v1"),
        (EffectKind.WRITE_REFUSED, ".spec.a", "v1"),
    }


def test_metadata_that_cannot_be_decoded_is_unreadable() -> None:
    old = definition(version(a={"type": "object", "properties": {"metadata": TEXT}}))
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    found = effects(old, definition(version(a=embedded)), widget({"a": {"metadata": "text"}}))
    assert (EffectKind.UNREADABLE, "spec.a.metadata", "v1") in told(found)


def test_a_status_that_a_creation_does_not_take() -> None:
    status = {"type": "object", "properties": {"phase": TEXT}}
    stricter = {"type": "object", "properties": {"phase": SHORT}}
    old = definition(version(a=TEXT, status=status, subresources={"status": {}}))
    new = definition(version(a=TEXT, status=stricter, subresources={"status": {}}))
    obj = widget({"a": "x"}, status={"phase": "Ready"})
    assert told(effects(old, new, obj)) == {(EffectKind.STATUS_REFUSED, "status.phase", "v1")}
    without = definition(version(a=TEXT, status=stricter))
    assert (EffectKind.REFUSED, "status.phase", "v1") in told(effects(old, without, obj))


def test_a_version_that_lacks_a_field_shows_and_loses_it() -> None:
    one, both = version(a=TEXT, b=TEXT), version("v2", storage=False, a=TEXT)
    # It is not a change if the version existed before.
    assert effects(definition(one, both), definition(one, both), widget({"a": "x", "b": "y"})) == []
    found = effects(definition(one), definition(one, both), widget({"a": "x", "b": "y"}))
    assert told(found) == {(EffectKind.PRUNED, "spec.b", "v2")}

    flipped = definition(version(storage=False, a=TEXT, b=TEXT), version("v2", a=TEXT))
    found = effects(definition(one, both), flipped, widget({"a": "x", "b": "y"}))
    assert told(found) == {(EffectKind.LOST_ON_WRITE, "spec.b", "v1")}
    assert effects(flipped, flipped, widget({"a": "x", "b": "y"})) == []


def test_what_only_users_of_a_new_version_meet_is_marked() -> None:
    one, two = version(a=TEXT, b=TEXT), version("v2", storage=False, a=TEXT)
    obj = widget({"a": "x", "b": "y"})

    def marked(old: CompiledDefinition, new: CompiledDefinition) -> set[Any]:
        return {(each.kind, each.version, each.at_new_version) for each in effects(old, new, obj)}

    assert marked(definition(one), definition(one, two)) == {(EffectKind.PRUNED, "v2", True)}
    hidden = version("v2", storage=False, served=False, a=TEXT, b=TEXT)
    assert marked(definition(one, hidden), definition(one, two)) == {(EffectKind.PRUNED, "v2", True)}
    assert marked(definition(one), definition(version(a=TEXT))) == {(EffectKind.PRUNED, "v1", False)}
    # What is stored in the new version loses fields for those who read the old one.
    flipped = definition(version(storage=False, a=TEXT, b=TEXT), version("v2", a=TEXT))
    assert marked(definition(one), flipped) == {
        (EffectKind.PRUNED, "v2", True),
        (EffectKind.LOST_ON_WRITE, "v1", False),
    }


def test_only_versions_with_another_schema_are_compiled_again() -> None:
    old = definition(
        version(a=TEXT), version("v2", storage=False, a=TEXT), version("v3", storage=False, a=TEXT)
    )
    document = crd(
        version(a=TEXT),
        version("v2", storage=False, a=SHORT),
        version("v3", storage=False, a=TEXT, subresources={"status": {}}),
    )
    new = compile_definition(document, known=old)
    same = [name for name in new.versions if new.versions[name].schema is old.versions[name].schema]
    assert same == ["v1"]


def test_what_cannot_be_converted_to_a_new_storage_version_cannot_be_written_today_either() -> None:
    for storage in ("v1", "v2"):
        document = crd(
            version(storage=storage == "v1", a=TEXT), version("v2", storage=storage == "v2", a=INTEGER)
        )
        cast = _rules(document, {"hub": "spec.a", "spoke": "spec.a", "cast": True, "refuse": True})
        found = effects(definition(version(a=TEXT)), compile_definition(document, cast), widget({"a": "x"}))
        assert [(each.kind, each.at_new_version) for each in found if each.version == "v2"] == [
            (EffectKind.UNCONVERTIBLE, storage == "v1")
        ]


def test_server_side_apply_fails_where_managed_fields_name_a_version_that_goes() -> None:
    both = definition(version(storage=False, a=TEXT), version("v2", a=TEXT))
    new = definition(version("v2", a=TEXT))

    def obj(*versions: str) -> Json:
        entries = [{"manager": "m", "apiVersion": f"example.com/{each}"} for each in versions]
        return {**widget({"a": "x"}, "v2"), "metadata": {"name": "w", "managedFields": entries}}

    (found,) = effects(both, new, obj("v1", "v2", "v1"))
    assert (found.kind, found.field, found.at_new_version) == (
        EffectKind.APPLY_FAILS,
        "metadata.managedFields",
        False,
    )
    assert '"request to convert CR to an invalid group/version: example.com/v1"' in found.message
    assert effects(both, new, obj("v2")) == []
    # It fails today already.
    assert effects(both, new, obj("v0")) == []
    assert effects(None, new, obj("v1")) == [found]
    # A version that is only not served does no such harm.
    hidden = definition(version(served=False, storage=False, a=TEXT), version("v2", a=TEXT))
    assert effects(both, hidden, obj("v1")) == []


def test_a_default_in_status_is_not_taken_from_a_write_at_another_version() -> None:
    def status(phase: Json) -> Json:
        return {"type": "object", "properties": {"phase": phase}}

    subresource: Json = {"status": {}}
    one = version(a=TEXT, status=status(TEXT), subresources=subresource)
    two = version(
        "v2", storage=False, a=TEXT, status=status(TEXT | {"default": "d"}), subresources=subresource
    )
    prediction = Judge(definition(one), definition(one, two)).predict(widget({"a": "x"}, status={}))
    assert prediction.writes["v2"].object["status"] == {}
    assert prediction.effects == []


DEFAULTED = INTEGER | {"default": 1}


def _owned(fields: Json) -> Json:
    return {"metadata": {"name": "w", "managedFields": [{"manager": "m", "fieldsV1": fields}]}}


@pytest.mark.parametrize(
    ("owned", "new", "uncertain"),
    [
        ({}, {"a": INTEGER | {"default": 2}}, True),
        ({}, {"a": INTEGER}, True),
        ({}, {"a": DEFAULTED}, False),
        # A field with an owner was written, so it is stored.
        ({"f:spec": {"f:a": {}}}, {"a": INTEGER}, False),
        ({"f:spec": {"f:other": {}}}, {"a": INTEGER}, True),
        ({"f:spec": {}}, {"a": INTEGER}, True),
    ],
)
def test_defaults_that_are_perhaps_not_stored(owned: Json, new: Json, uncertain: bool) -> None:
    obj = {**widget({"a": 1}), **_owned(owned)}
    found = effects(definition(version(a=DEFAULTED)), definition(version(**new)), obj)
    assert told(found) == ({(EffectKind.INDETERMINATE, "spec.a", "v1")} if uncertain else set())
    # Another value than the default is stored in any case.
    other = {**widget({"a": 3}), **_owned(owned)}
    assert effects(definition(version(a=DEFAULTED)), definition(version(**new)), other) == []


def test_who_owns_a_list_as_a_whole_says_nothing_of_its_items() -> None:
    items: Json = {"type": "object", "properties": {"name": TEXT, "a": DEFAULTED}}
    atomic: Json = {"type": "array", "items": items}
    by_name: Json = {
        **atomic,
        "items": {**items, "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    new = definition(version(c={"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}}))
    obj = {**widget({"c": [{"name": "n", "a": 1}]}), **_owned({"f:spec": {"f:c": {}}})}
    found = told(effects(definition(version(c=atomic)), new, obj))
    assert found == {(EffectKind.PRUNED, "spec.c[*].a", "v1")}
    obj = {**obj, **_owned({"f:spec": {"f:c": {'k:{"name":"n"}': {"f:a": {}}}}})}
    kept = copy.deepcopy(by_name)
    del kept["items"]["properties"]["a"]["default"]
    assert effects(definition(version(c=by_name)), definition(version(c=kept)), obj) == []
    obj = {**obj, **_owned({"f:spec": {"f:c": {'k:{"name":"other"}': {"f:a": {}}}}})}
    found = told(effects(definition(version(c=by_name)), definition(version(c=kept)), obj))
    assert found == {(EffectKind.INDETERMINATE, "spec.c[*].a", "v1")}
    loose = copy.deepcopy(atomic)
    del loose["items"]["properties"]["a"]["default"]
    obj = {**obj, **_owned({"f:spec": {"f:c": {}}})}
    found = told(effects(definition(version(c=atomic)), definition(version(c=loose)), obj))
    assert found == {(EffectKind.INDETERMINATE, "spec.c[*].a", "v1")}


def test_several_stored_versions_that_make_a_difference() -> None:
    old = definition(version(a=TEXT, b=TEXT), version("v2", storage=False, a=TEXT))
    judge = Judge(old, definition(version(a=TEXT), version("v2", storage=False, a=TEXT)))
    first, second = judge.predict(widget({"a": "x", "b": "y"})), judge.predict(widget({"a": "x"}, "v2"))
    assert told(between_views(first, second, "v2")) == {(EffectKind.INDETERMINATE, "", "v2")}
    assert between_views(first, first, "v2") == []


def _rules(document: Json, *rules: Json) -> Conversion:
    spec = {
        "resource": {"group": "example.com", "resource": "widgets"},
        "hub": "v1",
        "spokes": [{"version": "v2", "rules": list(rules)}],
    }
    made = compile_conversion(VersionConversionSpec.model_validate(spec), schemas_of(document))
    assert isinstance(made, Conversion), made
    return made


def test_an_object_that_nests_too_deep_is_left_open() -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    found = effects(definition(version(a=anything)), definition(version(a=anything)), widget({"a": deep}))
    assert {each.kind for each in found} == {EffectKind.INDETERMINATE}


def test_conversion_by_rules() -> None:
    document = crd(version(a=TEXT, b=TEXT), version("v2", storage=False, c=TEXT, d=TEXT))
    straight = _rules(document, {"hub": "spec.a", "spoke": "spec.c"}, {"hub": "spec.b", "spoke": "spec.d"})
    crossed = _rules(document, {"hub": "spec.a", "spoke": "spec.d"}, {"hub": "spec.b", "spoke": "spec.c"})
    old, new = compile_definition(document, straight), compile_definition(document, crossed)

    assert effects(old, old, widget({"a": "x", "b": "y"})) == []
    assert told(effects(old, new, widget({"a": "x", "b": "y"}))) == {
        (EffectKind.CONVERTED_DIFFERENTLY, "spec.c", "v2"),
        (EffectKind.CONVERTED_DIFFERENTLY, "spec.d", "v2"),
    }
    assert effects(old, new, widget({"a": "x", "b": "x"})) == []


def test_objects_that_the_rules_refuse_are_named_by_their_field() -> None:
    document = crd(version(a=TEXT), version("v2", storage=False, a=INTEGER))
    cast = _rules(document, {"hub": "spec.a", "spoke": "spec.a", "cast": True, "refuse": True})
    found = effects(None, compile_definition(document, cast), widget({"a": "x"}))
    (refused,) = found
    assert (refused.kind, refused.version) == (EffectKind.UNCONVERTIBLE, "v2")
    assert "spec.a" in refused.message


def test_without_rules_a_webhook_leaves_other_versions_open() -> None:
    new = definition(
        version(a=TEXT), version("v2", storage=False, a=INTEGER), conversion={"strategy": "Webhook"}
    )
    prediction = Judge(None, new).predict(widget({"a": "x"}))
    assert list(prediction.reads) == list(prediction.writes) == ["v1"]
    assert prediction.effects == []
