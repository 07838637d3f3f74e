"""What names a version holds its retirement, and says so, under the operator's own account."""

from typing import Any

from crdkeeper.api.meta import API_VERSION
from crdkeeper.api.versionretirement import MIGRATED
from tests.cluster.harness import Admin, CustomKind, Operator, Version
from tests.cluster.harness.admin import CRDS, OURS
from tests.cluster.retirement.scene import (
    CONVERSIONS,
    NEW,
    OLD,
    install_composite_kinds,
    permit,
    plan_of_conversion,
    retire,
    standing,
    until_ready,
    versions,
)
from tests.controlplane.cluster import Cluster

COMPOSITIONS = f"{OURS}/compositions"
BETWEEN = "v1beta1"
OBJECTS = 3


def composition(kind: CustomKind, name: str) -> dict[str, Any]:
    """A Composition that makes an object at the old version, for composites of another API."""
    template = {"apiVersion": kind.api_version(OLD), "kind": kind.kind, "metadata": {"name": "part"}}
    return {
        "apiVersion": API_VERSION,
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {
            "compositeTypeRef": {"apiVersion": f"shops.{kind.group}/v1", "kind": "Shop"},
            "resources": [{"name": "part", "template": template}],
        },
    }


async def look_again(admin: Admin, kind: CustomKind, after: str) -> None:
    """Have the operator look at once: each change of the CRD does, unlike one of a Composition."""
    await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {"test.example.com/after": after}}})


async def test_each_holds_its_step_and_is_named(
    admin: Admin, installed: Cluster, operator: Operator, group: str
) -> None:
    install_composite_kinds(installed)
    kind = CustomKind(group, versions=(Version(OLD), Version(BETWEEN), Version(NEW, storage=True)))
    await admin.apply_definition(kind)
    await admin.create_objects(kind, OBJECTS, version=OLD)
    part = f"parts.{group}"
    await admin.create(COMPOSITIONS, composition(kind, part))
    await admin.create(CONVERSIONS, plan_of_conversion(kind, OLD, BETWEEN))
    # Nobody answers there: objects, which are stored at v1, cannot be read at v1beta1.
    url = "https://127.0.0.1:1/convert"
    webhook = {"clientConfig": {"url": url}, "conversionReviewVersions": ["v1"]}
    await admin.merge(
        f"{CRDS}/{kind.name}", {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
    )
    await permit(admin, kind)

    name = await retire(admin, kind, mode="Execute")
    found = await until_ready(admin, name, "False", "Composition")
    said = standing(found, "Ready").message
    assert said.startswith(f"NotServed is held: Composition {part} makes or reads objects at {OLD}. Name")
    assert said.endswith("(and 1 more: see status.holds)")
    assert {(each.step, each.reason, each.name) for each in found.status.holds} == {
        ("NotServed", "Composition", part),
        ("NotServed", "ConversionWebhook", f"webhook {url}"),
        ("Removed", "VersionConversion", kind.name),
    }
    note = await admin.wait_for_event(name, "Warning", "Composition", "VersionRetirement")
    assert part in note

    await admin.delete(f"{COMPOSITIONS}/{part}")
    await look_again(admin, kind, "composition")
    found = await until_ready(admin, name, "False", "ConversionWebhook")
    said = standing(found, "Ready").message
    assert (
        f"NotServed is held: The conversion webhook {url} does not convert: default/db-00000 cannot" in said
    )
    assert f"read at {BETWEEN}" in said
    assert (await versions(admin, kind))[OLD]["served"] is True

    without = {"conversion": {"strategy": "None", "webhook": None}}
    await admin.merge(f"{CRDS}/{kind.name}", {"spec": without})
    found = await until_ready(admin, name, "False", "VersionConversion")
    said = standing(found, "Ready").message
    assert said.startswith(f"Removed is held: VersionConversion {kind.name} has {OLD} as a spoke. Remove")
    assert standing(found, MIGRATED).status == "True"
    assert (await versions(admin, kind))[OLD]["served"] is False

    spokes = plan_of_conversion(kind, BETWEEN)["spec"]["spokes"]
    await admin.merge(f"{CONVERSIONS}/{kind.name}", {"spec": {"spokes": spokes}})
    await look_again(admin, kind, "spoke")
    await until_ready(admin, name, "True", "Removed")
    assert [*await versions(admin, kind)] == [BETWEEN, NEW]
    assert admin.stored(kind) == {NEW: OBJECTS}
