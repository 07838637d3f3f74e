"""With every confinement of the manifests in force at once, the operator still migrates and releases."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import yaml

from crdkeeper.cluster.transport.client import MERGE_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    confine,
    held_objects,
    let_release,
    policy,
    policy_with,
    rule,
    until_finalizers,
    write,
)
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admission import BINDINGS, POLICIES
from tests.cluster.harness.installation import MANIFESTS

COLLECTIONS = {"ValidatingAdmissionPolicy": POLICIES, "ValidatingAdmissionPolicyBinding": BINDINGS}


@pytest.fixture
async def everything(admin: Admin) -> AsyncIterator[list[str]]:
    """All admission policies and bindings of the manifests; those that were not installed go at the end."""
    new, names = [], []
    for file in sorted(MANIFESTS.rglob("*.yaml")):
        if file.parent.name == "samples":
            continue
        for body in yaml.safe_load_all(file.read_text()):
            if not body or body["kind"] not in COLLECTIONS:
                continue
            path = f"{COLLECTIONS[body['kind']]}/{body['metadata']['name']}"
            if await admin.find(path) is None:
                new.append(path)
                await admin.apply(path, body)
            names.append(path.rpartition("/")[2])
    yield names
    for path in reversed(new):
        await admin.delete(path)


def entries_of(metadata: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (each["manager"], each["operation"], each["apiVersion"].rpartition("/")[2])
        for each in metadata["managedFields"]
    }


async def test_it_migrates_and_releases(
    admin: Admin, operator: Operator, everything: list[str], group: str
) -> None:
    assert {"crdkeeper-operator-confinement", "crdkeeper-releaser-confinement"} < set(everything)
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        bodies = [kind.instance(name) for name in ("going", "staying")]
        for body in bodies:
            body["metadata"]["finalizers"] = [NAMED, OTHER]
        await admin.create_instances(kind, bodies)
        await write(admin, kind, "going", "other", "1")
        await admin.delete_objects(kind, ["going"])
        flipped = kind.storing("v2")
        await admin.apply_definition(flipped)
        await admin.opt_in(group)
        await let_release(admin, group)
        await until_confined(admin, flipped)
        assert admin.stored(kind) == {"v1": 2}

        await admin.migrate(group, flipped, managedFields="Retarget")

        assert admin.stored(kind) == {"v2": 2}
        definition = admin.etcd.get(kind.definition_key)
        assert definition is not None
        assert definition["status"]["storedVersions"] == ["v2"]
        stored = {name: admin.etcd.get(kind.etcd_key(name)) for name in ("going", "staying")}
        going, staying = (each["metadata"] for each in stored.values() if each is not None)
        assert entries_of(going) == {("admin", "Apply", "v2"), ("other", "Update", "v2")}
        assert entries_of(staying) == {("admin", "Apply", "v2")}
        assert going["finalizers"] == staying["finalizers"] == [NAMED, OTHER]

        await policy(admin, group, rule())
        await until_finalizers(admin, flipped, {"going": [OTHER], "staying": [NAMED, OTHER]})
        await policy_with(admin, group, "NothingHeld")
        released = admin.etcd.get(kind.etcd_key("going"))
        assert released is not None
        assert released["metadata"]["finalizers"] == [OTHER]
        assert entries_of(released["metadata"]) == entries_of(going)


async def until_confined(admin: Admin, kind: CustomKind) -> None:
    """Binds the confinement to the kind, and returns when the operator's account is refused a change."""
    await confine(admin, kind.group)
    kubeconfig = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    path, change = f"{kind.path('staying')}?dryRun=All", orjson.dumps({"spec": {"note": "x"}})
    async with Client(Connection(kubeconfig)) as account:

        async def refused() -> bool:
            answer = await account.send("PATCH", path, content=change, content_type=MERGE_PATCH)
            return b"writes nothing of these objects but metadata.finalizers" in answer.content

        await eventually(refused, otherwise=lambda: "the account is not confined")
