"""What the operator's account can write where it may release finalizers and is confined: only that."""

import copy
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.resources.finalizers import Freeing, release_finalizer
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Answer, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.finalizers.holding import held
from crdkeeper.core.migration.managedfields import retarget
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    confine,
    create_held,
    finalizers_of,
    held_objects,
    let_release,
    policy,
    policy_with,
    rule,
    until_finalizers,
    write,
)
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Admin, CustomKind, Operator, eventually
from tests.cluster.harness.customkind import SPEC

EVERYTHING = ("get", "list", "patch", "update", "create", "delete", "deletecollection")
JSON_PATCH = "application/json-patch+json"
ENTRIES = "/metadata/managedFields"
OURS = "crdkeeper.dev/served"
HELD = [NAMED, OTHER, "kubernetes", OURS]
OBJECT = "writes nothing of these objects but metadata.finalizers"
METADATA = "writes nothing of these objects' metadata but finalizers"
MOVED = "takes finalizers off objects in deletion, and adds or moves none"
SERVED = "releases no finalizer that Kubernetes or crdkeeper itself serves"
TAKEN = "takes nothing of other managers out of managedFields"
CHANGED = "changes nothing in managedFields but the version that entries name"
NEITHER = "neither creates nor deletes these objects"
RELEASE = {"op": "remove", "path": "/metadata/finalizers/0"}
OWNER = {"apiVersion": "v1", "kind": "Namespace", "name": "none", "uid": "none"}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


ATTACKS: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "spec": ("held", OBJECT, [add("/spec/engine", "mysql")]),
    "a field that was absent": ("held", OBJECT, [add("/spec/note", "x")]),
    "no spec": ("held", OBJECT, [{"op": "remove", "path": "/spec"}]),
    "beside a release": ("held", OBJECT, [RELEASE, add("/spec/engine", "mysql")]),
    "a label": ("held", METADATA, [add("/metadata/labels", {"a": "b"})]),
    "an annotation beside a release": ("held", METADATA, [RELEASE, add("/metadata/annotations", {"a": "b"})]),
    "an owner": ("held", METADATA, [add("/metadata/ownerReferences", [OWNER])]),
    "no annotations": ("noted", METADATA, [{"op": "remove", "path": "/metadata/annotations"}]),
    "another order": ("held", MOVED, [add("/metadata/finalizers", [OTHER, NAMED, "kubernetes", OURS])]),
    "twice": ("held", MOVED, [add("/metadata/finalizers", [*HELD, NAMED])]),
    "of Kubernetes": ("held", SERVED, [{"op": "remove", "path": "/metadata/finalizers/2"}]),
    "of ours": ("held", SERVED, [{"op": "remove", "path": "/metadata/finalizers/3"}]),
    "all at once": ("held", SERVED, [{"op": "remove", "path": "/metadata/finalizers"}]),
    "of an object that lives": ("alive", MOVED, [RELEASE]),
    "a new finalizer": ("alive", MOVED, [add("/metadata/finalizers/-", OTHER)]),
    "the first finalizer": ("free", MOVED, [add("/metadata/finalizers", [OTHER])]),
}


class Confined:
    """Objects of a kind, and the operator's account, which may do everything to them but is confined."""

    def __init__(self, admin: Admin, kind: CustomKind, account: Client) -> None:
        self.admin = admin
        self.kind = kind
        self.account = account

    async def patch(self, name: str, changes: list[dict[str, Any]], *, by: Client | None = None) -> Answer:
        """The answer to a JSON patch, as a dry run."""
        path = self.kind.path(name)
        return await self.send("PATCH", f"{path}?dryRun=All", changes, content_type=JSON_PATCH, by=by)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        by: Client | None = None,
    ) -> Answer:
        content = orjson.dumps(body) if body is not None else None
        return await (by or self.account).send(method, path, content=content, content_type=content_type)


@pytest.fixture
async def confined(admin: Admin, group: str) -> AsyncIterator[Confined]:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await create_held(admin, kind, ["held"], HELD)
        others = {name: kind.instance(name) for name in ("alive", "free", "noted")}
        others["alive"]["metadata"]["finalizers"] = [NAMED]
        others["noted"]["metadata"]["annotations"] = {"a": "b"}
        await admin.create_instances(kind, others.values())
        await let_release(admin, group, EVERYTHING)
        await confine(admin, group)
        kubeconfig = admin.cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
        async with Client(Connection(kubeconfig)) as account:
            found = Confined(admin, kind, account)

            async def in_force() -> bool:
                return (await found.patch("free", [add("/spec/note", "x")])).code == 403

            await eventually(in_force, otherwise=lambda: "the account is not confined")
            yield found


def message(answer: Answer) -> str:
    found: Mapping[str, Any] = answer.json()
    return str(found.get("message"))


async def test_it_can_change_nothing_else(confined: Confined) -> None:
    for what, (name, refusal, changes) in ATTACKS.items():
        answer = await confined.patch(name, changes)
        assert (answer.code, refusal in message(answer)) == (403, True), (what, message(answer))
    # An admin may, as far as the schema of the kind and the API server allow it to anybody.
    for what in ("spec", "a label", "another order", "of ours", "of an object that lives", "a new finalizer"):
        name, _, changes = ATTACKS[what]
        answer = await confined.patch(name, changes, by=confined.admin.client)
        assert answer.code == 200, (what, message(answer))

    kind = confined.kind
    status = f"{kind.path('free')}/status?dryRun=All"
    answer = await confined.send(
        "PATCH", status, [add("/status", {"endpoint": "x"})], content_type=JSON_PATCH
    )
    assert answer.code == 403, message(answer)
    for method, path, body in (
        ("POST", kind.path(), kind.instance("new")),
        ("DELETE", kind.path("free"), None),
        ("DELETE", kind.path(), None),
    ):
        answer = await confined.send(method, f"{path}?dryRun=All", body)
        assert (answer.code, NEITHER in message(answer)) == (403, True), (method, message(answer))
    live = await confined.admin.get(kind.path("held"))
    answer = await confined.send(
        "PUT", f"{kind.path('held')}?dryRun=All", {**live, "spec": {"engine": "mysql"}}
    )
    assert (answer.code, OBJECT in message(answer)) == (403, True), message(answer)


async def test_it_can_do_its_work(confined: Confined) -> None:
    admin, kind = confined.admin, confined.kind
    # A migration rewrites objects without a change, and a release changes managedFields, too.
    answer = await confined.patch("noted", [])
    assert answer.code == 200, message(answer)
    found = held((await admin.get(kind.path("held")))["metadata"], admin.client.now())
    assert found is not None
    endpoint = Endpoint(kind.group, kind.served_version, kind.plural)
    freed = await release_finalizer(confined.account, endpoint, found, OTHER)
    assert freed.freeing is Freeing.RELEASED, freed.message
    assert (await finalizers_of(admin, kind))["held"] == [NAMED, "kubernetes", OURS]


async def test_a_finalizer_that_is_listed_twice(confined: Confined) -> None:
    """An update may list it twice. Who takes off one of two becomes the manager of the other."""
    admin, kind = confined.admin, confined.kind
    listed = {"metadata": {"finalizers": [NAMED, OTHER, NAMED]}}
    await admin.merge(f"{kind.path('alive')}?fieldManager=other", listed)
    await admin.delete_objects(kind, ["alive"])
    before = (await admin.get(kind.path("alive")))["metadata"]
    assert before["finalizers"] == [NAMED, OTHER, NAMED]
    answer = await confined.patch("alive", [RELEASE])
    assert (answer.code, MOVED in message(answer)) == (403, True), message(answer)
    found = held(before, admin.client.now())
    assert found is not None
    endpoint = Endpoint(kind.group, kind.served_version, kind.plural)
    freed = await release_finalizer(confined.account, endpoint, found, NAMED)
    assert freed.freeing is Freeing.RELEASED, freed.message
    after = (await admin.get(kind.path("alive")))["metadata"]
    assert after["finalizers"] == [OTHER]
    times = [[(each["manager"], each["time"]) for each in of["managedFields"]] for of in (before, after)]
    assert times[0] == times[1]


async def test_managed_fields_stay(confined: Confined) -> None:
    """By an empty entry, an admin has server-side apply forget whose fields are whose. It cannot."""
    admin, kind = confined.admin, confined.kind
    await write(admin, kind, "free", "other", "1")
    note = f"{kind.path('free', version='v2')}?fieldManager=other"
    await admin.merge(note, {"spec": {"note": "x"}})
    entries = (await admin.get(kind.path("free")))["metadata"]["managedFields"]
    applied, *others = entries
    owned = applied["fieldsV1"]
    shallow = {**owned, "f:metadata": {**owned["f:metadata"], "f:labels": {}}}
    claims = {**owned, "f:status": {"f:endpoint": {}}}
    attacks: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "all": (TAKEN, [{}]),
        "one": (TAKEN, others),
        "one of two of a manager": (TAKEN, entries[:-1]),
        "its fields": (TAKEN, [{**applied, "fieldsV1": {"f:metadata": {"f:labels": {}}}}, *others]),
        "its labels": (CHANGED, [{**applied, "fieldsV1": shallow}, *others]),
        "another field": (CHANGED, [{**applied, "fieldsV1": claims}, *others]),
        "another name": (TAKEN, [{**applied, "manager": "another"}, *others]),
        "one more": (CHANGED, [*entries, {**applied, "manager": "another"}]),
        "no longer applied": (TAKEN, [{**applied, "operation": "Update"}, *others]),
        "not the version of the request": (TAKEN, [{**applied, "apiVersion": f"{kind.group}/v2"}, *others]),
    }
    for what, (refusal, wanted) in attacks.items():
        answer = await confined.patch("free", [add(ENTRIES, wanted)])
        assert (answer.code, refusal in message(answer)) == (403, True), (what, message(answer))
        answer = await confined.patch("free", [add(ENTRIES, wanted)], by=admin.client)
        assert answer.code == 200, (what, message(answer))
    # A later time, beside what a migration may change.
    moved = retarget(entries, kind.group, "v2")
    assert moved is not None
    moved[0]["time"] = "2099-01-01T00:00:00Z"
    answer = await confined.send(
        "PATCH",
        f"{kind.path('free', version='v2')}?dryRun=All",
        [add(ENTRIES, moved)],
        content_type=JSON_PATCH,
    )
    assert (answer.code, CHANGED in message(answer)) == (403, True), message(answer)
    live = await admin.get(kind.path("free"))
    live["metadata"]["managedFields"] = [{}]
    answer = await confined.send("PUT", f"{kind.path('free')}?dryRun=All", live)
    assert (answer.code, TAKEN in message(answer)) == (403, True), message(answer)
    answer = await confined.patch("held", [RELEASE, add(ENTRIES, [{}])])
    assert (answer.code, TAKEN in message(answer)) == (403, True), message(answer)

    # The API server drops the entry of a manager that owned nothing but what is released.
    path = f"{kind.path('alive')}?fieldManager=other"
    await admin.merge(path, {"metadata": {"finalizers": [NAMED, OTHER]}})
    await admin.delete_objects(kind, ["alive"])
    answer = await confined.patch("alive", [{"op": "remove", "path": "/metadata/finalizers/1"}])
    assert answer.code == 200, message(answer)
    remaining = [each["manager"] for each in answer.json()["metadata"]["managedFields"]]
    assert remaining == ["admin"]


async def test_a_list_that_became_atomic(confined: Confined) -> None:
    """The API server then changes managedFields with each write."""
    admin, kind = confined.admin, confined.kind
    spec = copy.deepcopy(SPEC)
    spec["properties"]["users"]["x-kubernetes-list-type"] = "atomic"
    del spec["properties"]["users"]["x-kubernetes-list-map-keys"]
    await admin.apply_definition(kind.changed("v1", spec=spec).changed("v2", spec=spec))
    before = (await admin.get(kind.path("free")))["metadata"]["managedFields"]
    for name, changes in (("free", []), ("held", [RELEASE])):
        answer = await confined.patch(name, changes)
        assert answer.code == 200, message(answer)
    assert (await confined.patch("free", [])).json()["metadata"]["managedFields"] != before


async def test_many_managers(confined: Confined) -> None:
    """A release and a retargeting are possible with as many managers as no object has."""
    admin, kind = confined.admin, confined.kind
    fields = {"f:metadata": {"f:finalizers": {f'v:"{NAMED}"': {}}}, "f:spec": {"f:engine": {}, "f:note": {}}}
    entry = {
        "operation": "Apply",
        "apiVersion": f"{kind.group}/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    entries = [{**entry, "manager": f"m{at}", "time": "2026-01-01T00:00:00Z"} for at in range(100)]
    await admin.merge(kind.path("held"), {"metadata": {"managedFields": entries}})
    answer = await confined.patch("held", [RELEASE])
    assert answer.code == 200, message(answer)
    wanted = retarget(entries, kind.group, "v2")
    path = f"{kind.path('held', version='v2')}?dryRun=All"
    answer = await confined.send("PATCH", path, [add(ENTRIES, wanted)], content_type=JSON_PATCH)
    assert answer.code == 200, message(answer)


async def test_large_objects(confined: Confined) -> None:
    """The comparison costs the API server little, so that none is too large for it."""
    admin, kind = confined.admin, confined.kind
    annotations = {f"example.com/{at:05d}": "x" for at in range(2000)}
    body = kind.instance("large", note="x" * 4000, users=[{"name": f"u{at}"} for at in range(32)])
    body["metadata"] |= {"annotations": annotations, "finalizers": [NAMED]}
    await admin.create_instances(kind, [body])
    await admin.delete_objects(kind, ["large"])
    answer = await confined.patch("large", [RELEASE])
    assert answer.code == 200, message(answer)
    answer = await confined.patch("large", [RELEASE, add("/metadata/annotations/example.com~101999", "y")])
    assert (answer.code, METADATA in message(answer)) == (403, True), message(answer)


async def test_the_operator_releases(admin: Admin, operator: Operator, confined: Confined) -> None:
    await policy(admin, confined.kind.group, rule(), rule(OTHER))
    left = {"held": ["kubernetes", OURS], "alive": [NAMED], "free": [], "noted": []}
    await until_finalizers(admin, confined.kind, left)
    await policy_with(admin, confined.kind.group, "NothingHeld")
