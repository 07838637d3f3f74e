"""Rules convert real CRDs on the real API server: each object comes back unchanged at its own version.

CRDKEEPER_CORPUS names the directory of CRDs. CRDKEEPER_CONVERSIONS sets how many objects of each version are
generated, CRDKEEPER_LISTED how long the list is.
"""

import asyncio
import copy
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from functools import partial

import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.conversion.corpus import (
    CORPUS,
    RULES,
    CorpusWebhook,
    Json,
    Objects,
    Pair,
    content,
    in_parallel,
    watching,
)
from tests.cluster.conversion.realistic import REALISTIC
from tests.cluster.harness.waiting import eventually
from tests.controlplane.cluster import Cluster

pytestmark = pytest.mark.skipif(not CORPUS, reason="CRDKEEPER_CORPUS names no folder of CRDs")
COUNT = int(os.environ.get("CRDKEEPER_CONVERSIONS", "10"))
LISTED = int(os.environ.get("CRDKEEPER_LISTED", "500"))
GROUP = "corpus-conversion.example.com"


@pytest.fixture(scope="module")
def pairs() -> dict[str, Pair]:
    return {each.stem: Pair(each, f"{each.stem}.{GROUP}") for each in RULES}


@pytest.fixture(scope="module")
def webhook(pairs: dict[str, Pair], tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorpusWebhook]:
    webhook = CorpusWebhook(tmp_path_factory.mktemp("corpus"), pairs.values())
    try:
        webhook.start()
        yield webhook
    finally:
        webhook.close()


@pytest.fixture
async def client(plane: Cluster) -> AsyncIterator[Client]:
    async with Client(Connection(plane.kubeconfig)) as client:
        yield client


@pytest.fixture
async def objects(
    request: pytest.FixtureRequest, client: Client, pairs: dict[str, Pair], webhook: CorpusWebhook
) -> AsyncIterator[Objects]:
    objects = Objects(client, pairs[request.param], webhook)
    await objects.store(objects.pair.hub)
    yield objects
    await objects.remove()


every_pair = pytest.mark.parametrize("objects", [each.stem for each in RULES], indirect=True)
one_pair = pytest.mark.parametrize("objects", ["machinehealthchecks"], indirect=True)


@every_pair
async def test_every_object_is_served_at_every_version_and_comes_back(objects: Objects) -> None:
    pair = objects.pair
    values = [each for version in pair.versions for each in pair.generated(version, COUNT)]
    assert len(values) > COUNT * len(pair.versions) // 2
    made = await in_parallel(partial(objects.create, each) for each in values)
    refused = sum(await in_parallel(partial(_travel, objects, each) for each in made))
    print(f"{pair.name}: {len(made)} objects, {refused} writes refused at another version")


async def _travel(objects: Objects, value: Json) -> int:
    """Read at each other version, write back, and edit there; returns how many writes were rejected."""
    own, name = value["apiVersion"].rpartition("/")[2], value["metadata"]["name"]
    refused = 0
    assert content(await objects.get(own, name)) == content(value)
    for other in objects.pair.versions:
        if other == own:
            continue
        there = await objects.get(other, name)
        assert content(there) == content(objects.pair.conversion.convert(value, other))
        # An object may be valid at one version and not at the other: required fields differ.
        for status in (False, True):
            written = await accepted(objects.put(there, status=status and "status" in there))
            refused += written is None
            there = written or there
        label: Json = {"metadata": {"labels": {other: "was-here"}}}
        edited = await accepted(objects.patch(other, name, label))
        refused += edited is None
        home = content(await objects.get(own, name))
        labels = {**value["metadata"].get("labels", {}), **(label["metadata"]["labels"] if edited else {})}
        assert home == {**content(value), **({"labels": labels} if labels else {})}
        label["metadata"]["labels"][other] = None
        await accepted(objects.patch(other, name, label))
    return refused


@every_pair
async def test_what_users_write_is_what_the_new_version_shows(objects: Objects) -> None:
    old, new = REALISTIC[objects.pair.plural]
    made = await objects.create(objects.pair.object("v1beta1", "old", {"spec": old}))
    assert (await objects.get("v1beta2", "old"))["spec"] == new
    await objects.create(objects.pair.object("v1beta2", "new", {"spec": new}))
    # What nobody wrote at the old version is generated from the new one, and must read the same there.
    await objects.put(await objects.get("v1beta1", "new"))
    assert (await objects.get("v1beta2", "new"))["spec"] == new
    assert content(await objects.get("v1beta1", "old")) == content(made)


@one_pair
async def test_edits_at_the_new_version_keep_what_only_the_old_one_has(objects: Objects) -> None:
    old, _ = REALISTIC["machinehealthchecks"]
    await objects.create(objects.pair.object("v1beta1", "mine", {"spec": old}))
    value = await objects.get("v1beta2", "mine")
    value["spec"]["checks"]["unhealthyNodeConditions"][0]["timeoutSeconds"] = 90
    value["spec"]["remediation"]["templateRef"]["name"] = "power-off"
    await objects.put(value)
    wanted = copy.deepcopy(old)
    wanted["unhealthyConditions"][0]["timeout"] = "1m30s"
    wanted["remediationTemplate"]["name"] = "power-off"
    assert (await objects.get("v1beta1", "mine"))["spec"] == wanted


@one_pair
async def test_server_side_apply_at_two_versions(objects: Objects) -> None:
    old, new = REALISTIC["machinehealthchecks"]
    pair = objects.pair

    async def apply(version: str, spec: Json, manager: str) -> Json:
        path = f"{pair.path(version, 'mine')}?fieldManager={manager}&force=true"
        body = pair.object(version, "mine", {"spec": spec})
        return await objects.client.request("PATCH", path, body, content_type=APPLY_PATCH)

    await apply("v1beta1", old, "old")
    required = {"clusterName": "prod", "selector": old["selector"]}
    made = await apply("v1beta2", {**required, "checks": {"nodeStartupTimeoutSeconds": 1200}}, "new")
    assert made["spec"] == {**new, "checks": {**new["checks"], "nodeStartupTimeoutSeconds": 1200}}
    assert (await objects.get("v1beta1", "mine"))["spec"] == {**old, "nodeStartupTimeout": "20m0s"}
    # What an applier no longer names is removed, even if another version was applied in between.
    left = {key: each for key, each in old.items() if key != "maxUnhealthy"}
    await apply("v1beta1", {**left, "nodeStartupTimeout": "20m0s"}, "old")
    assert "triggerIf" not in (await objects.get("v1beta2", "mine"))["spec"]["remediation"]


@one_pair
async def test_a_watch_at_each_version_shows_its_own_form(objects: Objects) -> None:
    old, new = REALISTIC["machinehealthchecks"]
    pair = objects.pair
    begin = {each: (await objects.list(each))["metadata"]["resourceVersion"] for each in pair.versions}
    async with (
        watching(objects.client, pair.path("v1beta1"), begin["v1beta1"]) as at_old,
        watching(objects.client, pair.path("v1beta2"), begin["v1beta2"]) as at_new,
    ):
        await objects.create(pair.object("v1beta1", "mine", {"spec": old}))
        await objects.patch("v1beta2", "mine", {"spec": {"checks": {"nodeStartupTimeoutSeconds": 60}}})
        await objects.client.request("DELETE", pair.path("v1beta1", "mine"))
        changed = {**new, "checks": {**new["checks"], "nodeStartupTimeoutSeconds": 60}}
        for events, first, second in (
            (at_old, old, {**old, "nodeStartupTimeout": "1m0s"}),
            (at_new, new, changed),
        ):
            found = [await asyncio.wait_for(events.get(), 30) for _ in range(3)]
            assert [each["type"] for each in found] == ["ADDED", "MODIFIED", "DELETED"]
            assert [each["object"]["spec"] for each in found] == [first, second, second]


@one_pair
async def test_a_list_of_many(objects: Objects) -> None:
    old, new = REALISTIC["machinehealthchecks"]
    pair = objects.pair

    async def create(i: int) -> Json:
        spec = {**old, "nodeStartupTimeout": f"{i + 60}s"}
        return await objects.client.request(
            "POST", pair.path("v1beta1"), pair.object("v1beta1", f"many-{i:05}", {"spec": spec})
        )

    await in_parallel(partial(create, i) for i in range(LISTED))
    listed = (await objects.list("v1beta2"))["items"]
    checks = [{**new["checks"], "nodeStartupTimeoutSeconds": i + 60} for i in range(LISTED)]
    assert [each["spec"] for each in listed] == [{**new, "checks": each} for each in checks]
    listed = (await objects.list("v1beta1"))["items"]
    assert [each["spec"]["nodeStartupTimeout"] for each in listed] == [f"{i + 60}s" for i in range(LISTED)]


@pytest.mark.parametrize("objects", ["ipaddressclaims", "machinehealthchecks"], indirect=True)
async def test_a_storage_migration_moves_everything_and_loses_nothing(
    objects: Objects, plane: Cluster
) -> None:
    pair, etcd = objects.pair, plane.etcd
    await objects.store("v1beta1")
    values = [
        each
        for version in pair.versions
        for each in pair.generated(version, 4 * COUNT)
        if pair.may_be_stored(each, pair.hub)
    ]
    assert len(values) > COUNT
    stored = f"{pair.group}/v1beta1"

    async def old_storage() -> bool:
        """Whether the API server uses the storage version: the first object shows it."""
        name = values[0]["metadata"]["name"]
        await objects.client.send("DELETE", pair.path("v1beta1", name))
        made.append(await objects.create(values[0]))
        return set(etcd.stored_versions(pair.group, pair.plural)) == {stored}

    made: list[Json] = []
    await eventually(old_storage)
    made = [made[-1], *await in_parallel(partial(objects.create, each) for each in values[1:])]
    assert etcd.stored_versions(pair.group, pair.plural) == {stored: len(values)}
    await objects.store(pair.hub)
    command = [sys.executable, "-m", "crdkeeper", "migrate", pair.name, "--settle-seconds=2"]
    done = await asyncio.to_thread(
        subprocess.run,
        [*command, "--ignore-api-server-leases", f"--kubeconfig={plane.kubeconfig}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert etcd.stored_versions(pair.group, pair.plural) == {f"{pair.group}/{pair.hub}": len(values)}
    for each in made:
        version, name = each["apiVersion"].rpartition("/")[2], each["metadata"]["name"]
        assert content(await objects.get(version, name)) == content(each)


async def accepted(request: Awaitable[Json]) -> Json | None:
    """The answer; None if the server considers the object invalid."""
    try:
        return await request
    except ApiError as error:
        if error.code != 422:
            raise
    return None
