"""Whether the API server protects: what DefinitionPolicies say of it, in virtual time."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.controllers.definitionpolicy import controller
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.policy.admissionpolicy import SHIPPED
from tests.unit.builders import NAME, policy
from tests.unit.controllers.definitionpolicy.test_controller import STATUS, TROUBLES, play
from tests.unit.controllers.fakeapi import FakeApi
from tests.unit.core.diagnosis.builders import seen

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
PROTECTION = "crdkeeper-definition-protection"
BINDING = f"{REGISTRATION}/validatingadmissionpolicybindings/{PROTECTION}"
POLICY = f"{REGISTRATION}/validatingadmissionpolicies/{PROTECTION}"
BOUND: dict[str, Any] = {
    "policyName": PROTECTION,
    "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
    "validationActions": ["Deny"],
}
DEFAULTED = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
"""What the API server makes of empty matchResources."""
FEWER = {**DEFAULTED, "objectSelector": {"matchLabels": {"stage": "production"}}}


@pytest.mark.parametrize(
    ("binding", "failure", "reason", "said"),
    [
        (None, None, "NotProtected", "there is no ValidatingAdmissionPolicyBinding"),
        ({"validationActions": ["Audit"]}, None, "NotProtected", "does not have the validationAction Deny"),
        (
            {"policyName": "other"},
            None,
            "NotProtected",
            "Binding crdkeeper-definition-protection has another",
        ),
        ({"paramRef": {"name": "other"}}, None, "NotProtected", "does not select all DefinitionPolicies"),
        ({"paramRef": None}, None, "NotProtected", "does not select all DefinitionPolicies"),
        (
            {"paramRef": {**BOUND["paramRef"], "namespace": "x"}},
            None,
            "NotProtected",
            "has a paramRef with a namespace",
        ),
        ({"matchResources": FEWER}, None, "NotProtected", "does not concern all CRDs"),
        (
            {},
            ("GET", BINDING, TROUBLES["403"]),
            "NotProtected",
            f"(get validatingadmissionpolicybindings.admissionregistration.k8s.io/{PROTECTION})",
        ),
        (
            {},
            ("GET", POLICY, TROUBLES["403"]),
            "NotProtected",
            f"(get validatingadmissionpolicies.admissionregistration.k8s.io/{PROTECTION})",
        ),
        (
            {},
            ("GET", POLICY, ApiError(404, {"message": "not found"})),
            "NotProtected",
            "there is no ValidatingAdmissionPolicy crd",
        ),
        ({}, ("GET", POLICY, TROUBLES["500"]), "Outdated", ""),
        ({}, ("GET", BINDING, TROUBLES["500"]), "Outdated", ""),
        ({"matchResources": DEFAULTED}, None, "Outdated", ""),
        ({}, None, "Outdated", ""),
    ],
)
def test_a_policy_protects_only_if_the_api_server_does(
    binding: dict[str, Any] | None, failure: tuple[str, str, Exception] | None, reason: str, said: str
) -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        api.objects[POLICY] = {"spec": SHIPPED}
        if binding is not None:
            api.objects[BINDING] = {"spec": {**BOUND, **binding}}
        if failure is not None:
            api.failures.append(failure)
        state.saw(DefinitionPolicy, "p", policy(mode="Disabled", protection={"deletion": "Deny"}))
        await asyncio.sleep(60.0)
        status = api.written[STATUS]["status"]
        (ready,) = (each for each in status["conditions"] if each["type"] == "Ready")
        assert ready["reason"] == reason
        assert status.get("protected", 0) == (1 if reason == "Outdated" else 0)
        assert said in ready["message"]
        # Somebody may change that at any time.
        api.objects[BINDING] = {"spec": BOUND}
        await asyncio.sleep(300.0)
        assert api.written[STATUS]["status"]["protected"] == 1

    play(people)


def test_an_edited_admission_policy_does_not_count() -> None:
    async def people(state: ClusterState, api: FakeApi) -> None:
        api.objects[BINDING] = {"spec": BOUND}
        never = {"name": "never", "expression": "false"}
        conditions = [*SHIPPED["matchConditions"], never]
        api.objects[POLICY] = {"spec": {**SHIPPED, "matchConditions": conditions, "validations": []}}
        state.saw(DefinitionPolicy, "p", policy(mode="Disabled", protection={"deletion": "Deny"}))
        await asyncio.sleep(60.0)
        status = api.written[STATUS]["status"]
        (ready,) = (each for each in status["conditions"] if each["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "NotProtected")
        assert status.get("protected", 0) == 0
        said = "is not that of this release: spec.matchConditions, spec.validations. Apply the manifests"
        assert said in ready["message"]
        api.objects[POLICY] = {"spec": SHIPPED}
        await asyncio.sleep(300.0)
        assert api.written[STATUS]["status"]["protected"] == 1

    play(people)


def test_many_policies_share_one_look_at_what_protects(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Client] = []

    async def look(client: Client) -> str:
        looks.append(client)
        return ""

    monkeypatch.setattr(controller, "why_unprotected", look)

    async def people(state: ClusterState, _: FakeApi) -> None:
        for each in range(50):
            protects = policy(f"p{each}", mode="Disabled", protection={"deletion": "Deny"})
            state.saw(DefinitionPolicy, f"p{each}", protects)
        await asyncio.sleep(5.0)
        assert len(looks) == 1
        for number in range(20):
            state.saw_definition(NAME, seen(labels={"number": str(number)}))
            await asyncio.sleep(1.0)
        assert len(looks) == 1
        # Each change of a policy leads to another one: somebody may have set things right.
        state.saw(DefinitionPolicy, "p1", state.of(DefinitionPolicy)["p1"])
        await asyncio.sleep(5.0)
        assert len(looks) == 2

    play(people)


@pytest.mark.parametrize("left", [True, False], ids=["changed", "deleted"])
def test_a_policy_that_changes_while_it_is_asked_what_protects(
    monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    async def look(_: Client) -> str:
        await asyncio.sleep(20.0)
        return ""

    monkeypatch.setattr(controller, "why_unprotected", look)

    async def people(state: ClusterState, api: FakeApi) -> None:
        protects = policy(mode="Disabled", protection={"deletion": "Deny"})
        state.saw(DefinitionPolicy, "p", protects)
        await asyncio.sleep(10.0)
        changed = protects.model_copy(deep=True)
        changed.metadata.generation += 1
        state.saw(DefinitionPolicy, "p", changed if left else None)
        await asyncio.sleep(12.0)
        written = api.written.get(STATUS)
        seen = written and written["status"]["observedGeneration"]
        assert seen == (changed.metadata.generation if left else None)

    play(people)
