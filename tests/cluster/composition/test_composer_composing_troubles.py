"""Composites whose objects cannot be as the Composition says, or only after somebody has done something."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.composition.authoring import CRDS, Author, Definition
from tests.cluster.composition.composing import (
    CONFIG_MAPS,
    Composing,
    all_of,
    config_map,
    rights_on,
    secret,
)
from tests.cluster.harness import eventually

Json = Any
SECRETS = "/api/v1/namespaces/default/secrets"
pytestmark = pytest.mark.composes()


@pytest.fixture
async def composing(composing: Composing, group: str) -> AsyncIterator[Composing]:
    """A user of a composite API whose composites the composer may read and write, but nothing else."""
    yield composing
    # What has objects goes only while the composer may delete them.
    async with rights_on(composing.author, f"clean-{group}", all_of("", "configmaps", "secrets")):
        await composing.clean_up()


async def test_a_missing_right_is_told_with_the_rule_and_granted(composing: Composing, group: str) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    rule = '{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}'
    await composing.says("orders", "Synced", "False", "RightMissing", rule, "aggregate-to-composer")
    async with rights_on(composing.author, f"more-{group}", all_of("", "configmaps")):
        await composing.ready("orders")
        await composing.has("orders-settings", engine="MySQL")


async def test_what_cannot_be_watched_is_told_and_looked_at_nevertheless(
    composing: Composing, group: str
) -> None:
    author, leases = composing.author, "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    template = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "${composite.metadata.name}"},
        "spec": {"holderIdentity": "${composite.spec.engine}"},
    }
    every = all_of("coordination.k8s.io", "leases")
    blind = {**every, "verbs": [each for each in every["verbs"] if each != "watch"]}
    async with rights_on(author, f"blind-{group}", blind):
        await composing.compose({"name": "lease", "template": template})
        await composing.create("orders")
        await composing.says("orders", "Synced", "False", "RightMissing", "leases", "watch")
        await composing.patch(f"{leases}/orders", {"spec": {"holderIdentity": "someone"}})

        async def put_back() -> bool:
            found = await author.get(f"{leases}/orders")
            return bool(found["spec"]["holderIdentity"] == "MySQL")

        await eventually(put_back)
        await composing.says("orders", "Synced", "False", "RightMissing")
        async with rights_on(author, f"seeing-{group}", every):
            await composing.says("orders", "Synced", "True", "ReconcileSuccess")
        await composing.delete("orders")
        await author.gone(composing.path("orders"))


async def test_a_kind_that_is_missing_holds_only_its_own(composing: Composing, group: str) -> None:
    author, later = composing.author, f"later.{group}"
    thing = {
        "name": "thing",
        "template": {
            "apiVersion": f"{later}/v1",
            "kind": "Later",
            "metadata": {"name": "${composite.metadata.name}"},
        },
    }
    async with rights_on(author, f"more-{group}", all_of("", "configmaps"), all_of(later)):
        await composing.designer.put(
            "main", thing, config_map("settings"), config_map("last", of="${thing.metadata.uid}")
        )
        await composing.designer.until("main", [1].__eq__)
        await composing.create("orders")
        await composing.says("orders", "Synced", "False", "KindMissing", "Later")
        await composing.has("orders-settings")
        assert await composing.data("orders-last") is None
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"laters.{later}"},
            "spec": {
                "group": later,
                "scope": "Namespaced",
                "names": {"kind": "Later", "plural": "laters"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
        await author.put(f"{CRDS}/laters.{later}", crd)
        await composing.ready("orders")
        assert await composing.data("orders-last")
        # A kind that is gone again holds up no deletion.
        await author.delete(f"{CRDS}/laters.{later}")
        await author.gone(f"{CRDS}/laters.{later}")
        await composing.delete("orders")
        await author.gone(composing.path("orders"))
        await composing.gone("orders-settings")


async def test_a_typo_in_the_group_of_a_template_deletes_nothing(composing: Composing, group: str) -> None:
    typo = config_map("db")
    typo["template"]["apiVersion"] = f"typo.{group}/v1"
    async with rights_on(composing.author, f"more-{group}", all_of("", "configmaps")):
        await composing.compose(config_map("db"), config_map("old"))
        await composing.create("orders")
        await composing.ready("orders")
        before = await composing.author.get(f"{CONFIG_MAPS}/orders-db")
        await composing.designer.put("main", typo)
        await composing.designer.until("main", [1, 2].__eq__)
        await composing.says("orders", "Synced", "False", "KindMissing", f"typo.{group}")
        await composing.gone("orders-old")
        assert await composing.author.get(f"{CONFIG_MAPS}/orders-db") == before
        await composing.compose(config_map("db"), number=3)
        await composing.ready("orders")
        after = await composing.author.get(f"{CONFIG_MAPS}/orders-db")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def replaced(composing: Composing, path: str, uid: str) -> None:
    """Wait until there is another object than the one with this uid."""

    async def is_another() -> bool:
        found = await composing.author.get(path)
        return found is not None and found["metadata"]["uid"] != uid

    await eventually(is_another)


async def test_an_immutable_field_is_refused_in_the_servers_words_or_leads_to_another_object(
    composing: Composing, group: str
) -> None:
    async with rights_on(composing.author, f"more-{group}", all_of("", "secrets")):
        await composing.compose(secret())
        await composing.create("orders")
        await composing.ready("orders")
        before = (await composing.author.get(f"{SECRETS}/orders"))["metadata"]["uid"]
        await composing.create("orders", engine="Postgres")
        await composing.says("orders", "Synced", "False", "Refused", "Secret default/orders", "immutable")
        assert (await composing.author.get(f"{SECRETS}/orders"))["metadata"]["uid"] == before
        await composing.compose(secret(recreate=True), number=2)
        await replaced(composing, f"{SECRETS}/orders", before)
        await composing.ready("orders")
        await composing.delete("orders")
        await composing.author.gone(composing.path("orders"))


async def test_nothing_is_deleted_to_be_created_again_that_would_be_refused(
    composing: Composing, group: str
) -> None:
    def resources(**data: str) -> list[Json]:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "${composite.metadata.name}"},
            "immutable": True,
            "stringData": data,
        }
        settings = config_map("settings", Recreate=True, **data)
        return [{"name": "password", "template": secret, "recreate": True}, settings]

    async with rights_on(composing.author, f"more-{group}", all_of("", "configmaps", "secrets")):
        await composing.compose(*resources(a="x"))
        await composing.create("immutable")
        await composing.ready("immutable")
        paths = [f"{SECRETS}/immutable", f"{CONFIG_MAPS}/immutable-settings"]
        before = [await composing.author.get(each) for each in paths]
        # The Secret could change neither so nor otherwise; of the ConfigMap only the name is immutable.
        await composing.compose(*resources(**{"a": "x", "not valid": "y"}), number=2)
        await composing.says("immutable", "Synced", "False", "Refused", "not valid", "1 other resource")
        assert [await composing.author.get(each) for each in paths] == before
        await composing.compose(*resources(a="y"), number=3)
        await replaced(composing, paths[0], before[0]["metadata"]["uid"])
        await composing.has("immutable-settings", a="y")
        await composing.ready("immutable")
        uids = [(await composing.author.get(each))["metadata"]["uid"] for each in paths]
        assert [uid == was["metadata"]["uid"] for uid, was in zip(uids, before, strict=True)] == [False, True]
        await composing.delete("immutable")
        await composing.author.gone(composing.path("immutable"))


async def test_manual_is_pinned_and_several_compositions_are_no_dice(
    composing: Composing, group: str
) -> None:
    async with rights_on(composing.author, f"more-{group}", all_of("", "configmaps")):
        await composing.compose(config_map("settings", version="1"))
        await composing.create("orders", crdkeeper={"compositionUpdatePolicy": "Manual"})
        await composing.create("bills")
        await composing.has("orders-settings", version="1")
        await composing.compose(config_map("settings", version="2"), number=2)
        await composing.has("bills-settings", version="2")
        await composing.has("orders-settings", version="1")
        found = await composing.author.get(composing.path("orders"))
        name = composing.designer.name("main")
        assert found["spec"]["crdkeeper"]["compositionRevisionRef"] == {"name": f"{name}-1"}
        await composing.compose(config_map("other"), which="second")
        await composing.says("bills", "Synced", "False", "NoRevision", "2 Compositions could be used")
        await composing.has("bills-settings", version="2")
        await composing.create("bills", crdkeeper={"compositionRef": {"name": name}})
        await composing.ready("bills")


async def test_what_is_read_of_others_and_what_cannot_be_composed(composing: Composing, group: str) -> None:
    zones = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"zones-{composing.designer.name('x')}"}
    external = {"name": "zones", "externalRef": zones}
    async with rights_on(composing.author, f"more-{group}", all_of("", "configmaps")):
        await composing.compose(external, config_map("settings", zone="${zones.data.zone}"))
        await composing.create("orders")
        await composing.says(
            "orders", "Ready", "False", "Creating", f"zones: waits for ConfigMap default/{zones['name']}"
        )
        path = f"{CONFIG_MAPS}/{zones['name']}"
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": zones["name"]},
            "data": {"zone": "a"},
        }
        await composing.author.put(path, made)
        await composing.ready("orders")
        await composing.has("orders-settings", zone="a")
        await composing.author.delete(path)


async def said_of(author: Author, definition: Definition) -> list[str]:
    """The notes of Events about a definition, that its composites cannot be composed."""
    query = f"fieldSelector=regarding.name%3D{definition.name},reason%3DCompositesNotComposed"
    found = await author.get(f"/apis/events.k8s.io/v1/namespaces/default/events?{query}")
    return [each["note"] for each in found["items"]]


async def test_composites_that_cannot_say_it_are_spoken_for_once(author: Author, group: str) -> None:
    composing = Composing(author, group)
    await composing.define()
    await composing.compose(config_map("settings"))
    for each in ("a", "b", "c"):
        await composing.create(each)

    async def told() -> bool:
        return bool(await said_of(author, composing.definition))

    await eventually(told)
    (note,) = await said_of(author, composing.definition)
    rule = "resources: [things, things/status], verbs: [get, list, watch, patch]"
    assert "aggregate-to-composer" in note and f"{{apiGroups: [{group}], {rule}}}" in note
    async with rights_on(author, f"more-{group}", all_of(group), all_of("", "configmaps")):
        for each in ("a", "b", "c"):
            await composing.ready(each)
        await composing.clean_up()
    assert await said_of(author, composing.definition) == [note]
