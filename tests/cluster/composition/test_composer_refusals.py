"""Definitions whose CRD is not made, or not served: each state with its text, and how it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import (
    CRDS,
    ROLES,
    Author,
    Definition,
    Json,
    condition,
)
from tests.cluster.harness import eventually
from tests.cluster.harness.admission import BINDINGS, POLICIES
from tests.unit.core.composition.documents import schema, version

FREE = {"singular": "other"}


def crd_of_other(group: str, name: str, **names: object) -> Json:
    """Somebody's CRD."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{group}"},
        "spec": {
            "group": group,
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


async def put_other(author: Author, group: str, **names: object) -> Json:
    """Apply somebody's CRD; returns once it has its names."""
    path = f"{CRDS}/others.{group}"
    other = await author.put(path, crd_of_other(group, "other", **names))

    async def accepted() -> bool:
        return condition(await author.get(path), "Established")[0] == "True"

    await eventually(accepted)
    return other


async def works(observer: Observer, thing: Definition) -> None:
    """Waits until the definition is as it should be."""
    await observer.sees(thing, "Ready", "True", "WatchingCompositeResource", judged="Current")


async def test_an_invalid_definition(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    said = "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: the type is array, not object"
    wrong = [version(of=schema({"type": "array", "items": {"type": "string"}}))]
    await author.apply(thing, versions=wrong)
    remedy = "Set `type: object`, and put the value into a field of it."
    await observer.sees(thing, "Accepted", "False", "Invalid", said, remedy, judged="Failed")
    await observer.sees(
        thing, "Established", "False", "NoCRD", "There is no CRD of this definition.", judged="Failed"
    )
    assert await author.get(thing.crd) is None
    await author.apply(thing)
    await works(observer, thing)

    # A change that is invalid leaves the CRD as it is, and the API works.
    before = await author.get(thing.crd)
    await author.apply(thing, versions=wrong)
    await observer.sees(thing, "Accepted", "False", "Invalid", said, judged="Failed")
    await observer.sees(thing, "Established", "True", "WatchingCompositeResource", judged="Failed")
    assert await author.get(thing.crd) == before
    await author.apply(thing, "more")
    await works(observer, thing)
    assert await author.fields(thing) == ["more"]


async def test_a_crd_of_somebody_else(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    other = await author.put(thing.crd, crd_of_other(group, "thing"))
    await author.apply(thing)
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "NotOurs",
        "a CRD of this name exists, and does not belong to this definition",
        'the annotation crdkeeper.dev/adopt: "true" on the definition takes it over',
        judged="Failed",
    )
    await observer.sees(thing, "StorageCurrent", "Unknown", "NotEstablished", judged="Failed")
    assert (await author.get(thing.crd))["spec"] == other["spec"]

    # Somebody deletes it, which takes its time.
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    await author.client.request("PATCH", thing.crd, hold, content_type=MERGE_PATCH)
    await author.delete(thing.crd)
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "CRDTerminating",
        "CRD of this name is being deleted",
        judged="InProgress",
    )
    release = {"metadata": {"finalizers": None}}
    await author.client.request("PATCH", thing.crd, release, content_type=MERGE_PATCH)
    await works(observer, thing)
    assert (await author.get(thing.crd))["metadata"]["uid"] != other["metadata"]["uid"]


async def test_a_field_that_the_composer_replaces(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, "crdkeeper", "other")
    await works(observer, thing)
    await observer.sees(
        thing,
        "Accepted",
        "True",
        "AcceptedWithWarnings",
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[crdkeeper]: ",
        "Its schema of them replaces yours. Remove the field from the schema, or give it another name.",
        judged="Current",
    )
    await author.apply(thing, "other")
    await observer.sees(
        thing, "Accepted", "True", "Accepted", "The CRD is as the definition says.", judged="Current"
    )


@pytest.mark.parametrize(
    ("type_", "status", "reason", "names", "holder"),
    [
        pytest.param(
            "Established", "False", "PluralConflict", {"singular": "things"}, 'plural "things" is held by CRD'
        ),
        pytest.param(
            "Established",
            "False",
            "SingularConflict",
            {"shortNames": ["thing"]},
            'singular "thing" is held by',
        ),
        pytest.param(
            "Established", "False", "ShortNamesConflict", {"shortNames": ["th"]}, 'shortNames "th" is held by'
        ),
        pytest.param(
            "Established",
            "False",
            "KindConflict",
            {"kind": "Thing", "listKind": "OtherList", **FREE},
            'kind "Thing" is held by',
        ),
        pytest.param(
            "Established",
            "False",
            "ListKindConflict",
            {"listKind": "ThingList", **FREE},
            'listKind "ThingList" is held',
        ),
    ],
    ids=["plural", "singular", "short", "kind", "list-kind"],
)
async def test_a_name_that_another_crd_has(
    author: Author,
    observer: Observer,
    group: str,
    type_: str,
    status: str,
    reason: str,
    names: Json,
    holder: str,
) -> None:
    thing = Definition(group, "thing")
    other = await put_other(author, group, **names)
    ours = {"kind": thing.kind, "plural": thing.plural, "shortNames": ["th"]}
    await author.apply(thing, names=ours)
    await observer.sees(
        thing,
        type_,
        status,
        reason,
        holder,
        other["metadata"]["name"],
        "The API is not served.",
        "delete the other CRD",
        judged="Failed",
    )
    await author.delete(f"{CRDS}/others.{group}")
    await works(observer, thing)


async def test_a_crd_that_garbage_collection_would_delete(
    author: Author, observer: Observer, group: str
) -> None:
    thing = Definition(group, "thing")
    role = await author.get(f"{ROLES}/composer-{group}")
    owner = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "name": role["metadata"]["name"],
        "uid": role["metadata"]["uid"],
    }

    async def owned_by(*owners: Json) -> None:
        change = {"metadata": {"ownerReferences": [*owners]}}
        await author.client.request("PATCH", thing.crd, change, content_type=MERGE_PATCH)

    other = await author.put(thing.crd, crd_of_other(group, "thing"))
    await owned_by(owner)
    await author.apply(thing, metadata={"annotations": {"crdkeeper.dev/adopt": "true"}})
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "NotOurs",
        f"a CRD of this name exists, which ClusterRole {owner['name']} owns. When that is deleted, the API "
        "server deletes the CRD and all of its objects",
        "then remove metadata.ownerReferences from the CRD",
        judged="Failed",
    )
    assert (await author.get(thing.crd))["spec"] == other["spec"]
    await owned_by()
    await works(observer, thing)
    await owned_by(owner)
    await observer.sees(
        thing,
        "Accepted",
        "True",
        "AcceptedWithWarnings",
        f"ClusterRole {owner['name']} owns the CRD: when that is deleted, the API server deletes the CRD and "
        "all composites, whatever spec.deletion says. Remove metadata.ownerReferences from the CRD.",
        judged="Current",
    )
    await owned_by()
    await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current")


async def test_a_name_that_another_crd_has_got_since(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await works(observer, thing)
    other = await put_other(author, group, shortNames=["th"])
    await author.apply(thing, names={"kind": thing.kind, "plural": thing.plural, "shortNames": ["th"]})
    await observer.sees(
        thing,
        "Established",
        "False",
        "ShortNamesConflict",
        f'shortNames "th" is held by CRD {other["metadata"]["name"]} (as its short name). '
        "The API is still served under its former names. ",
        judged="Failed",
    )
    assert await author.get(f"{thing.objects}?limit=1") is not None
    await author.delete(f"{CRDS}/others.{group}")
    await works(observer, thing)


@asynccontextmanager
async def policy(
    author: Author, group: str, operation: str, resource: str, unless: str = "false"
) -> AsyncIterator[None]:
    """A ValidatingAdmissionPolicy denies an operation on the CRDs of a group, until the end of the block.

    `unless` is a condition in CEL with which it passes, but for the CRD of the kind Probe.
    """
    name, probe = f"frozen.{operation.lower()}.{group}", Definition(group, "probe")
    rule = {
        "apiGroups": ["apiextensions.k8s.io"],
        "apiVersions": ["v1"],
        "operations": [operation],
        "resources": [resource],
    }
    passes = f"!request.name.startsWith('probes.') && ({unless})"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "group", "expression": f"request.name.endsWith('.{group}')"}],
        "validations": [{"expression": passes, "message": "CRDs are frozen until Monday"}],
    }
    registration = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    kind = "ValidatingAdmissionPolicy"
    await author.put(f"{POLICIES}/{name}", {**registration, "kind": kind, "spec": spec})
    bound = {"policyName": name, "validationActions": ["Deny"]}
    await author.put(f"{BINDINGS}/{name}", {**registration, "kind": f"{kind}Binding", "spec": bound})
    path = f"{probe.crd}{'/status' if resource.endswith('/status') else ''}"
    value = orjson.dumps(crd_of_other(group, "probe"))

    async def in_force() -> bool:
        query = "?fieldManager=probe&dryRun=All"
        method, content = ("DELETE", None) if operation == "DELETE" else ("PATCH", value)
        answer = await author.client.send(method, path + query, content=content, content_type=APPLY_PATCH)
        return b"frozen until Monday" in answer.content

    async def out_of_force() -> bool:
        return not await in_force()

    try:
        await eventually(in_force)
        yield
    finally:
        await author.delete(f"{BINDINGS}/{name}")
        await author.delete(f"{POLICIES}/{name}")
        # The API server notices later; what the test leaves is deleted next.
        await eventually(out_of_force)


async def test_a_policy_that_forbids_the_crd(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    async with policy(author, group, "CREATE", "customresourcedefinitions"):
        await author.apply(thing)
        # By default, a policy answers with the code of an invalid object, which the CRD is not.
        await observer.sees(
            thing,
            "Accepted",
            "False",
            "Refused",
            "cannot apply the CRD: ",
            f"ValidatingAdmissionPolicy 'frozen.create.{group}'",
            "denied request: CRDs are frozen until Monday",
            judged="Failed",
        )
        await observer.sees(thing, "Established", "False", "NoCRD", judged="Failed")
        said = "There is no CRD of this definition."
        await observer.sees(thing, "StorageCurrent", "Unknown", "NotEstablished", said, judged="Failed")
        assert await author.get(thing.crd) is None
    await works(observer, thing)


async def test_a_crd_that_is_not_served_yet(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.put(f"{CRDS}/probes.{group}", crd_of_other(group, "probe"))
    # The API server itself writes this status.
    async with policy(author, group, "UPDATE", "customresourcedefinitions/status"):
        await author.apply(thing)
        said = "The API server does not serve the API yet."
        await observer.sees(thing, "Established", "Unknown", "Establishing", said, judged="InProgress")
    await works(observer, thing)
