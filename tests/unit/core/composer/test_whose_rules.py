"""Rules judge an update only if the CRD names the webhook that serves them."""

from typing import Any

import pytest

from crdkeeper.core.composer.update import Rules, converts
from crdkeeper.core.conversion.target import WebhookAddress, wanted_conversion
from tests.unit.core.composer.test_plan import crd
from tests.unit.core.composer.test_updates import (
    ADDRESS,
    NAME,
    OTHER,
    WEBHOOK,
    composite,
    conversion,
    decided,
    known,
    live_with,
    refusal,
    two,
)
from tests.unit.core.composition.documents import version

Json = Any
OTHERS = [
    OTHER,
    wanted_conversion(WebhookAddress("crdkeeper-system", "crdkeeper-webhook", 9443), NAME, "PEM"),
    wanted_conversion(WebhookAddress(url="https://127.0.0.1:9443"), NAME, "PEM"),
    wanted_conversion(ADDRESS, "others.platform.example.com", "PEM"),
]
UNFIT = conversion({"version": "v1"}, ready=True)
"""Rules that are served, and do not cover what `two` adds."""


@pytest.mark.parametrize("by", OTHERS)
@pytest.mark.parametrize("rules", [UNFIT, conversion(ready=True), conversion(mode="Plan", ready=True)])
def test_rules_of_our_webhook_are_none_of_another_one(by: Json, rules: Json) -> None:
    live = live_with(version(), by=by)
    found = known(two(), live, composite("a"), rules=rules)
    assert found.facts.update.rules == Rules(exist=True)
    assert decided(found) == decided(known(two(), live, composite("a")))


def test_rules_of_our_webhook_count_for_what_it_converts() -> None:
    live = live_with(version(), by=WEBHOOK)
    assert refusal(known(two(), live, composite("a"), rules=UNFIT))[0] == "ConversionIncomplete"
    found = known(two(), live, composite("a"), rules=conversion(ready=True, at=6))
    assert found.facts.update.rules.after is not None
    assert decided(found).held == ("v2",), "the operator has not verified them on this CRD yet"


@pytest.mark.parametrize("told", [None, {}, {"service": {"name": "crdkeeper-webhook"}}])
@pytest.mark.parametrize("by", [WEBHOOK, OTHER])
def test_rules_of_an_operator_that_does_not_say_where_they_are_served(told: Json, by: Json) -> None:
    rules = conversion(ready=True)
    rules["status"] = {**rules["status"], "clientConfig": told}
    reason, message = refusal(known(two(), live_with(version(), by=by), composite("a"), rules=rules))
    assert reason == "ConversionIncomplete"
    assert "status.clientConfig does not say by which webhook its rules are served" in message
    # If the webhook is ours after all, the new version must not be served before the rules convert it.
    loose = known(two(breakingChanges="Allow"), live_with(version(), by=by), composite("a"), rules=rules)
    assert decided(loose).held == ("v2",)
    # Without a webhook, nothing is converted by them yet, wherever they are.
    assert decided(known(two(), crd(), composite("a"), rules=rules)).held == ("v2",)


def test_ready_rules_do_not_convert_a_crd_that_names_another_webhook() -> None:
    """As the operator takes its place: the condition is about the CRD that it has just changed."""
    rules = conversion(ready=True, at=7)
    for by, expected in ((WEBHOOK, True), (OTHER, False), ({"strategy": "None"}, False)):
        live = live_with(version(), by=by)
        live["metadata"]["generation"] = 7
        assert converts(rules, live) is expected
