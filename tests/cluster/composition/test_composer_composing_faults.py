"""Composites in clusters that change: versions, kinds and revisions that go, composers that restart."""

from typing import Any

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.authoring import CRDS
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, secret
from tests.cluster.composition.designing import REVISIONS
from tests.cluster.harness import Operator, eventually

Json = Any
SECRETS = "/api/v1/namespaces/default/secrets"
pytestmark = pytest.mark.composes("configmaps", "secrets", "*.later.{group}")
HELD: Json = {"metadata": {"finalizers": ["example.com/held"]}}
FREE: Json = {"metadata": {"finalizers": None}}


async def test_objects_at_a_version_that_is_not_served_any_more_are_waited_for(
    composing: Composing, group: str
) -> None:
    author, later = composing.author, f"later.{group}"
    path = f"{CRDS}/laters.{later}"
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    def crd(old_is_served: bool) -> Json:
        versions = [
            {"name": name, "served": served, "storage": name == "v1", "schema": {"openAPIV3Schema": open_}}
            for name, served in (("v1beta1", old_is_served), ("v1", True))
        ]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"laters.{later}"},
            "spec": {
                "group": later,
                "scope": "Namespaced",
                "names": {"kind": "Later", "plural": "laters"},
                "versions": versions,
            },
        }

    await author.put(path, crd(old_is_served=True))
    metadata = {"name": "${composite.metadata.name}"}
    thing = {
        "name": "thing",
        "template": {"apiVersion": f"{later}/v1beta1", "kind": "Later", "metadata": metadata},
    }
    await composing.designer.put("main", thing)
    await composing.create("orders")
    await composing.ready("orders")
    made = f"/apis/{later}/v1/namespaces/default/laters/orders"
    await composing.patch(made, HELD)
    await author.put(path, crd(old_is_served=False))

    async def unserved() -> bool:
        return await author.get(f"/apis/{later}/v1beta1") is None

    await eventually(unserved)
    await composing.delete("orders")
    await composing.says("orders", "Ready", "False", "Deleting", "example.com/held")
    await composing.patch(made, FREE)
    await author.gone(composing.path("orders"))
    assert await author.get(made) is None
    await author.delete(path)


async def test_a_lost_status_and_a_revision_that_cannot_be_used(composing: Composing) -> None:
    await composing.compose(config_map("a"), config_map("b", of="${a.metadata.name}"))
    # One that no composite names would go with its Composition.
    second = f"{composing.designer.name('main')}-2"
    await composing.create("orders", crdkeeper={"compositionRevisionRef": {"name": second}})
    await composing.ready("orders")
    await composing.patch(f"{CONFIG_MAPS}/orders-b", HELD)
    # As long as it exists, its own content would come again as the newest revision.
    await composing.designer.delete("main")
    first = f"{REVISIONS}/{composing.designer.name('main')}-1"
    unusable = await composing.author.get(first)
    unusable["metadata"] = {"name": second}
    unusable["spec"] |= {"revision": 2, "resources": [config_map("a", of="${nothing.metadata.name}")]}
    await composing.author.client.request("POST", REVISIONS, unusable)
    await composing.says("orders", "Synced", "False", "RevisionUnusable")
    await composing.author.delete(first)
    lost: Json = {"status": {"crdkeeper": {"resources": []}}}
    path = f"{composing.path('orders')}/status?fieldManager=tenant"
    await composing.author.client.request("PATCH", path, lost, content_type=MERGE_PATCH)
    await composing.delete("orders")
    await composing.says("orders", "Ready", "False", "Deleting", "orders-b")
    await composing.patch(f"{CONFIG_MAPS}/orders-b", FREE)
    await composing.author.gone(composing.path("orders"))


async def test_what_waits_for_a_finalizer_is_seen_also_by_a_composer_that_does_not_watch_its_kind(
    composing: Composing, composer: Operator
) -> None:
    await composing.compose(config_map("old"), secret())
    await composing.create("orders")
    await composing.ready("orders")
    await composing.patch(f"{CONFIG_MAPS}/orders-old", HELD)
    await composing.compose(secret(), number=2)
    await composing.says("orders", "Synced", "True", "ReconcileSuccess", "orders-old")
    composer.kill()
    composer.start()
    await composing.patch(f"{CONFIG_MAPS}/orders-old", FREE)

    def only_the_secret(found: Json) -> bool:
        listed = found["status"]["crdkeeper"]["resources"]
        return [each["name"] for each in listed] == ["password"]

    await composing.until("orders", only_the_secret)


async def test_an_object_that_is_adopted_is_never_recreated(composing: Composing) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "orders"},
        "immutable": True,
        "data": {"theirs": "eA=="},
    }
    await composing.author.put(f"{SECRETS}/orders", theirs)
    before = await composing.author.get(f"{SECRETS}/orders")
    await composing.compose(secret(recreate=True))
    await composing.create("orders", metadata={"annotations": {"crdkeeper.dev/adopt": "password"}})
    await composing.says("orders", "Synced", "False", "Refused", "Secret default/orders")
    assert await composing.author.get(f"{SECRETS}/orders") == before
    await composing.author.delete(f"{SECRETS}/orders")


async def test_a_composition_for_a_version_that_is_not_served_any_more(
    composing: Composing, composer: Operator
) -> None:
    await composing.compose(config_map("a"), config_map("b", of="${a.metadata.name}"))
    await composing.create("orders")
    await composing.ready("orders")
    await composing.patch(f"{CONFIG_MAPS}/orders-b", HELD)
    document = (await composing.author.get(composing.definition.path))["spec"]["versions"][0]
    second = {**document, "name": "v2"}
    first = {**document, "referenceable": False}
    await composing.author.apply(composing.definition, versions=[first, second], breakingChanges="Allow")
    await composing.author.ready(composing.definition)
    unserved = {**first, "served": False, "deprecated": True}
    await composing.author.apply(composing.definition, versions=[unserved, second], breakingChanges="Allow")
    path = composing.path("orders").replace("/v1/", "/v2/")

    async def moved() -> bool:
        gone = await composing.author.get(composing.path("orders")) is None
        return gone and await composing.author.get(path) is not None

    await eventually(moved)
    composer.kill()
    composer.start()
    await composing.author.delete(path)

    async def told() -> bool:
        found = await composing.author.get(path)
        assert found is not None, "it goes only after its objects"
        return any("orders-b" in each["message"] for each in found["status"]["conditions"])

    await eventually(told)
    await composing.patch(f"{CONFIG_MAPS}/orders-b", FREE)
    await composing.author.gone(path)
    assert await composing.data("orders-a") is None
