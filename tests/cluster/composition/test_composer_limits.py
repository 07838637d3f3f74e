"""What an API server cannot take: a CRD that is too large, and a rule that older ones do not know."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson

from crdkeeper.cluster.transport.client import JSON_PATCH
from crdkeeper.core.composer.fence import fencing
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import DEFINITIONS, Author, Definition, Json
from tests.cluster.harness import eventually
from tests.unit.core.composition.documents import schema, version

ETCD = 1536 << 10
"""The bytes that etcd takes by default."""
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


def described(size: int, number: int) -> list[Json]:
    """Versions whose descriptions differ, and have that many bytes together."""
    each = size // number
    return [
        version(f"v{at + 1}", schema(description=f"{at}".ljust(each, "x")), referenceable=at == 0)
        for at in range(number)
    ]


async def test_a_crd_that_etcd_does_not_take(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    # etcd takes the definition, but not its CRD with the fields of every composite in each version.
    large = thing.document(versions=described(ETCD - (30 << 10), 16))
    await author.client.request("POST", DEFINITIONS, large)
    await observer.sees(
        thing,
        "Accepted",
        "False",
        "TooLarge",
        "cannot apply the CRD: etcdserver: request is too large. The CRD has 1,",
        "etcd takes 1,536 KiB for both by default.",
        "Shorten the schemas of the definition",
        judged="Failed",
    )
    await observer.sees(thing, "Established", "False", "NoCRD", judged="Failed")
    await author.apply(thing, versions=described(1 << 10, 16))
    await author.ready(thing)

    # A change that makes a CRD too large leaves it as it is.
    before = await author.get(thing.crd)
    large["metadata"]["finalizers"] = ["crdkeeper.dev/composites"]

    async def replaced() -> bool:
        # Until the composer does not write the status in between.
        current = (await author.get(thing.path))["metadata"]["resourceVersion"]
        large["metadata"]["resourceVersion"] = current
        answer = await author.client.send("PUT", thing.path, content=orjson.dumps(large))
        assert answer.code in (200, 409), answer.content[:1000]
        return answer.code == 200

    await eventually(replaced)
    await observer.sees(thing, "Accepted", "False", "TooLarge", judged="Failed")
    await observer.sees(thing, "Established", "True", "WatchingCompositeResource", judged="Failed")
    assert (await author.get(thing.crd))["spec"] == before["spec"]
    await author.delete(thing.path)
    await author.gone(thing.path)


@asynccontextmanager
async def without_optional_old_self(author: Author, thing: Definition) -> AsyncIterator[None]:
    """The API server drops the field from the rules of a CRD, as one before Kubernetes 1.30 does.

    A policy does it: a feature gate that is final cannot be turned off.
    """
    name, root = f"old.{thing.group}", "schema.openAPIV3Schema"
    rule = {
        "apiGroups": ["apiextensions.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["customresourcedefinitions"],
    }
    fenced = f"object.spec.versions.all(each, 'x-kubernetes-validations' in each.{root})"
    path = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations/0/optionalOldSelf"
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "fenced", "expression": f"request.name == '{thing.name}' && {fenced}"}],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {"expression": f"[JSONPatch{{op: 'remove', path: '{path}'}}]"},
            }
        ],
    }
    kind = "MutatingAdmissionPolicy"
    made = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    at = f"{REGISTRATION}/mutatingadmissionpolicies/{name}"
    bound = f"{REGISTRATION}/mutatingadmissionpolicybindings/{name}"
    await author.put(at, {**made, "kind": kind, "spec": spec})
    await author.put(bound, {**made, "kind": f"{kind}Binding", "spec": {"policyName": name}})
    content = orjson.dumps(fencing(await author.get(thing.crd)))

    async def in_force() -> bool:
        answer = await author.client.send(
            "PATCH", f"{thing.crd}?dryRun=All", content=content, content_type=JSON_PATCH
        )
        return answer.code == 422

    try:
        await eventually(in_force)
        yield
    finally:
        await author.delete(bound)
        await author.delete(at)


async def test_an_api_server_without_optional_old_self(
    author: Author, observer: Observer, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    async with without_optional_old_self(author, thing):
        await author.delete(thing.path)
        await observer.sees(
            thing,
            "Established",
            "False",
            "TerminatingCompositeResource",
            "cannot let the API refuse new composites: ",
            "x-kubernetes-validations[0].rule",
            "does not know optionalOldSelf, which such a rule needs: Kubernetes 1.30 and later do",
            "set spec.deletion to Cascade",
            judged="Terminating",
        )
        assert await author.get(thing.crd) is not None
        await author.apply(thing, deletion="Cascade")
        await author.gone(thing.path)
    await author.gone(thing.crd)
