"""Foreign data is not changed: a rewrite changes an object's apiVersion, and storedVersions in its CRD."""

from typing import Any

from tests.cluster.harness import Admin, CustomKind, Operator, outdated, time_passes, until_storing
from tests.cluster.harness.admin import CRDS, POLICIES

# That of other Kopf operators by default: a careless one removes it from whatever it watches.
KOPF_FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"


async def furnished(admin: Admin, kind: CustomKind) -> None:
    """Adds what objects have in real clusters: annotations, finalizers, owners of fields, a status."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "example.com/note": "keep"}
    metadata = {"metadata": {"annotations": annotations, "finalizers": [KOPF_FINALIZER]}}
    await admin.merge(f"{kind.path('db-00000')}?fieldManager=kubectl-edit", metadata)
    status = {"status": {"endpoint": "db.example.com:5432", "readyReplicas": 1}}
    await admin.merge(f"{kind.path('db-00001')}/status?fieldManager=controller", status)
    await admin.merge(f"{CRDS}/{kind.name}?fieldManager=kubectl-edit", metadata)


def raw(admin: Admin, kind: CustomKind) -> dict[str, bytes | None]:
    """The bytes in etcd of a CRD and of all its objects."""
    keys = [*admin.etcd.keys(f"/registry/{kind.group}/{kind.plural}/"), kind.definition_key]
    return {key: admin.etcd.raw(key) for key in keys}


async def release(admin: Admin, kind: CustomKind) -> None:
    """Removes the finalizers, so that all can be deleted."""
    for path in (kind.path("db-00000"), f"{CRDS}/{kind.name}"):
        await admin.merge(path, {"metadata": {"finalizers": None}})


async def test_what_nobody_asked_for_is_byte_identical(admin: Admin, operator: Operator, group: str) -> None:
    foreign = CustomKind(f"foreign-{group}")
    await admin.apply_definition(foreign)
    await admin.create_objects(foreign, 5)
    await furnished(admin, foreign)
    await admin.apply_definition(foreign.storing("v2"))
    await until_storing(admin, foreign.storing("v2"))
    await admin.create_objects(foreign.storing("v2"), 5, prefix="new")
    # The operator may write them, but nobody asked it to.
    await admin.opt_in(foreign.group)
    before = raw(admin, foreign)
    assert admin.stored(foreign) == {"v1": 5, "v2": 5}

    policy = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": group},
        "spec": {"groups": [group]},
    }
    await admin.create(POLICIES, policy)
    await admin.migrate(group, await outdated(admin, CustomKind(group), 5))
    assert operator.stop() == 0
    operator.start()
    await time_passes(admin)

    assert raw(admin, foreign) == before
    await release(admin, foreign)


async def test_a_rewrite_changes_the_api_version_and_nothing_else(
    admin: Admin, operator: Operator, group: str
) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.create_objects(kind, 5)
    await furnished(admin, kind)
    await admin.opt_in(group)
    flipped = kind.storing("v2")
    await admin.apply_definition(flipped)
    assert admin.stored(kind) == {"v1": 5}
    before = objects(admin, kind)
    definition_before = await admin.definition(kind)

    await admin.migrate(group, flipped)

    assert objects(admin, kind) == {
        key: {**stored, "apiVersion": f"{group}/v2"} for key, stored in before.items()
    }
    assert trimmed(definition_before) == without_trim_entry(await admin.definition(kind))
    await release(admin, kind)


def objects(admin: Admin, kind: CustomKind) -> dict[str, Any]:
    """All objects as stored, with generation and managedFields."""
    return {key: admin.etcd.get(key) for key in admin.etcd.keys(f"/registry/{kind.group}/{kind.plural}/")}


def trimmed(definition: dict[str, Any]) -> dict[str, Any]:
    """The effect of a trim on a CRD."""
    return {**without_version(definition), "status": {**definition["status"], "storedVersions": ["v2"]}}


def without_trim_entry(definition: dict[str, Any]) -> dict[str, Any]:
    """The CRD without the traces of any field write: a new resourceVersion, and the field's owner.

    Our entry covers only storedVersions.
    """
    found = without_version(definition)
    metadata = found["metadata"]
    (ours,) = (each for each in metadata["managedFields"] if each["manager"] == "crdkeeper")
    assert ours["fieldsV1"] == {"f:status": {"f:storedVersions": {}}}
    assert ours["subresource"] == "status"
    others = [each for each in metadata["managedFields"] if each is not ours]
    return {**found, "metadata": {**metadata, "managedFields": others}}


def without_version(definition: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in definition["metadata"].items() if key != "resourceVersion"}
    return {**definition, "metadata": metadata}
