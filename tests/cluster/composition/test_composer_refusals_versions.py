"""Versions that are not served or not migrated yet, with the operator beside the composer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import yaml

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import (
    Author,
    Definition,
    Json,
    opted_in,
    spec_with,
    without,
)
from tests.cluster.harness import eventually
from tests.cluster.harness.admission import BINDINGS, POLICIES
from tests.unit.core.composition.documents import schema, version

OURS = "/apis/crdkeeper.dev/v1alpha1"
CONVERSIONS = f"{OURS}/versionconversions"
MIGRATIONS = f"{OURS}/storagemigrations"
QUICK = {"settleSeconds": 0, "apiServerLeases": "Ignore"}
SLOW = {"settleSeconds": 3600}

pytestmark = pytest.mark.usefixtures("keeper")


async def works(observer: Observer, thing: Definition) -> None:
    """Waits until the definition is as it should be."""
    await observer.sees(thing, "Ready", "True", "WatchingCompositeResource", judged="Current")


async def test_a_version_that_nothing_converts_yet(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    before = await author.get(thing.crd)
    both = [version("v1"), version("v2", schema(spec_with("size")), referenceable=False)]
    await author.apply(thing, versions=both, deletion="Cascade")
    message = await observer.sees(
        thing,
        "Accepted",
        "False",
        "ConversionMissing",
        "Nothing converts between these versions, so that fields would be lost: ",
        "v1 and v2: spec.size: only v2 has the field",
        "create a VersionConversion such as {apiVersion: ",
        judged="Failed",
    )
    proposed = yaml.safe_load(message.partition("such as ")[2].partition(" Or set ")[0])
    path = f"{CONVERSIONS}/{thing.name}"
    await author.put(path, {**proposed, "spec": {**proposed["spec"], "mode": "Plan"}})
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "ConversionIncomplete",
        f"The VersionConversion {thing.name} does not convert between the versions",
        "spec.mode is Plan, so that its rules convert nothing; set it to Execute",
        judged="Failed",
    )
    (spoke,) = proposed["spec"]["spokes"]
    await author.put(path, {**proposed, "spec": {**proposed["spec"], "spokes": [{**spoke, "rules": []}]}})
    await observer.sees(thing, "Accepted", "False", "ConversionIncomplete", "spec.size", judged="Failed")
    assert await author.get(thing.crd) == before

    # The rules are right, but the operator may not write them into the CRD.
    await author.put(path, proposed)
    await observer.sees(
        thing,
        "Accepted",
        "Unknown",
        "ConversionPending",
        f"The CRD has v2, and serves it once the VersionConversion {thing.name} converts it. Its "
        "condition Ready says ",
        judged="InProgress",
    )
    served = [each["served"] for each in (await author.get(thing.crd))["spec"]["versions"]]
    assert served == [True, False]
    async with opted_in(author, thing, "reader", "converter"):
        await works(observer, thing)
        served = [each["served"] for each in (await author.get(thing.crd))["spec"]["versions"]]
        assert served == [True, True]
        await author.delete(thing.path)
        await author.gone(thing.crd)
        await author.delete(path)
        await author.gone(path)


def moved(referenceable: str) -> list[Json]:
    """Two versions that are alike, and where composites are stored."""
    return [version(each, referenceable=each == referenceable) for each in ("v1", "v2")]


async def test_composites_that_are_not_migrated(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=moved("v1"))
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    await observer.sees(
        thing, "StorageCurrent", "True", "Current", "All composites are stored in v1.", judged="Current"
    )
    stored = "Composites may still be stored in v1"
    async with without(author, "create", "storagemigrations"):
        await author.apply(thing, versions=moved("v2"))
        await observer.sees(
            thing,
            "StorageCurrent",
            "False",
            "MigrationsUnavailable",
            f"{stored}, and the composer could not create a StorageMigration: ",
            "{apiGroups: [crdkeeper.dev], resources: [storagemigrations], verbs: [list, watch, create]}",
            f"`crdkeeper migrate {thing.name}`",
            judged="Current",
        )
        # Nothing is migrated before the definition is accepted.
        broken = [*moved("v2"), version("v3", {"type": "array"}, referenceable=False)]
        await author.apply(thing, versions=broken)
        await observer.sees(thing, "Accepted", "False", "Invalid", judged="Failed")
    await observer.sees(thing, "StorageCurrent", "False", "MigrationPending", stored, judged="Failed")
    await author.apply(thing, versions=moved("v2"))
    await observer.sees(
        thing,
        "StorageCurrent",
        "False",
        "MigrationFailing",
        stored,
        "Forbidden",
        judged="Current",
    )
    (migration,) = [
        each for each in (await author.get(MIGRATIONS))["items"] if each["spec"]["resource"]["group"] == group
    ]
    path = f"{MIGRATIONS}/{migration['metadata']['name']}"
    # It settles for longer than this test has time for.
    await author.client.request("PATCH", path, {"spec": SLOW}, content_type=MERGE_PATCH)
    async with opted_in(author, thing, "reader", "rewriter"):
        await observer.sees(
            thing,
            "StorageCurrent",
            "False",
            "Migrating",
            stored,
            f"StorageMigration {migration['metadata']['name']} moves them to v2",
            judged="Current",
        )
        # One that somebody refuses to write, and that nobody tries again.
        async with refusing_updates(author, thing):
            once = {"spec": {**QUICK, "retry": {"limit": 0}}}
            await author.client.request("PATCH", path, once, content_type=MERGE_PATCH)
            await observer.sees(
                thing,
                "StorageCurrent",
                "False",
                "MigrationFailing",
                f"{stored}; StorageMigration {migration['metadata']['name']}: RetriesExhausted: ",
                "It has ended: delete it, and another one is created.",
                judged="Current",
            )
        await author.delete(path)

        async def another() -> bool:
            found = await author.get(path)
            return found is not None and found["metadata"]["uid"] != migration["metadata"]["uid"]

        await eventually(another)
        await author.client.request("PATCH", path, {"spec": QUICK}, content_type=MERGE_PATCH)
        await observer.sees(
            thing, "StorageCurrent", "True", "Current", "All composites are stored in v2.", judged="Current"
        )


@asynccontextmanager
async def refusing_updates(author: Author, thing: Definition) -> AsyncIterator[None]:
    """A ValidatingAdmissionPolicy denies updates of the composites, until the end of the block."""
    name, registration = f"frozen.{thing.group}", "admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": [thing.group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [thing.plural],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "it is frozen"}],
    }
    bound = {"policyName": name, "validationActions": ["Deny"]}
    kind = "ValidatingAdmissionPolicy"
    for collection, of, content in ((POLICIES, kind, spec), (BINDINGS, f"{kind}Binding", bound)):
        value = {"apiVersion": registration, "kind": of, "metadata": {"name": name}, "spec": content}
        await author.put(f"{collection}/{name}", value)

    async def denied(expected: bool) -> bool:
        answer = await author.client.send(
            "PATCH", f"{thing.objects}/a?dryRun=All", content=b"{}", content_type=MERGE_PATCH
        )
        return (answer.code >= 400) == expected

    await eventually(lambda: denied(True))
    try:
        yield
    finally:
        for collection in (BINDINGS, POLICIES):
            await author.delete(f"{collection}/{name}")
        await eventually(lambda: denied(False))
