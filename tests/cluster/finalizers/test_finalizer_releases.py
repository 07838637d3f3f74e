"""Finalizers that a DefinitionPolicy names, released on a real API server under the operator's account."""

import re
from datetime import datetime, timedelta

import pytest

from crdkeeper.api.meta import find_condition
from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    condition_of,
    create_held,
    figures,
    finalizers_of,
    held_objects,
    let_release,
    policy,
    policy_with,
    release_events,
    rule,
    until_finalizers,
    until_permitted,
    write,
)
from tests.cluster.harness import Admin, CustomKind, Operator, eventually, time_passes
from tests.cluster.harness.admin import CLUSTER_ROLES
from tests.cluster.harness.admission import allow_updates, closed_port, deny_updates
from tests.cluster.reports.live.scene import WITHOUT, change, through


async def test_plan_first_then_release(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, ["one", "two"])
        await create_held(admin, kind, ["both"], [OTHER, NAMED])
        await create_held(admin, kind, ["other"], [OTHER])
        alive = kind.instance("alive")
        alive["metadata"]["finalizers"] = [NAMED]
        await admin.create_instances(kind, [alive])
        before = await admin.resource_versions(kind)

        await policy(admin, group, rule(mode="Plan"))
        planned = await policy_with(admin, group, "ReleasePlanned", lambda each: figures(each).due == 3)
        assert figures(planned).held == 3
        assert sorted(figures(planned).examples) == [
            f"{kind.name} default/{each}" for each in ("both", "one", "two")
        ]
        ready = find_condition(planned.status.conditions, "Ready")
        assert ready is not None
        assert ready.status == "True"
        assert await admin.resource_versions(kind) == before

        await policy(admin, group, rule())
        left = {"alive": [NAMED], "both": [OTHER], "other": [OTHER]}
        await until_finalizers(admin, kind, left)
        await policy_with(admin, group, "NothingHeld")
        assert await finalizers_of(admin, kind) == left
        notes = await release_events(admin, kind)
        assert {name: len(each) for name, each in notes.items()} == {"one": 1, "two": 1, "both": 1}
        assert re.fullmatch(
            rf"Released the finalizer {NAMED} on behalf of DefinitionPolicy {re.escape(group)}: "
            r"in deletion since \S+Z, last written \S+Z by admin\.",
            notes["one"][0],
        )
        released = operator.metric("crdkeeper_finalizers_released_total", resource=kind.name, finalizer=NAMED)
        assert released == 3


async def test_the_condition_names_the_missing_role(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await create_held(admin, kind, ["one"])
        await policy(admin, group, rule())
        lacking = await policy_with(admin, group, "FinalizersNotPermitted")
        ready = find_condition(lacking.status.conditions, "Ready")
        assert ready is not None
        assert (ready.status, ready.reason) == ("False", "FinalizersNotPermitted")
        assert await finalizers_of(admin, kind) == {"one": [NAMED]}

        role = condition_of(lacking).message.partition("Apply:\n")[2]
        admin.cleans_up(f"{CLUSTER_ROLES}/crdkeeper-release-{group}")
        admin.cluster.kubectl("apply", "--server-side", "-f", "-", input=role)
        await until_permitted(admin, group)
        # Any change of the policy leads to a look; by itself there is one after a minute.
        await policy(admin, group, rule(after="2s"))
        await until_finalizers(admin, kind, {})


async def test_reading_is_enough_for_a_plan(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group, ["list"])
        await create_held(admin, kind, ["one"])
        await policy(admin, group, rule(mode="Plan"))
        await policy_with(admin, group, "ReleasePlanned")
        await policy(admin, group, rule())
        lacking = await policy_with(admin, group, "FinalizersNotPermitted")
        assert "may not patch objects of 1 CRD" in condition_of(lacking).message
        await policy(admin, group, rule(mode="Plan", when="true"))
        lacking = await policy_with(admin, group, "FinalizersNotPermitted")
        assert "may not get objects of 1 CRD" in condition_of(lacking).message
        assert await finalizers_of(admin, kind) == {"one": [NAMED]}


async def test_a_manager_that_still_writes(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, ["busy", "quiet"])
        await policy(admin, group, rule(after="1h"))
        await policy_with(admin, group, "FinalizersHeld", lambda each: figures(each).waiting == 2)
        await time_passes(admin)  # the times in objects are whole seconds
        await write(admin, kind, "busy", "cleaner", "1")
        await policy(admin, group, rule(after="2h"))
        found = await policy_with(admin, group, "FinalizersHeld", lambda each: figures(each).written == 1)
        assert figures(found).waiting == 1
        assert "1 with writes since the deletion, by cleaner (1)." in condition_of(found).message
        assert len(await finalizers_of(admin, kind)) == 2

        # Before the policy: the operator may release at once what was written more than three seconds before.
        await write(admin, kind, "busy", "cleaner", "2")
        written = await last_write(admin, kind, "busy")
        await policy(admin, group, rule(after="3s"))
        await until_finalizers(admin, kind, {})
        assert admin.client.now() >= written + timedelta(seconds=3)


async def last_write(admin: Admin, kind: CustomKind, name: str) -> datetime:
    entries = (await admin.get(kind.path(name)))["metadata"]["managedFields"]
    return max(datetime.fromisoformat(each["time"]) for each in entries)


async def test_only_objects_that_meet_the_condition(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, ["mine"], engine="mysql")
        await create_held(admin, kind, ["yours"], engine="postgres")
        await policy(admin, group, rule(when="object.spec.engine == 'mysql' && !has(object.status)"))
        await until_finalizers(admin, kind, {"yours": [NAMED]})
        found = await policy_with(admin, group, "FinalizersHeld", lambda each: figures(each).unmet == 1)
        assert "1 for which `when` is not true" in condition_of(found).message

        # What has no value is not true.
        await policy(admin, group, rule(when="object.status.endpoint == ''"))
        await policy_with(admin, group, "FinalizersHeld", lambda each: figures(each).unmet == 1)
        for when in ("object.spec.", "1 + 1", "object" + ".optMap(x, x)" * 40):
            await policy(admin, group, rule(when=when))
            found = await policy_with(admin, group, "InvalidFinalizers")
            assert f"Not released: {NAMED}: when: " in condition_of(found).message
        assert await finalizers_of(admin, kind) == {"yours": [NAMED]}


@pytest.mark.parametrize(
    ("name", "after", "said"),
    [
        ("foregroundDeletion", "1h", "Kubernetes itself serves this finalizer"),
        ("orphan", "1h", "Kubernetes itself serves this finalizer"),
        ("kubernetes", "1h", "Kubernetes itself serves this finalizer"),
        ("customresourcecleanup.apiextensions.k8s.io", "1h", "Kubernetes itself serves this finalizer"),
        ("crdkeeper.dev/composites", "1h", "crdkeeper itself serves this finalizer"),
        ("a.crdkeeper.dev/x", "1h", "crdkeeper itself serves this finalizer"),
        ("test.example.com/*", "1h", "should match"),
        (NAMED, "soon", "should match"),
    ],
)
async def test_what_no_policy_may_name(admin: Admin, group: str, name: str, after: str, said: str) -> None:
    with pytest.raises(ApiError, match=said):
        await policy(admin, group, rule(name, after))


async def test_a_release_that_admission_refuses(admin: Admin, operator: Operator, group: str) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        await create_held(admin, kind, ["one", "two"])
        await deny_updates(admin, kind, "object.metadata.name != 'one'", example="one")
        await policy(admin, group, rule())
        found = await policy_with(admin, group, "ReleaseRefused", lambda each: figures(each).held == 1)
        assert figures(found).refused == 1
        assert await finalizers_of(admin, kind) == {"one": [NAMED]}
        await allow_updates(admin, kind, example="one")


async def test_one_crd_that_cannot_be_read(admin: Admin, operator: Operator, group: str) -> None:
    """It is named, and holds up no other."""
    kind, unreadable = CustomKind(group), CustomKind(group, plural="stores", kind="Store")
    async with held_objects(admin, kind), held_objects(admin, unreadable):
        await let_release(admin, group)
        await create_held(admin, kind, ["one"])
        await admin.create_objects(unreadable, 1)
        await admin.apply_definition(unreadable.storing("v2"))
        with closed_port() as port:
            await change(admin, unreadable, through({"url": f"https://127.0.0.1:{port}/"}))
            await until_listed(admin, unreadable.storing("v2"), 500)
            await policy(admin, group, rule())
            await until_finalizers(admin, kind, {})
            found = await policy_with(admin, group, "HeldObjectsUnreadable")
            assert (
                f"The objects of 1 CRD cannot be listed: {unreadable.name}: " in condition_of(found).message
            )
            await change(admin, unreadable, WITHOUT)
            await until_listed(admin, unreadable.storing("v2"), 200)
        # Any change of the policy leads to a look.
        await policy(admin, group, rule(after="2s"))
        await policy_with(admin, group, "NothingHeld")


async def until_listed(admin: Admin, kind: CustomKind, code: int) -> None:
    """Returns when a list of the objects ends so."""

    async def look() -> bool:
        return (await admin.client.send("GET", f"{kind.path()}?limit=1")).code == code

    await eventually(look)


async def test_times_that_no_clock_shows(admin: Admin, operator: Operator, group: str) -> None:
    """Whoever writes an object may set the times of its managers: none of them releases it, or stops us."""
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await let_release(admin, group)
        times = {
            "past": "0001-01-02T00:00:00Z",
            "zero": "0000-01-01T00:00:00Z",
            "future": "9000-01-01T00:00:00Z",
        }
        await create_held(admin, kind, times)
        for name, at in times.items():
            entries = (await admin.get(kind.path(name)))["metadata"]["managedFields"]
            forged = [{**each, "time": at} for each in entries]
            # The API server takes the times only with another change.
            change = {"managedFields": forged, "annotations": {"test.example.com/forged": at}}
            changed = await admin.merge(f"{kind.path(name)}?fieldManager=forger", {"metadata": change})
            assert changed["metadata"]["managedFields"][0]["time"] == at
        await policy(admin, group, rule())
        await until_finalizers(admin, kind, {"future": [NAMED], "zero": [NAMED]})
        found = await policy_with(admin, group, "FinalizersHeld", lambda each: figures(each).held == 2)
        assert figures(found).written == 2
