"""What a change does to objects that a VersionConversion's rules convert."""

from typing import Any

import pytest

from crdkeeper.core.changes.examination import Examination
from crdkeeper.core.changes.guarding import GuardingPolicy
from crdkeeper.core.changes.telling import harms, refusal_of, warnings_of
from crdkeeper.core.conversion.target import WebhookAddress
from tests.unit.core.changes.builders import (
    ADDRESS,
    DROPPED,
    MOVED,
    NAME,
    OURS,
    STRING,
    V1,
    V2,
    Json,
    bundle,
    change,
    converted,
    widget,
)

DENY = GuardingPolicy("p", denies=True, allowed="")
BY_URL = WebhookAddress(url="https://w.example.com:9443")
ASIDE: Json = {"hub": "spec.note", "aside": True}
WIDGET = widget(1, host="a", note="x")


def examined(
    old: Json, new: Json, rules: bytes, *objects: Json, address: WebhookAddress = ADDRESS
) -> Examination:
    found = Examination(change(old, new))
    if rules:
        found.use_rules(rules, address)
    found.compare()
    assert found.concerns_objects
    found.compile()
    for obj, effects in found.judged(objects):
        found.add(obj, effects)
    return found


def harmed(found: Examination) -> list[tuple[str, str]]:
    return [(each.kind.label, each.field) for each in harms(found)]


def test_what_rules_carry_over_is_not_lost() -> None:
    old, new = converted(), converted(storage="v2")
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert harmed(found) == []
    assert refusal_of(found, DENY) == ""
    # By apiVersion alone, all fields would be lost.
    new["spec"]["conversion"] = {"strategy": "None"}
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert ("LostOnWrite", "spec.host") in harmed(found)


def test_what_rules_drop_is_lost() -> None:
    old, new = converted(), converted(storage="v2")
    found = examined(old, new, bundle(MOVED, DROPPED, old=old), WIDGET)
    assert harmed(found) == [("LostOnWrite", "spec.note")]
    assert "1 of 1 Widget objects would lose spec.note with the next write" in refusal_of(found, DENY)
    assert harmed(examined(old, new, bundle(MOVED, DROPPED, old=old), widget(1, host="a"))) == []


def test_a_field_that_only_rules_fill_is_lost_with_it() -> None:
    old, new = converted(), converted(v2={})
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert ("ConvertedDifferently", "spec.address") in harmed(found)
    told = warnings_of(found, DENY)
    assert any(each.startswith("the VersionConversion's rules do not fit") for each in told)


def test_what_is_safe_by_the_schemas_is_examined_all_the_same() -> None:
    old = converted()
    new = converted({**V1, "extra": STRING}, {**V2, "extra": STRING})
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert harmed(found) == []
    assert found.tally.objects == 1


DEFAULT: Json = {**STRING, "default": "x"}


@pytest.mark.parametrize("storage", ["v1", "v2"])
@pytest.mark.parametrize("before", [{}, {"mode": STRING}])
def test_a_default_does_no_harm_to_what_is_converted(storage: str, before: Json) -> None:
    old = converted({**V1, **before}, {**V2, **before}, storage=storage)
    new = converted({**V1, "mode": DEFAULT}, {**V2, "mode": DEFAULT}, storage=storage)
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert found.rules.misfit == ""
    assert (harmed(found), refusal_of(found, DENY)) == ([], "")
    assert {each.kind.label for each in found.tally.findings()} == {"Defaulted"}


def test_a_default_that_another_field_is_converted_to_does_no_harm() -> None:
    old, new = converted(), converted({**V1, "host": DEFAULT}, {"address": DEFAULT})
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), widget(1, note="x"))
    assert (found.rules.misfit, harmed(found)) == ("", [])
    # A default that takes the place of another is a loss for those who read it.
    former = converted({**V1, "host": {**DEFAULT, "default": "y"}}, {"address": DEFAULT})
    found = examined(former, new, bundle(MOVED, ASIDE, old=former), widget(1, note="x"))
    assert ("ConvertedDifferently", "spec.address") in harmed(found)


SERVICE: Json = OURS["service"]


@pytest.mark.parametrize(
    ("address", "client_config"),
    [
        (ADDRESS, {"service": SERVICE}),
        (ADDRESS, {"service": {key: value for key, value in SERVICE.items() if key != "port"}}),
        (BY_URL, {"url": f"https://w.example.com:9443/convert/{NAME}"}),
    ],
)
def test_whoever_names_this_webhook_is_converted_by_its_rules(
    address: WebhookAddress, client_config: Json
) -> None:
    old, new = (converted(storage=each, client_config=client_config) for each in ("v1", "v2"))
    found = examined(old, new, bundle(MOVED, DROPPED, old=old), WIDGET, address=address)
    assert harmed(found) == [("LostOnWrite", "spec.note")]


@pytest.mark.parametrize(
    ("address", "client_config"),
    [
        (ADDRESS, {"service": {**SERVICE, "path": "/convert/others.example.com"}}),
        (ADDRESS, {"service": {**SERVICE, "path": ""}}),
        (ADDRESS, {"service": {**SERVICE, "namespace": "former"}}),
        (ADDRESS, {"service": {**SERVICE, "name": "other"}}),
        (ADDRESS, {"service": {**SERVICE, "port": 9443}}),
        (ADDRESS, {"url": f"https://crdkeeper-webhook.crdkeeper-system.svc/convert/{NAME}"}),
        (BY_URL, {"url": f"https://other.example.com:9443/convert/{NAME}"}),
        (BY_URL, {"service": SERVICE}),
        (WebhookAddress(), {"service": SERVICE}),
        (WebhookAddress(), {"url": f"/convert/{NAME}"}),
    ],
)
def test_another_webhook_does_not_convert_by_our_rules(address: WebhookAddress, client_config: Json) -> None:
    old, new = (converted(storage=each, client_config=client_config) for each in ("v1", "v2"))
    found = examined(old, new, bundle(MOVED, DROPPED, old=old), WIDGET, address=address)
    assert (found.rules.old, found.rules.new) == (None, None)
    assert harmed(found) == []


def test_a_crd_that_passes_to_another_webhook_is_judged_by_what_is_known() -> None:
    """What the other one makes of objects is not: before, they are converted by our rules."""
    old = converted()
    new = converted(client_config={"service": {**SERVICE, "namespace": "other"}})
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert found.rules.old is not None
    assert found.rules.new is None
    assert harmed(found) == []


def test_without_rules_nothing_is_known_of_other_versions() -> None:
    found = examined(converted(), converted(storage="v2"), b"", WIDGET)
    assert harmed(found) == []


def test_a_conversion_that_is_taken_away_is_judged() -> None:
    old = converted()
    new: Any = converted()
    new["spec"]["conversion"] = {"strategy": "None"}
    found = examined(old, new, bundle(MOVED, ASIDE, old=old), WIDGET)
    assert ("ConvertedDifferently", "spec.address") in harmed(found)
