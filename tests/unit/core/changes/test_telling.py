"""What is said of a change, and what is refused."""

from typing import Any

import pytest

from crdkeeper.core.changes.examination import Examination
from crdkeeper.core.changes.guarding import ALLOW_CHANGE, GuardingPolicy
from crdkeeper.core.changes.telling import refusal_of, warnings_of
from tests.unit.core.changes.builders import FIELDS, Json, change, definition, widget, without

DENY, WARN = GuardingPolicy("p", denies=True, allowed=""), GuardingPolicy("p", denies=False, allowed="")


def examined(old: Json, new: Json, *objects: Json) -> Examination:
    found = Examination(change(old, new))
    found.compare()
    if found.concerns_objects:
        found.compile()
    for obj, effects in found.judged(objects):
        found.add(obj, effects)
    return found


def test_a_harmless_change_is_not_mentioned() -> None:
    found = examined(definition(), definition({**FIELDS, "extra": {"type": "string"}}))
    assert not found.concerns_objects
    assert warnings_of(found, DENY) == []
    assert refusal_of(found, DENY) == ""


def test_a_lost_field_is_counted_and_refused() -> None:
    objects = [*(widget(each, note="x") for each in range(3)), widget(9, size=1)]
    found = examined(definition(), definition(without("note")), *objects)
    told = warnings_of(found, DENY)
    assert told[0] == "3 of 4 Widget objects would lose spec.note at v1, such as default/w0"
    assert told[1].startswith("breaking[field-removed]: v1: spec.note: the field is gone (for writers")
    said = refusal_of(found, DENY)
    assert said.startswith(f"DefinitionPolicy p refuses it (spec.changes): {told[0]}. To allow it: kubectl ")
    assert refusal_of(found, WARN) == ""


def test_what_harms_nobody_who_exists_is_not_refused() -> None:
    found = examined(definition(), definition(without("note")), widget(1, size=1))
    assert refusal_of(found, DENY) == ""
    assert warnings_of(found, DENY)[0].startswith("breaking[field-removed]")


def test_old_faults_do_not_count() -> None:
    """An object that the present CRD refuses is not harmed by a change elsewhere."""
    fields = {**FIELDS, "color": {"type": "string", "enum": ["red"]}}
    changed = definition({**fields, "size": {"type": "string"}})
    found = examined(definition(fields), changed, widget(1, color="green"))
    assert found.concerns_objects
    assert refusal_of(found, DENY) == ""
    assert not any("spec.color" in each for each in warnings_of(found, DENY))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"enum": ["red"]}, {"enum": ["red", "blue"]}),
        ({"enum": ["red"]}, {"enum": ["blue"]}),
        ({"maxLength": 3}, {"maxLength": 4}),
        ({"maxLength": 3}, {"pattern": "^[a-f]+$"}),
    ],
)
def test_a_field_that_is_refused_already_is_not_refused_anew(before: Json, after: Json) -> None:
    """The API server's words differ, but the object has been refused before."""
    colored = [
        definition({**FIELDS, "color": {"type": "string", **each}, "note": {"type": "string", **more}})
        for each, more in ((before, {}), (after, {"maxLength": 1}))
    ]
    assert refusal_of(examined(*colored, widget(1, color="green")), DENY) == ""
    found = examined(*colored, widget(1, color="green", note="by hand"))
    assert "because of spec.color" not in refusal_of(found, DENY)
    assert "1 of 1 Widget objects would be refused when created again, or once spec.note" in refusal_of(
        found, DENY
    )


def test_what_was_not_examined_is_said() -> None:
    found = examined(definition(), definition(without("note")), widget(1, note="x"))
    found.left = 3_999
    found.unexamined = "there was no time for more"
    told = warnings_of(found, WARN)
    assert told[0].startswith("1 of the first 1 of about 4,000 Widget objects would lose spec.note")
    assert "1 live object of about 4,000 examined: there was no time for more;" in told[-1]


def test_no_objects_at_all_are_said_to_be_unexamined() -> None:
    found = examined(definition(), definition(without("note")))
    found.unexamined = "crdkeeper-webhook may not list them"
    assert "no live object was examined: crdkeeper-webhook may not list them" in warnings_of(found, WARN)
    assert refusal_of(found, DENY) == ""


def test_an_allowed_change_says_how_to_end_that() -> None:
    found = examined(definition(), definition(without("note")), widget(1, note="x"))
    told = warnings_of(found, GuardingPolicy("p", denies=False, allowed="moved\x1b[2J"))
    assert told[0].startswith(f"allowed by {ALLOW_CHANGE} (moved\\x1b[2J); afterwards: kubectl annotate crd ")
    assert told[0].endswith(f"{ALLOW_CHANGE}-")


def _hostile() -> list[Json]:
    nasty = "a\x1b[31m\u202e\n::error::" + "ü" * 300
    return [widget(each, note="x") | {"metadata": {"name": nasty, "namespace": nasty}} for each in range(3)]


@pytest.mark.parametrize("number", [1, 40, 400])
def test_warnings_are_bounded_and_visible(number: int) -> None:
    """API servers show 4,096 characters, and drop a warning with control characters."""
    many: dict[str, Any] = {f"f{each}" + "x" * 200: {"type": "string"} for each in range(number)}
    odd = {"\x1b[2Jodd\u202e\n" + "ü" * 300: {"type": "string"}}
    old = definition({**FIELDS, **many, **odd})
    objects = [each | {"spec": dict.fromkeys((*many, *odd), "x")} for each in _hostile()]
    found = examined(old, definition(FIELDS), *objects)
    guard = GuardingPolicy("p" * 253, denies=True, allowed="")
    told = warnings_of(found, guard)
    assert told
    assert all(len(each.encode()) <= 256 for each in told)
    assert sum(len(each.encode()) for each in told) <= 4_096
    said = refusal_of(found, guard)
    assert len(said.encode()) < 2_000
    for text in (*told, said):
        assert not any(ord(each) < 32 or each == "\u202e" for each in text)


def test_values_of_objects_are_not_shown() -> None:
    """Who changes a CRD need not be allowed to read its objects."""
    fields = {**FIELDS, "note": {"type": "string", "pattern": "^public"}}
    found = examined(definition(), definition(fields), widget(1, note="the password is hunter2"))
    assert refusal_of(found, DENY)
    assert "hunter2" not in str((refusal_of(found, DENY), warnings_of(found, DENY)))


def test_a_version_that_goes_names_its_writers() -> None:
    old = definition()
    second = {**old["spec"]["versions"][0], "name": "v2", "storage": False}
    old["spec"]["versions"].append(second)
    new = definition()
    new["spec"]["versions"].append({**second, "served": False})
    entry = {"manager": "argo\x1bcd", "apiVersion": "example.com/v2", "operation": "Apply"}
    obj = widget(1)
    obj["metadata"]["managedFields"] = [
        entry,
        entry,
        {**entry, "manager": "b", "apiVersion": "example.com/v1"},
    ]
    told = warnings_of(examined(old, new, obj), WARN)
    assert "argo\\x1bcd wrote 1 of 1 Widget objects at v2, which is not served any more" in told
    assert not any(each.startswith("b wrote") for each in told)


def report(*owners: str, **census: Any) -> Json:
    """A DefinitionReport of a CRD with that uid."""
    found = {"takenAt": "2026-11-23T15:40:00Z", "objects": 4_000, **census}
    metadata = {"name": "widgets.example.com", "ownerReferences": [{"uid": each} for each in owners]}
    return {"metadata": metadata, "status": {"census": found}}


def with_second(*, served: bool | None = True) -> Json:
    """A CRD with a second version, or with none if it is None."""
    made = definition(uid="u1")
    second = {**made["spec"]["versions"][0], "name": "v2", "storage": False, "served": served}
    made["spec"]["versions"] += [second] if served is not None else []
    return made


@pytest.mark.parametrize(
    ("served", "said"), [(False, "is not served any more"), (None, "goes: they could not be applied")]
)
def test_the_last_census_says_who_names_a_version_that_goes(served: bool | None, said: str) -> None:
    counts = [{"version": "v1", "objects": 4_000}, {"version": "v2", "objects": 312}]
    found = examined(with_second(), with_second(served=served), widget(1))
    found.read_census(report("u1", versions=counts))
    line = f"312 of 4,000 Widget objects named v2 in managedFields at 2026-11-23T15:40:00Z, which {said}"
    assert line not in warnings_of(found, WARN)  # all were examined: that is newer
    found.left = 3_999
    assert line in warnings_of(found, WARN)
    assert not any("named v1" in each for each in warnings_of(found, WARN))
    # It may be hours old: what it says alone is no reason to refuse.
    assert refusal_of(found, DENY) == ""


def test_a_census_says_how_many_objects_were_not_examined() -> None:
    found = examined(definition(uid="u1"), definition(without("note")))
    found.unexamined = "the API server did not list more in time"
    found.read_census(report("u1"))
    told = warnings_of(found, WARN)[-1]
    assert told.endswith("not list more in time; there were 4,000 at 2026-11-23T15:40:00Z")


def test_what_is_not_known_is_said() -> None:
    """What rules do matters for any change; how many objects there are, only if not all were examined."""
    safe = examined(definition(), definition({**FIELDS, "extra": {"type": "string"}}))
    safe.unruled = "there was no time for more"
    told = warnings_of(safe, WARN)
    assert told == ["what the VersionConversion's rules do is not known: there was no time for more"]
    found = examined(definition(), definition(without("note")), widget(1))
    found.uncounted = "crdkeeper-webhook may not"
    assert not any("last count" in each for each in warnings_of(found, WARN))
    found.left = 1
    assert warnings_of(found, WARN)[-1].endswith("is not known: crdkeeper-webhook may not")


@pytest.mark.parametrize("owners", [(), ("u0",)])
def test_the_census_of_another_definition_does_not_count(owners: tuple[str, ...]) -> None:
    found = examined(definition(uid="u1"), definition(without("note")))
    found.read_census(report(*owners))
    assert found.census is None


@pytest.mark.parametrize(
    "census",
    [
        {"objects": -1},
        {"objects": "many"},
        {"takenAt": "yesterday"},
        {"versions": [{"version": "v" * 64, "objects": 1}]},
        {"versions": [{"version": "v1", "objects": 1}] * 21},
        {"versions": 7},
    ],
)
def test_a_forged_census_is_not_read(census: Json) -> None:
    found = examined(definition(uid="u1"), definition(without("note")))
    with pytest.raises(ValueError, match="validation error"):
        found.read_census(report("u1", **census))
    assert found.census is None
