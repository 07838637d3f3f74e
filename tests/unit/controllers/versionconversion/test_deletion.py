"""What happens to a VersionConversion when it or its CRD is deleted, re-created, or belongs to others."""

import asyncio
import base64

import pytest

from crdkeeper.cluster.resources.versionconversions import BUNDLE_KEY, FINALIZER
from crdkeeper.cluster.transport.client import ApiError
from tests.kstatus import status_of
from tests.unit.controllers.versionconversion.scene import (
    BUNDLE,
    CONVERSION,
    CONVERTING,
    CRD,
    SLASHED,
    Scene,
    definition,
)


def test_a_crd_that_comes_later_goes_and_comes_again(scene: Scene) -> None:
    del scene.api.objects[CRD]

    async def story(scene: Scene) -> None:
        for _ in range(2):
            await asyncio.sleep(5.0)
            assert scene.condition() == ("False", "DefinitionNotFound")
            assert scene.condition("InUse") == ("False", "NoDefinition")
            assert status_of(scene.api.objects[CONVERSION]) == "InProgress"
            scene.api.objects[CRD] = definition()
            scene.see_definition()
            await asyncio.sleep(5.0)
            assert scene.condition() == CONVERTING
            scene.delete(CRD)

    scene.play(story)


# Deletion of the VersionConversion


def test_its_rules_serve_on_for_as_long_as_they_are_needed(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.see()
        scene.delete(CONVERSION)
        await asyncio.sleep(100.0)
        assert scene.strategy == "Webhook"
        assert BUNDLE in scene.api.objects
        assert scene.api.events.count("DeletedInUse") == 1
        assert scene.counted() == {("False", "DeletedInUse"): 1.0}
        scene.api.crontabs = []
        await asyncio.sleep(60.0)
        assert scene.strategy == "None"
        assert BUNDLE not in scene.api.objects
        assert scene.counted() == {}

    scene.play(story)


def test_the_webhook_keeps_the_rules_until_api_servers_know_that_they_are_not_needed(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.api.crontabs = []
        scene.delete(CONVERSION)
        await asyncio.sleep(5.0)
        assert scene.strategy == "None"
        assert BUNDLE in scene.api.objects
        await asyncio.sleep(20.0)
        assert BUNDLE not in scene.api.objects

    scene.play(story)


def test_a_new_one_takes_over_what_the_old_one_has_left(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.see()
        scene.delete(CONVERSION)
        await asyncio.sleep(5.0)
        assert scene.counted() == {("False", "DeletedInUse"): 1.0}
        scene.apply(SLASHED)
        await asyncio.sleep(5.0)
        assert scene.condition() == CONVERTING
        assert scene.counted() == {CONVERTING: 1.0}
        scene.delete(CONVERSION)
        await asyncio.sleep(5.0)
        assert scene.api.events.count("DeletedInUse") == 2
        scene.apply(SLASHED)
        scene.api.crontabs = []
        await asyncio.sleep(120.0)
        assert BUNDLE in scene.api.objects

    scene.play(story)


@pytest.mark.parametrize("first", [CRD, CONVERSION])
def test_both_are_deleted(scene: Scene, first: str) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.see()
        scene.delete(first)
        await asyncio.sleep(5.0)
        scene.delete(*{CRD, CONVERSION} - {first})
        await asyncio.sleep(60.0)
        assert not {CRD, CONVERSION, BUNDLE} & scene.api.objects.keys()
        assert scene.counted() == {}

    scene.play(story)


def test_who_deletes_the_crd_need_not_wait_to_delete_its_rules(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.see()
        assert scene.condition("InUse") == ("True", "Needed")
        scene.slow = 10.0
        scene.begin_deletion()
        await asyncio.sleep(1.0)
        assert scene.condition("InUse") == ("False", "DefinitionTerminating")
        scene.delete(CONVERSION)
        await asyncio.sleep(60.0)
        assert (scene.strategy, BUNDLE in scene.api.objects) == ("Webhook", True), "its objects are read"
        assert scene.counted() == {}
        assert "DeletedInUse" not in scene.api.events
        scene.delete(CRD)
        await asyncio.sleep(15.0)
        assert BUNDLE not in scene.api.objects

    scene.play(story)


def test_others_rules_at_our_webhook_are_not_touched(scene: Scene) -> None:
    """Someone points a CRD here without a VersionConversion."""

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        crd = scene.api.objects[CRD]
        crd["metadata"]["managedFields"] = []
        scene.api.crontabs = []
        scene.see()
        scene.delete(CONVERSION)
        await asyncio.sleep(120.0)
        assert scene.strategy == "Webhook"
        assert BUNDLE in scene.api.objects

    scene.play(story)


def test_the_finalizer_of_a_former_release_comes_off_and_the_bundle_stays(scene: Scene) -> None:
    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        metadata = scene.api.objects[CONVERSION]["metadata"]
        metadata |= {"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-02T03:04:05Z"}
        scene.api.objects[BUNDLE]["metadata"]["ownerReferences"] = [{"uid": "u2"}]
        before = scene.status
        scene.see()
        await asyncio.sleep(5.0)
        assert "finalizers" not in metadata
        assert scene.api.objects[BUNDLE]["metadata"]["ownerReferences"] is None
        assert scene.api.objects[BUNDLE]["binaryData"][BUNDLE_KEY]
        assert scene.status == before

    scene.play(story)


@pytest.mark.parametrize("code", [403, 409, 422])
def test_a_crd_that_cannot_be_released_is_tried_again(scene: Scene, code: int) -> None:
    def answers(method: str, path: str) -> None:
        if (method, path) == ("PATCH", CRD):
            raise ApiError(code, {"message": "no"})

    async def story(scene: Scene) -> None:
        await asyncio.sleep(5.0)
        scene.api.crontabs, scene.api.answers = [], answers
        scene.delete(CONVERSION)
        await asyncio.sleep(100.0)
        assert scene.strategy == "Webhook"
        assert base64.b64decode(scene.api.objects[BUNDLE]["binaryData"][BUNDLE_KEY])
        # A conflict is nobody's fault, and gone on the next attempt.
        assert scene.api.events.count("DeletedInUse") == (code != 409)
        scene.api.answers = lambda *_: None
        await asyncio.sleep(100.0)
        assert scene.strategy == "None"
        assert BUNDLE not in scene.api.objects

    scene.play(story)
