"""What holds a retirement on a fake API server: more than a status shows, and rules that are hidden later."""

from typing import Any

import pytest

from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.retirement.evidence import Obstacle
from crdkeeper.core.retirement.facts import RetirementFacts
from crdkeeper.operations.retirement.run import look
from tests import virtualtime
from tests.unit.controllers.fakeapi import OURS
from tests.unit.core.retirement.cases import definition, entry, evidence, facts, owner, passed
from tests.unit.operations.retirement.scene import Api

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WEBHOOKS = f"{ADMISSION}/validatingwebhookconfigurations"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
MUTATING = f"{ADMISSION}/mutatingadmissionpolicies"
UNSERVED = definition(entry("v1alpha1", deprecated=True, served=False), entry("v1"))
RULE = {"apiGroups": ["*"], "apiVersions": ["v1alpha1"], "operations": ["*"], "resources": ["dbs"]}


def add(api: Api, plural: str, name: str, **fields: Any) -> None:
    api.objects[f"{plural}/{name}"] = {"metadata": {"name": name}, **fields}


def hide(api: Api, plural: str) -> None:
    """Let the operator's right to list them be taken away."""
    error = ApiError(403, {"message": f"{plural} is forbidden"})
    api.failures += [("GET", plural, error)] * 20


def looked(api: Api, of: VersionRetirement) -> RetirementFacts:
    return virtualtime.run(look(api.client, of, rights=False))


def seen(holds: tuple[Obstacle, ...]) -> set[tuple[str, str, str]]:
    return {(each.step, each.reason, each.name) for each in holds}


def test_many_rules_that_hold_the_removal_hide_nothing_that_holds_an_earlier_step() -> None:
    api = Api(UNSERVED)
    many = [{"name": f"w{each}.example.com", "rules": [RULE]} for each in range(70)]
    add(api, WEBHOOKS, "generated", webhooks=many)
    of = {"apiVersion": "example.com/v1alpha1", "kind": "Db"}
    add(api, POLICIES, "limits", spec={"paramKind": of})
    add(api, f"{OURS}/compositions", "web", kind="Composition", spec={"compositeTypeRef": of})
    holds = looked(api, owner()).holds
    assert {("NotServed", "Composition", "web"), ("NotServed", "AdmissionPolicy", "limits")} <= seen(holds)
    assert len(holds) <= 2 * 50 + 2


@pytest.mark.parametrize("plural", [WEBHOOKS, POLICIES])
def test_what_held_and_is_hidden_now_still_holds(plural: str) -> None:
    api = Api(UNSERVED)
    if plural == WEBHOOKS:
        add(api, plural, "guard", webhooks=[{"name": "guard.example.com", "rules": [RULE]}])
    else:
        add(api, plural, "guard", spec={"matchConstraints": {"resourceRules": [RULE]}})
    of = owner()
    passed(of, facts(UNSERVED, evidence(), holds=looked(api, of).holds))
    hide(api, plural)
    for _ in range(3):
        holds = looked(api, of).holds
        ((step, _, name),) = seen(holds)
        assert (step, name) == ("Removed", "guard")
        assert "can no longer be listed" in holds[0].message
        assert f'resources: ["{plural.rpartition("/")[2]}"]' in holds[0].message
        passed(of, facts(UNSERVED, evidence(), holds=holds))
    # Whoever grants the right again sees what is there.
    api.failures.clear()
    del api.objects[f"{plural}/guard"]
    assert looked(api, of).holds == ()


def test_what_was_corrected_does_not_hold_because_another_kind_cannot_be_listed() -> None:
    api, of = Api(UNSERVED), owner()
    matching = {"matchConstraints": {"resourceRules": [RULE]}}
    add(api, POLICIES, "guard", spec=matching)
    hide(api, MUTATING)
    holds = looked(api, of).holds
    assert seen(holds) == {("Removed", "AdmissionPolicy", "guard")}
    passed(of, facts(UNSERVED, evidence(), holds=holds))
    del api.objects[f"{POLICIES}/guard"]
    assert looked(api, of).holds == ()


def test_each_of_several_kinds_of_one_name_still_holds() -> None:
    api, of = Api(UNSERVED), owner()
    for plural in (POLICIES, MUTATING):
        add(api, plural, "guard", spec={"matchConstraints": {"resourceRules": [RULE]}})
    passed(of, facts(UNSERVED, evidence(), holds=looked(api, of).holds))
    hide(api, MUTATING)
    for _ in range(2):
        (listed, hidden) = (each.message for each in looked(api, of).holds)
        assert listed.startswith("ValidatingAdmissionPolicy guard matches")
        assert hidden.startswith("MutatingAdmissionPolicy guard may still name the version")


def test_what_was_never_listed_holds_nothing() -> None:
    api, of = Api(UNSERVED), owner()
    # A hold by rules of another kind, which can be listed and are gone.
    gone = Obstacle("Removed", "AdmissionWebhook", "guard", "It holds.")
    passed(of, facts(UNSERVED, evidence(), holds=(gone,)))
    hide(api, POLICIES)
    assert looked(api, of).holds == ()
