"""A trial finds losses, names them, and distinguishes intended ones from others."""

import copy
from typing import Any

import pytest

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.objects.effort import SHARE, SharedAllowance
from crdkeeper.core.conversion import verification
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from crdkeeper.core.conversion.scope import RuleError
from crdkeeper.core.conversion.verification import Trial, compile_trial, generated

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
SCHEMAS: dict[str, Any] = {
    version: {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    for version, fields in {
        "v3": {"name": STRING, "port": INTEGER, "extra": STRING},
        "v2": {"name": STRING, "port": STRING},
        "v1": {"name": STRING, "port": INTEGER},
    }.items()
}
CAST = {"hub": "spec.port", "spoke": "spec.port", "cast": True}


def spec(extra: dict[str, Any]) -> VersionConversionSpec:
    rule = {"hub": "spec.extra", **extra}
    found = {
        "resource": {"group": "stable.example.com", "resource": "things"},
        "hub": "v3",
        "spokes": [{"version": "v2", "rules": [CAST, rule]}, {"version": "v1", "rules": [rule]}],
    }
    return VersionConversionSpec.model_validate(found)


def trial(**extra: Any) -> Trial:
    made = compile_trial(spec(extra), SCHEMAS)
    assert isinstance(made, Trial)
    return made


def thing(version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": f"stable.example.com/{version}", "kind": "Thing", "metadata": {}, "spec": fields}


FULL = thing("v3", name="a", port=80, extra="b")


def test_all_ways_are_tried_and_what_is_kept_aside_is_told() -> None:
    outcome = trial(aside=True).judge(FULL)
    assert outcome.trips == 3
    assert outcome.kept_aside == {"v1", "v2"}
    assert not outcome.faults
    assert not outcome.lossy


COSTLY = "lists.range(700).map(a, lists.range(700)).size() == 0 ? 'x' : object.spec.name"


def test_objects_that_take_long_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "SharedAllowance", lambda: SharedAllowance(3_000_000))
    costly = trial(cel={"toHub": COSTLY})
    things = [thing("v2", name="a", port=str(i)) for i in range(40)]
    with SharedAllowance(10**15).for_one(0) as counted:
        outcomes = [costly.judge(each) for each in things]
    assert [[each.message for each in outcome.faults] for outcome in outcomes] == [
        ["to convert all objects may take too long"]
    ] * 40
    assert 10**15 + SHARE - counted.left < 3_000_000 + 40 * 2 * SHARE


def test_what_is_dropped_is_no_fault() -> None:
    outcome = trial(drop=True).judge(FULL)
    assert not outcome.faults
    assert outcome.lossy == {"v1", "v2"}
    assert not trial(drop=True).judge(thing("v3", name="a")).lossy


def test_a_value_that_cannot_go_is_named() -> None:
    outcome = trial(aside=True).judge(thing("v2", port="http"))
    assert not outcome.faults
    assert [(each.source, each.target) for each in outcome.unmatched] == [("v2", "v3"), ("v2", "v1")]
    assert all(each.message == "spec.port: a string that is no integer" for each in outcome.unmatched)
    assert outcome.kept_aside == {"v1", "v3"}


def test_a_value_that_a_rule_refuses_is_a_fault() -> None:
    rules = spec({"aside": True})
    rules.spokes[0].rules[0].refuse = True
    made = compile_trial(rules, SCHEMAS)
    assert isinstance(made, Trial)
    outcome = made.judge(thing("v2", port="http"))
    (direct, around) = outcome.faults[:2]
    assert (direct.source, direct.target, direct.lossy) == ("v2", "v3", False)
    assert direct.message == "spec.port: a string that is no integer"
    assert around.target == "v1"
    assert not outcome.unmatched


def test_what_is_kept_aside_on_an_object_is_still_there_at_the_end() -> None:
    made = trial(aside=True)
    stored = made.conversion.convert(FULL, "v1")
    assert "annotations" in stored["metadata"]
    assert not made.judge(stored).faults


def test_a_conversion_that_loses_something_is_found_out() -> None:
    made = trial(aside=True)

    class Forgetful(Conversion):
        def convert(self, value: Any, version: str, tally: ConversionTally | None = None) -> dict[str, Any]:
            found = made.conversion.convert(value, version)
            return {**found, "spec": {key: each for key, each in found["spec"].items() if key != "name"}}

    forgetful = Forgetful.__new__(Forgetful)
    forgetful.__dict__.update(made.conversion.__dict__)
    faults = Trial(forgetful, None, lambda: forgetful).judge(FULL).faults
    assert all(each.lossy for each in faults)
    assert "the way and back changes spec.name" in faults[0].message


def test_rules_that_do_not_compile() -> None:
    found = compile_trial(spec({"spoke": "spec.none"}), SCHEMAS)
    assert not isinstance(found, Trial)
    assert all(isinstance(each, RuleError) for each in found)


def test_objects_are_made_up_for_each_version() -> None:
    found = list(generated(spec({"aside": True}), SCHEMAS, 10))
    assert {each["apiVersion"] for each in found} == {f"stable.example.com/{each}" for each in SCHEMAS}
    assert all(not trial(aside=True).judge(each).faults for each in found)


def test_values_that_the_schema_does_not_allow() -> None:
    # Like an object at v3 that was written at v2 before any rules converted it.
    assert not trial(aside=True).judge(thing("v3", name="a", port="80", extra=7)).faults
    schemas = copy.deepcopy(SCHEMAS)
    schemas["v3"]["properties"]["spec"]["properties"]["extra"]["maxLength"] = 3
    made = compile_trial(spec({"aside": True}), schemas)
    assert isinstance(made, Trial)
    assert not made.judge(FULL).faults
    (fault, *_) = made.judge({**FULL, "spec": {**FULL["spec"], "extra": "long"}}).faults
    assert fault.message == "the way and back changes spec.extra"


@pytest.mark.parametrize("field", ["labels[a b]", "annotations[a b]", "labels[/x]", "annotations[A_/x]"])
def test_rules_cannot_write_a_key_that_the_api_server_refuses(field: str) -> None:
    errors = compile_trial(spec({"spoke": f"metadata.{field}"}), SCHEMAS)
    assert not isinstance(errors, Trial)
    assert {each.where for each in errors} == {
        "spec.spokes[0].rules[1].spoke",
        "spec.spokes[1].rules[0].spoke",
    }
    assert all("name part must" in each.message or "prefix part" in each.message for each in errors), errors


def test_what_the_api_server_refuses_of_an_answer_is_a_fault() -> None:
    # An old invalid key does no harm until something is kept aside next to it.
    old = {**thing("v3", name="a", port=80), "metadata": {"annotations": {"a b": "c"}}}
    assert not trial(aside=True).judge(old).faults
    new = {**FULL, "metadata": old["metadata"]}
    faults = trial(aside=True).judge(new).faults
    assert [(each.source, each.target) for each in faults] == [("v3", "v2"), ("v3", "v1"), ("v3", "v1")]
    assert all(
        "returned invalid metadata: metadata.annotation: Invalid value: " in each.message for each in faults
    )
