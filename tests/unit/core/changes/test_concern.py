"""The part of an object that a change concerns meets the same as the whole object would."""

import copy
import json
import os
import time
from collections import Counter
from random import Random
from typing import Any, Final

import pytest

from crdkeeper.core.changes.concern import Concern, concern_of
from crdkeeper.core.changes.objectjudge import ObjectJudge
from crdkeeper.core.changes.rules import ServedRules
from crdkeeper.core.rehearsal.definition import compile_definition
from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge, new_effects
from tests.cluster.rehearsal.changes import CHANGES, LAST, changed
from tests.cluster.rehearsal.definitions import all_definitions, prepared
from tests.cluster.rehearsal.fitting import objects
from tests.cluster.rehearsal.spots import NotHere
from tests.unit.core.changes.builders import FIELDS, definition, widget, without
from tests.unit.core.changes.rarechanges import FEW, RARE

ROUNDS: Final = int(os.environ.get("CRDKEEPER_CONCERNS", "1"))
SEED: Final = 14
OBJECTS: Final = 6
Json = Any
Harms = set[tuple[EffectKind, str, str]]


def harms(effects: list[Effect]) -> Harms:
    """Also at versions that are new."""
    return {
        (each.kind, each.field, each.version) for each in effects if each.kind is not EffectKind.DEFAULTED
    }


def as_read(crd: Json, obj: Json, random: Random) -> Json:
    """The object as an API server returns it, perhaps with defaults that nobody wrote."""
    version = obj["apiVersion"]
    owned: Json = {
        f"f:{key}": {f"f:{name}": {} for name in each if random.random() < 0.7}
        for key, each in obj.items()
        if isinstance(each, dict) and key != "metadata"
    }
    entry = {"manager": "m", "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1"}
    metadata = {**obj["metadata"], "uid": "1", "managedFields": [{**entry, "fieldsV1": owned}]}
    read = compile_definition(crd).schema(version.rpartition("/")[2]).stored({**obj, "metadata": metadata})
    return read.object


def test_the_part_meets_what_the_whole_meets() -> None:
    seen: Counter[str] = Counter()
    for number in range(ROUNDS):
        for place, crd in enumerate((*all_definitions(), FEW[-1])):
            made = prepared(copy.deepcopy(crd), "example.com")
            random = Random(f"{SEED} {number} {place}")
            found = list(objects(made, OBJECTS, random))
            for name, change in (CHANGES | LAST | (RARE if crd in FEW else {})).items():
                try:
                    new = changed(made, change, found, random)
                except NotHere:
                    continue
                judge = ObjectJudge(made, new, ServedRules())
                before = compile_definition(made)
                after = compile_definition(new, None, before)
                judges = Judge(before, after), Judge(before, before)
                seen["whole" if concern_of(made, new) is None else "part"] += 1
                for each in found:
                    obj = as_read(made, each, random)
                    expected, got = harms(new_effects(obj, *judges)), harms(judge.effects(obj))
                    assert got == expected, (name, made["metadata"]["name"], json.dumps(obj), number)
                    seen[name] += bool(expected)
    print(seen)
    assert seen["part"] > seen["whole"]
    assert all(seen[name] for name in RARE)


def concern(old: Json, new: Json) -> Concern:
    found = concern_of(old, new)
    assert found is not None
    return found


def test_only_presence_counts_of_what_goes() -> None:
    """So no number of different values takes more time, and none is kept."""
    found = concern(definition(), definition(without("note")))
    parts = [found.part(widget(each, note=f"n{each}", size=each)) for each in range(3)]
    assert parts[0] == parts[1] == parts[2]
    assert parts[0]["spec"] == {"note": "x"}
    assert found.part(widget(9, size=1))["spec"] == {}


def test_an_object_is_judged_as_a_whole_where_rules_refuse_its_part() -> None:
    """API servers evaluate no rule for an object that they refuse anyway, as they do today."""
    rule = [{"rule": "self.endsWith('!')"}]
    fields = {**FIELDS, "note": {"type": "string", "x-kubernetes-validations": rule}}
    judge = ObjectJudge(definition(), definition(fields), ServedRules())
    assert harms(judge.effects(widget(1, note="x")))
    assert not harms(judge.effects(widget(1, note="x", color="green")))


def with_values(length: int, required: list[str]) -> Json:
    values = {"type": "string", "maxLength": length}
    return definition({"m": {"type": "object", "additionalProperties": values, "required": required}})


def test_an_entry_that_a_map_requires_is_missing_only_where_it_is() -> None:
    for length in (10, 20):
        judge = ObjectJudge(with_values(10, []), with_values(length, ["a"]), ServedRules())
        assert not harms(judge.effects(widget(1, m={"a": "x"})))
        assert {each.field for each in judge.effects(widget(2, m={"b": "x"}))} == {"spec.m.a"}


def versions(*fields: tuple[str, Json]) -> Json:
    made = definition()
    made["spec"]["versions"] = [
        {**definition(each)["spec"]["versions"][0], "name": name, "storage": name == "v1"}
        for name, each in fields
    ]
    return made


def test_versions_are_compared_by_name_in_any_order() -> None:
    short, long = ({"note": {"type": "string", "maxLength": each}} for each in (1, 9))
    old = versions(("v1", long), ("v2", short))
    assert (
        ObjectJudge(old, versions(("v2", short), ("v1", long)), ServedRules()).effects(widget(1, note="abc"))
        == []
    )
    judge = ObjectJudge(old, versions(("v2", long), ("v1", short)), ServedRules())
    assert "v1" in {each.version for each in judge.effects(widget(1, note="abc"))}


def test_it_is_told_at_a_new_version_what_depends_on_hidden_defaults() -> None:
    """What is there compared with is the object as it is stored."""
    fields: Json = {**FIELDS, "size": {"type": "integer", "default": 1}}
    later: Json = {**fields, "note": {"type": "string", "maxLength": 9}}
    entry = {"manager": "m", "apiVersion": "example.com/v1", "fieldsV1": {"f:spec": {"f:note": {}}}}
    obj = widget(1, size=1, note="x")
    obj["metadata"]["managedFields"] = [entry]
    for present in (later, without("size")):
        new = versions(("v1", {**present}), ("v2", later))
        found = ObjectJudge(versions(("v1", fields)), new, ServedRules()).effects(obj)
        assert (EffectKind.INDETERMINATE, "", "v2") in harms(found)


def test_a_field_without_a_schema_makes_an_object_count_as_changed() -> None:
    """What is required only now is forgiven in a write that changes nothing."""
    old = definition()
    old["spec"]["preserveUnknownFields"] = True
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = ["size"]
    judge = ObjectJudge(old, new, ServedRules())
    refused = (EffectKind.REFUSED, "spec.size", "v1")
    assert harms(judge.effects(widget(1, color="red"))) == {refused}
    assert harms(judge.effects(widget(2, color="red", other=1))) == {
        refused,
        (EffectKind.WRITE_REFUSED, "spec.size", "v1"),
    }


def test_a_map_in_one_version_may_be_an_object_in_another() -> None:
    def both(length: int, *fields: str) -> Json:
        of_map = {"type": "object", "additionalProperties": {"type": "string", "maxLength": length}}
        of_object = {"type": "object", "properties": {each: {"type": "string"} for each in fields}}
        return versions(("v1", {"m": of_map}), ("v2", {"m": of_object}))

    judge = ObjectJudge(both(9, "a", "b"), both(8, "a"), ServedRules())
    assert harms(judge.effects(widget(1, m={"b": "x"}))) == {(EffectKind.PRUNED, "spec.m.b", "v2")}


def test_what_would_take_long_to_cut_is_judged_as_a_whole() -> None:
    """Each version has fields of its own, which are looked for in all of them."""

    def wide(length: int, number: int) -> Json:
        return versions(
            *(
                (f"v{i}", {f"f{i}x{j}": {"type": "string", "maxLength": length} for j in range(25)})
                for i in range(1, number + 1)
            )
        )

    assert concern_of(wide(9, 10), wide(8, 10)) is not None
    assert concern_of(wide(9, 200), wide(8, 200)) is None


def test_what_goes_is_not_looked_at_on_each_level() -> None:
    node: Json = {"type": "object", "properties": {f"f{i}": {"type": "string"} for i in range(10_000)}}
    for _ in range(150):
        node = {"type": "object", "properties": {"a": node}}
    old, new = definition({**FIELDS, "gone": node}), definition()
    began = time.process_time()
    assert concern(old, new).part(widget(1, gone={"a": {"a": {}}}))["spec"] == {"gone": {}}
    assert time.process_time() - began < 0.7


@pytest.mark.parametrize("depth", [60, 3000])
def test_a_schema_made_to_be_slow_takes_no_time(depth: int) -> None:
    """Each level has many fields that do not change, and requires one more."""

    def nested(required: list[str]) -> Json:
        wide = {f"f{each}": {"type": "string"} for each in range(60_000 // depth)}
        node: Json = {"type": "object", "properties": dict(wide)}
        for _ in range(depth):
            node = {"type": "object", "properties": {**wide, "n": node}, "required": required}
        return {"n": node}

    began = time.process_time()
    try:
        concern_of(definition(nested([])), definition(nested(["f0"])))
    except RecursionError:
        assert depth > 60
    assert time.process_time() - began < 5
