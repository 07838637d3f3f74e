"""Differences between the served versions of the new CRD, as far as they are new."""

import copy
from typing import Any

import pytest

from crdkeeper.core.compatibility.compare import compare, compare_served_versions
from tests.unit.core.compatibility.crds import STRING, Json, crd, obj, told, version
from tests.unit.core.compatibility.test_definitions import webhook


def of(**fields: Any) -> Json:
    return obj(spec=obj(**fields))


def text(**keywords: Any) -> Json:
    return {**STRING, **keywords}


PLAIN = of(a=STRING)

CASES: list[tuple[Json, Json, list[tuple[str, str, str]], list[tuple[str, str, str]]]] = [
    # v1, v2, what is reported without conversion, and with a webhook
    (PLAIN, of(), [("served-field", "spec.a", "W!R!S!")], [("served-conversion", "spec.a", "S?O?")]),
    (of(), PLAIN, [("served-field", "spec.a", "W!R!S!")], [("served-conversion", "spec.a", "S?O?")]),
    (
        PLAIN,
        of(a={"type": "integer"}),
        [("served-type", "spec.a", "W!R!S!")],
        [("served-conversion", "spec.a", "S?O?")],
    ),
    (PLAIN, of(a=text(maxLength=3)), [("served-value", "spec.a", "W?R?")], []),
    (
        of(a=text(enum=["x", "y"])),
        of(a=text(enum=["x"])),
        [("served-value", "spec.a", "W?R?")],
        [("served-conversion", "spec.a", "S?O?")],
    ),
    (
        of(a=text(default="x")),
        of(a=text(default="y")),
        [("served-default", "spec.a", "W?R?")],
        [("served-conversion", "spec.a", "S?O?")],
    ),
    (PLAIN, of(a=text(description="d")), [], []),
]


@pytest.mark.parametrize(("one", "other", "plain", "converted"), CASES)
def test_a_new_version(
    one: Json, other: Json, plain: list[tuple[str, str, str]], converted: list[tuple[str, str, str]]
) -> None:
    for conversion, expected in (({"strategy": "None"}, plain), (webhook(), converted)):
        old = crd(version("v1", one), conversion=conversion)
        new = crd(version("v1", one), version("v2", other), conversion=conversion)
        said = [each for each in told(compare(old, new)) if each[0].startswith("served-")]
        assert said == expected


def test_old_differences_are_no_change() -> None:
    old = crd(version("v1", PLAIN), version("v2", of(b=STRING)))
    new = copy.deepcopy(old)
    for each in new["spec"]["versions"]:
        each["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["c"] = STRING
    assert {id for id, _, _ in told(compare(old, new))} == {"field-added"}


def test_a_field_that_only_one_version_gained() -> None:
    old = crd(version("v1", PLAIN), version("v2", PLAIN), version("v3", PLAIN, served=False))
    new = copy.deepcopy(old)
    for index in (1, 2):
        spec = new["spec"]["versions"][index]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["b"] = STRING
    changes = compare(old, new).changes
    (served,) = [each for each in changes if each.kind.id == "served-field"]
    assert (served.place.version, served.place.field) == ("v1 and v2", "spec.b")
    assert served.message == "only v2 has the field"
    assert served.place.path.steps[:3] == ("spec", "versions", 1)
    assert served.place.old_path is None


def test_a_field_that_only_the_first_version_has_is_found_there() -> None:
    new = crd(version("v1", PLAIN), version("v2", of()))
    (served,) = [each for each in compare(crd(), new).changes if each.kind.id == "served-field"]
    assert served.message == "only v1 has the field"
    assert served.place.path.steps[:3] == ("spec", "versions", 0)


def told_of_a_move(*versions: Json, to: int, **fields: Any) -> list[tuple[str, str]]:
    """What is said of the served versions if another one becomes the storage version."""
    old = crd(*versions, **fields)
    new = copy.deepcopy(old)
    for i, each in enumerate(new["spec"]["versions"]):
        each["storage"] = i == to
    return [(each.kind.id, each.message) for each in compare(old, new).changes if "served" in each.kind.id]


def test_what_the_new_storage_version_lacks_is_lost_from_now_on() -> None:
    wide, narrow = of(a=STRING, note=STRING), of(a=STRING)
    lost = [("served-field", "only v1 has the field")]
    assert told_of_a_move(version("v1", wide), version("v2", narrow), to=1) == lost
    assert told_of_a_move(version("v2", narrow, storage=True), version("v1", wide), to=0) == []
    assert told_of_a_move(version("v1", wide), version("v2", narrow, served=False), to=1) == lost
    assert told_of_a_move(version("v1", wide), version("v2", narrow), to=1, conversion=webhook()) == []
    # Nothing else changes: writes at v2 lost its field already, and v3 its own.
    assert told_of_a_move(version("v1", narrow), version("v2", wide), to=1) == []
    three = version("v1", narrow), version("v2", narrow), version("v3", wide)
    assert told_of_a_move(*three, to=1) == []


def test_other_differences_from_a_storage_version_that_is_not_served_hurt_nobody() -> None:
    one, other = of(a=STRING), of(a=text(maxLength=3, default="x"), b=STRING)
    assert told_of_a_move(version("v1", one), version("v2", other, served=False), to=1) == []


@pytest.mark.parametrize("index", [0, 1])
def test_maps_and_unknown_fields_that_the_new_storage_version_drops(index: int) -> None:
    kept: list[Json] = [
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "additionalProperties": STRING},
    ]
    expected = ["served-field", "served-type"]
    versions = version("v1", of(a=kept[index])), version("v2", of(a=obj()))
    assert [id for id, _ in told_of_a_move(*versions, to=1)] == [expected[index]]
    assert [id for id, _ in told_of_a_move(*versions[::-1], to=1)] == []
    more = version("v0", of(a=kept[index])), *versions[::-1]
    assert [id for id, _ in told_of_a_move(*more, to=1)] == [expected[index]] * 2


@pytest.mark.parametrize(("one", "other", "plain", "converted"), CASES)
def test_all_differences_of_a_new_definition(
    one: Json, other: Json, plain: list[tuple[str, str, str]], converted: list[tuple[str, str, str]]
) -> None:
    for conversion, expected in (({"strategy": "None"}, plain), (webhook(), converted)):
        new = crd(version("v1", one), version("v2", other), conversion=conversion)
        assert told(compare_served_versions(new)) == expected
    alone = crd(version("v1", one), version("v2", other, served=False))
    assert not compare_served_versions(alone).changes
