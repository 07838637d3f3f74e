"""What the composer notices by itself: drift, composites that come and go, names, rights and Compositions."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from tests.cluster.composition.composerscene import (
    CRDS,
    NAME,
    OBJECTS,
    PATH,
    ROLES,
    apply,
    conditions,
    database,
    delete,
    get,
    gone,
    grant,
    has,
    ready,
    until,
)
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster
from tests.kstatus import status_of
from tests.unit.core.composition.documents import document, version

Json = Any
CONVERSIONS = "/apis/crdkeeper.dev/v1alpha1/versionconversions"
REST_SECONDS = 4.0
RULES: Json = {
    "apiVersion": "crdkeeper.dev/v1alpha1",
    "kind": "VersionConversion",
    "metadata": {"name": NAME},
    "spec": {
        "resource": {"group": "platform.example.com", "resource": "databases"},
        "hub": "v1",
        "spokes": [{"version": "v2"}],
    },
}
CONVERTER: Json = {
    "metadata": {
        "name": "composer-converts",
        "labels": {"rbac.crdkeeper.dev/aggregate-to-converter": "true"},
    },
    "rules": [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": [NAME],
            "verbs": ["patch"],
        }
    ],
}
READER: Json = {
    "metadata": {"name": "composer-reads", "labels": {"rbac.crdkeeper.dev/aggregate-to-reader": "true"}},
    "rules": [{"apiGroups": ["platform.example.com"], "resources": ["*"], "verbs": ["get", "list"]}],
}


@pytest.fixture
def keeper(composer: Operator, plane: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """The operator with its conversion webhook, beside the composer."""
    pod = WebhookPod(plane, tmp_path)
    operator = Operator(plane, flags={"webhook-url": pod.url})
    operator.start()
    pod.start()
    yield operator
    operator.close()
    pod.close()


def of_other(name: str, **names: Any) -> Json:
    """Somebody's CRD in the group of the definition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.platform.example.com"},
        "spec": {
            "group": "platform.example.com",
            "scope": "Namespaced",
            "names": {"kind": name.capitalize(), "plural": f"{name}s", **names},
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


async def versions(client: Client) -> tuple[str, str]:
    """The resourceVersions of the definition and of its CRD."""
    found, crd = await get(client, f"{PATH}/{NAME}"), await get(client, f"{CRDS}/{NAME}")
    return found["metadata"]["resourceVersion"], crd["metadata"]["resourceVersion"]


async def test_at_rest_nothing_is_written(client: Client, rights: None, composer: Operator) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    await asyncio.sleep(1.0)
    before, written = await versions(client), composer.metric("crdkeeper_composer_writes_total")
    # An event about the CRD that changes nothing of it makes the composer look again.
    marked = {"metadata": {"annotations": {"example.com/mark": "1"}}}
    await client.request("PATCH", f"{CRDS}/{NAME}", marked, content_type=MERGE_PATCH)
    marked_version = (await versions(client))[1]
    await asyncio.sleep(REST_SECONDS)
    assert await versions(client) == (before[0], marked_version)
    assert composer.metric("crdkeeper_composer_writes_total") == written
    await delete(client, f"{PATH}/{NAME}")


def two_versions(**names: Any) -> Json:
    """A definition whose versions are alike."""
    return document(
        version("v1"),
        version("v2", referenceable=False),
        names={"kind": "Database", "plural": "databases", **names},
    )


async def test_nobody_fights_about_the_conversion(client: Client, rights: None, keeper: Operator) -> None:
    await apply(client, two_versions())
    await ready(client, "True", "WatchingCompositeResource")
    for role in (CONVERTER, READER):
        await client.request("POST", ROLES, role)
    await client.request("POST", CONVERSIONS, RULES)

    async def converting() -> bool:
        crd = await get(client, f"{CRDS}/{NAME}")
        found = conditions(await get(client, f"{CONVERSIONS}/{NAME}")).get("Ready", {})
        strategy = crd["spec"]["conversion"]["strategy"]
        return bool(found.get("status") == "True" and strategy == "Webhook")

    await eventually(converting, seconds=60)
    conversion = (await get(client, f"{CRDS}/{NAME}"))["spec"]["conversion"]
    before = await versions(client)
    await asyncio.sleep(REST_SECONDS)
    assert await versions(client) == before
    # A change of the definition leaves it alone, too.
    await apply(client, two_versions(shortNames=["db"]))

    async def renamed() -> bool:
        return bool((await get(client, f"{CRDS}/{NAME}"))["spec"]["names"].get("shortNames") == ["db"])

    await eventually(renamed)
    assert (await get(client, f"{CRDS}/{NAME}"))["spec"]["conversion"] == conversion
    await delete(client, f"{PATH}/{NAME}")

    async def no_longer_in_use() -> bool:
        found = conditions(await get(client, f"{CONVERSIONS}/{NAME}"))
        return bool(found["InUse"]["reason"] == "NoDefinition")

    # Until the operator hears that the CRD is gone, a policy keeps the rules.
    await eventually(no_longer_in_use)
    await delete(client, f"{CONVERSIONS}/{NAME}")
    for role in (CONVERTER, READER):
        await client.request("DELETE", f"{ROLES}/{role['metadata']['name']}")


async def test_a_taken_name_is_said_with_its_owner(client: Client, rights: None) -> None:
    await client.request("POST", CRDS, of_other("cache", shortNames=["db"]))
    names = {"kind": "Database", "plural": "databases", "shortNames": ["db"]}
    await apply(client, document(names=names))
    found = await ready(client, "False", "ShortNamesConflict")
    said = conditions(found)["Established"]["message"]
    assert 'shortNames "db" is held by CRD caches.platform.example.com (as its short name)' in said
    assert status_of(found) == "Failed"
    await delete(client, f"{CRDS}/caches.platform.example.com")
    await ready(client, "True", "WatchingCompositeResource")
    await delete(client, f"{PATH}/{NAME}")


async def test_composites_are_counted_as_they_come_and_go(client: Client, rights: None) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    for number in range(7):
        await client.request("POST", OBJECTS, database(f"a-{number}"))
    await until(client, lambda found: found["status"]["composites"] == 7)
    await client.request("DELETE", f"{OBJECTS}/a-6")
    await until(client, lambda found: found["status"]["composites"] == 6)

    await client.request("DELETE", f"{PATH}/{NAME}")
    found = await ready(client, "False", "TerminatingCompositeResource")
    assert (
        "6 composites (default/a-0, default/a-1, default/a-2, default/a-3, default/a-4 and 1 more)"
        in (conditions(found)["Established"]["message"])
    )
    assert status_of(found) == "Terminating"
    for number in range(6):
        await client.request("DELETE", f"{OBJECTS}/a-{number}")
    await gone(client, f"{PATH}/{NAME}")
    await gone(client, f"{CRDS}/{NAME}")


async def test_rights_that_come_and_go(client: Client) -> None:
    await apply(client, document())
    found = await ready(client, "False", "RightMissing")
    said = conditions(found)["Established"]["message"]
    assert "{apiGroups: [platform.example.com], resources: [databases], verbs: [list, watch]}" in said
    await grant(client, "composer-lists", ["list"])

    def can_only_list(found: Json) -> bool:
        return "lacks rights on the composites (watch databases" in conditions(found)["Ready"]["message"]

    await until(client, can_only_list)
    await grant(client, "composer-watches", ["watch"])
    await ready(client, "True", "WatchingCompositeResource")
    for name in ("composer-lists", "composer-watches"):
        await client.request("DELETE", f"{ROLES}/{name}")
    await client.request("DELETE", f"{PATH}/{NAME}")
    await has(client, "Established", "False", "TerminatingCompositeResource")
    await grant(client, "composer-lists", ["list", "watch"])
    await gone(client, f"{PATH}/{NAME}")
    await client.request("DELETE", f"{ROLES}/composer-lists")


async def test_a_restart_writes_nothing(client: Client, rights: None, composer: Operator) -> None:
    await apply(client, document())
    await ready(client, "True", "WatchingCompositeResource")
    await client.request("POST", OBJECTS, database("a"))
    await until(client, lambda found: found["status"]["composites"] == 1)
    before = await versions(client)
    composer.stop()
    composer.start()

    async def counted() -> bool:
        return composer.metric("crdkeeper_composites", definition=NAME) == 1

    await eventually(counted)
    assert composer.metric("crdkeeper_composite_definition_conditions", condition="Ready", status="True") == 1
    assert composer.metric("crdkeeper_composer_writes_total") == 0
    assert await versions(client) == before
    await client.request("DELETE", f"{OBJECTS}/a")
    await delete(client, f"{PATH}/{NAME}")
