"""What happens to a VersionConversion on events of itself, its CRD, certificates, permissions and errors."""

import asyncio
from typing import Any

import pytest

from crdkeeper.cluster.resources.versionconversions import FIELD_MANAGER
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.core.conversion.target import wanted_conversion
from crdkeeper.core.diagnosis.facts import seen_definition
from tests.cluster.conversion.rules import RULES
from tests.kstatus import status_of
from tests.unit.controllers.versionconversion.scene import (
    ADDRESS,
    BUNDLE,
    CERTIFICATE,
    CONVERSION,
    CONVERTING,
    CRD,
    GROUP,
    SLASHED,
    Scene,
    definition,
    has_label,
)

DROPPING = {**RULES, "v1alpha1": RULES["v1alpha1"][:1]}
"""Rules that leave fields out."""
REFUSING = {
    **RULES,
    "v1beta1": [{**each, "refuse": True} if "cast" in each else each for each in RULES["v1beta1"]],
}
"""Rules that may fail for an object."""
OTHER = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "other", "name": "other", "path": "/convert"}},
    },
}


def test_rules_become_a_conversion_step_by_step(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        assert scene.condition() == CONVERTING
        assert has_label(scene.api.objects[BUNDLE])
        assert scene.strategy == "Webhook"
        assert scene.status["verification"]["objects"] == 1
        assert scene.status["servedGeneration"] == 1
        assert scene.condition("InUse") == ("True", "Needed")
        assert status_of(scene.api.objects[CONVERSION]) == "Current"
        assert scene.api.events[-1] == "Converting"
        assert scene.counted() == {CONVERTING: 1.0}

    scene.play(story)


def test_the_status_says_which_generation_of_the_crd_it_is_about(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.see()
        await asyncio.sleep(5.0)
        metadata = scene.api.objects[CRD]["metadata"]
        assert scene.status["definitionGeneration"] == metadata["generation"] > 1
        assert scene.status["observedGeneration"] == 1
        events, objects = len(scene.api.events), scene.status["verification"]["completionTime"]
        scene.api.touch(scene.api.objects[CRD])
        scene.see_definition()
        await asyncio.sleep(5.0)
        assert scene.status["definitionGeneration"] == metadata["generation"]
        # Nothing else is news: the schemas are the same.
        assert (len(scene.api.events), scene.status["verification"]["completionTime"]) == (events, objects)
        assert status_of(scene.api.objects[CONVERSION]) == "Current"
        scene.delete(CRD)
        await asyncio.sleep(5.0)
        assert not scene.status.get("definitionGeneration")

    scene.play(story)


def test_rules_that_do_not_compile_change_nothing(scene: Scene) -> None:
    scene.apply(DROPPING)

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        assert scene.condition() == ("False", "InvalidRules")
        assert scene.status["problems"]
        assert BUNDLE not in scene.api.objects
        assert scene.strategy == "None"
        assert status_of(scene.api.objects[CONVERSION]) == "Failed"

    scene.play(story)


def test_rules_that_cannot_be_understood_are_answered_by_their_path(scene: Scene) -> None:
    scene.apply({**RULES, "v1alpha1": [{"hub": "spec.x", "spoke": "spec.y", "wrong": 1}]})

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        assert scene.condition() == ("False", "InvalidRules")
        assert scene.status["problems"][0]["path"] == "spec.spokes.1.rules.0.wrong"

    scene.play(story)


def test_bad_rules_leave_those_that_serve_and_good_ones_take_their_place(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        before = scene.api.objects[BUNDLE]["binaryData"]
        scene.apply(DROPPING)
        await asyncio.sleep(5.0)
        assert scene.condition() == ("False", "InvalidRules")
        assert scene.status["servedGeneration"] == 1
        assert scene.api.objects[BUNDLE]["binaryData"] == before
        assert scene.strategy == "Webhook"
        scene.apply(SLASHED)
        await asyncio.sleep(5.0)
        assert scene.condition() == CONVERTING
        assert scene.status["servedGeneration"] == 3
        assert scene.api.objects[BUNDLE]["binaryData"] != before

    scene.play(story)


def test_a_plan_writes_nothing_but_its_status(scene: Scene) -> None:
    scene.apply(mode="Plan")

    async def story(scene: Scene) -> None:
        await asyncio.sleep(120.0)
        assert scene.condition() == ("True", "PlanOnly")
        assert status_of(scene.api.objects[CONVERSION]) == "Current"
        assert {path for _, path in scene.api.requests} == {f"{CONVERSION}/status"}

    scene.play(story)


def test_without_an_opt_in_no_object_is_read_until_there_is_one(scene: Scene) -> None:
    scene.api.permitted = False
    read: list[str] = []
    scene.api.answers = lambda _, path: read.append(path)

    async def story(scene: Scene) -> None:
        await asyncio.sleep(20.0)
        assert scene.condition() == ("False", "NotPermitted")
        assert not any(path.startswith(f"/apis/{GROUP}/") for path in read)
        assert BUNDLE not in scene.api.objects
        scene.api.permitted = True
        await asyncio.sleep(10.0)
        assert scene.condition() == CONVERTING

    scene.play(story)


def test_objects_that_do_not_survive_are_named_and_looked_at_again(scene: Scene) -> None:
    scene.apply(REFUSING)
    scene.api.objects[CRD] = definition(storage="v1beta1")
    scene.api.crontabs[0] |= {"apiVersion": f"{GROUP}/v1beta1", "spec": {"port": "http"}}

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        assert scene.condition("Verified") == ("False", "ObjectsFail")
        assert scene.status["verification"]["failed"] == scene.status["verification"]["objects"] == 1
        assert scene.strategy == "None"
        # Nothing signals a change of an object: only the timer triggers a new check.
        scene.api.crontabs[0]["spec"] = {"port": "80"}
        await asyncio.sleep(40.0)
        assert scene.condition() == CONVERTING

    scene.play(story)


def test_what_fails_is_not_tried_again_because_its_status_was_written(scene: Scene) -> None:
    """Each status update returns as an event: with two for each trial it would never end."""
    scene.apply(REFUSING)
    scene.api.crontabs[0] |= {"apiVersion": f"{GROUP}/v1beta1", "spec": {"port": "http"}}
    lists: list[str] = []
    scene.api.answers = lambda _, path: lists.append(path) if path.endswith("/v1/crontabs") else None

    async def story(scene: Scene) -> None:
        seen = set()
        for _ in range(1000):
            await asyncio.sleep(0.1)
            seen.add(scene.condition("Verified"))
        assert seen == {("False", "ObjectsFail")}
        assert len(lists) == 4  # at the beginning, and after 30, 60 and 90 seconds
        assert scene.api.writes("PATCH", CONVERSION) == 2
        assert scene.api.events == ["ObjectsFail"]

    scene.play(story)


@pytest.mark.parametrize("change", ["the rules", "what is stored"])
def test_what_fails_is_tried_again_at_once_when_something_has_changed(scene: Scene, change: str) -> None:
    scene.apply(REFUSING)
    scene.api.crontabs[0] |= {"apiVersion": f"{GROUP}/v1beta1", "spec": {"port": "http"}}

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        assert scene.condition("Verified") == ("False", "ObjectsFail")
        if change == "the rules":
            scene.apply()
        else:
            scene.api.crontabs = []
            scene.api.objects[CRD]["status"]["storedVersions"] = ["v1", "v1beta1"]
            scene.see_definition()
        await asyncio.sleep(2.0)
        assert scene.condition("Verified") == ("True", "Verified")

    scene.play(story)


def test_missing_rights_to_read_are_looked_for_again_soon(scene: Scene) -> None:
    def answers(_: str, path: str) -> None:
        if path.endswith("/v1/crontabs"):
            raise ApiError(403, {"message": "forbidden"})

    scene.api.answers = answers

    async def story(scene: Scene) -> None:
        await asyncio.sleep(20.0)
        assert scene.condition("Verified") == ("False", "NotPermitted")
        scene.api.answers = lambda *_: None
        await asyncio.sleep(7.0)
        assert scene.condition() == CONVERTING

    scene.play(story)


def test_new_rules_end_the_trial_of_the_old_ones(scene: Scene) -> None:
    """The watch reports a new generation while objects are being listed."""

    def answers(_: str, path: str) -> None:
        if path == f"/apis/{GROUP}/v1/crontabs":
            scene.api.answers = lambda *_: None
            scene.state.conversions["crontabs.example.com"] = 2

    scene.api.answers = answers

    async def story(scene: Scene) -> None:
        assert scene.condition("Verified") == ("Unknown", "Verifying")
        scene.apply(SLASHED)
        await asyncio.sleep(5.0)
        assert scene.condition() == CONVERTING
        assert scene.status["servedGeneration"] == 2

    scene.play(story)


def test_a_certificate_is_waited_for_and_a_new_one_reaches_the_crd(scene: Scene) -> None:
    scene.certificate = (None, "")

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        assert scene.condition() == ("False", "NoCertificate")
        assert status_of(scene.api.objects[CONVERSION]) == "InProgress"
        scene.certificate = ("-----BEGIN CERTIFICATE-----", "")
        scene.controller.renew()
        await asyncio.sleep(0.5)  # sooner than by the clock
        assert scene.condition() == CONVERTING
        scene.see_definition()
        assert scene.controller.trusted("-----BEGIN CERTIFICATE-----")
        assert not scene.controller.trusted("another")

    scene.play(story)


@pytest.mark.parametrize("keeper", ["nobody", "its VersionConversion", "us, until it is not needed"])
def test_a_new_certificate_waits_for_the_crds_that_are_kept(scene: Scene, keeper: str) -> None:
    """A copy from another cluster may name our webhook, with that cluster's certificates for good."""
    name = "copies.example.com"

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.see_definition()
        assert scene.controller.trusted(CERTIFICATE)
        copy = definition(conversion=wanted_conversion(ADDRESS, name, "another"))
        copy["metadata"]["name"] = name
        if keeper.startswith("us"):
            fields: dict[str, Any] = {"f:spec": {"f:conversion": {}}}
            entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
            copy["metadata"]["managedFields"] = [entry]
        scene.state.saw_definition(name, seen_definition(copy))
        heard: list[bool] = []
        scene.controller.on_trust = lambda: heard.append(scene.controller.trusted(CERTIFICATE))
        if keeper.startswith("its"):
            scene.state.saw_conversion(name, 1)
            assert heard == [False]
        assert scene.controller.trusted(CERTIFICATE) is (keeper == "nobody")

    scene.play(story)


@pytest.mark.parametrize("behind", [False, True])
def test_the_crd_is_changed_once_the_webhook_answers_by_these_rules(scene: Scene, behind: bool) -> None:
    scene.behind, scene.silence = behind, "" if behind else "refused"

    async def story(scene: Scene) -> None:
        await asyncio.sleep(10.0)
        assert scene.condition("Serving")[1] == ("RulesOnTheirWay" if behind else "WebhookUnreachable")
        assert status_of(scene.api.objects[CONVERSION]) == "InProgress"
        assert scene.strategy == "None"
        scene.behind, scene.silence = False, ""
        await asyncio.sleep(5.0)
        assert scene.condition() == CONVERTING

    scene.play(story)


def test_another_webhook_is_replaced_on_request_only(scene: Scene) -> None:
    scene.api.objects[CRD] = definition(conversion=OTHER)

    async def story(scene: Scene) -> None:
        await asyncio.sleep(10.0)
        assert scene.condition() == ("False", "OtherWebhook")
        assert scene.api.objects[CRD]["spec"]["conversion"] == OTHER
        assert scene.condition("InUse") == ("False", "NotConfigured")
        scene.apply(replaceWebhook=True)
        await asyncio.sleep(5.0)
        assert scene.condition() == CONVERTING

    scene.play(story)


@pytest.mark.parametrize("stopped_by", ["OtherWebhook", "WebhookUnreachable"])
def test_what_is_up_to_others_is_looked_at_less_and_less(scene: Scene, stopped_by: str) -> None:
    if stopped_by == "OtherWebhook":
        scene.api.objects[CRD] = definition(conversion=OTHER)
    else:
        scene.silence = "refused"
    passes = 0

    def answers(method: str, path: str) -> None:
        nonlocal passes
        passes += (method, path) == ("GET", BUNDLE)

    scene.api.answers = answers

    async def looks(seconds: float) -> int:
        nonlocal passes
        passes = 0
        await asyncio.sleep(seconds)
        return passes

    async def story(scene: Scene) -> None:
        assert await looks(8.0) >= 4
        assert scene.condition() == ("False", stopped_by)
        await asyncio.sleep(600.0)
        assert 9 <= await looks(300.0) <= 11
        # A change is news at once, and from then on something may be in progress again.
        if stopped_by == "OtherWebhook":
            scene.api.objects[CRD]["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] = (
                "third"
            )
            scene.api.touch(scene.api.objects[CRD])
            scene.see_definition()
        else:
            scene.apply(SLASHED)
        assert await looks(8.0) >= 4
        if stopped_by == "WebhookUnreachable":
            scene.silence = ""
            await asyncio.sleep(4.0)
            assert scene.condition() == CONVERTING

    scene.play(story)


def test_what_others_take_away_is_put_back(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        crd = scene.api.objects[CRD]
        crd["spec"]["conversion"] = {"strategy": "None"}
        del scene.api.objects[BUNDLE]
        scene.api.touch(crd)
        scene.see_definition()
        await asyncio.sleep(5.0)
        assert (scene.condition(), scene.strategy) == (CONVERTING, "Webhook")
        assert BUNDLE in scene.api.objects

    scene.play(story)


@pytest.mark.parametrize("code", [409, 500, 503])
def test_what_the_api_server_cannot_do_just_now_is_tried_again(scene: Scene, code: int) -> None:
    failures = 3

    def answers(method: str, path: str) -> None:
        nonlocal failures
        if (method, path) == ("PATCH", CRD) and failures:
            failures -= 1
            raise ApiError(code, {"message": "not now"})

    scene.api.answers = answers

    async def story(scene: Scene) -> None:
        await asyncio.sleep(30.0)
        assert (scene.condition(), failures) == (CONVERTING, 0)

    scene.play(story)
