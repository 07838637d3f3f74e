"""What stops a definition is said in its conditions: failing requests, webhooks, rights, finalizers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import Author, Definition, Json, without
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.admission import BINDINGS, POLICIES, WEBHOOKS, closed_port, silent_port
from tests.cluster.harness.faultproxy import Fault, FaultProxy
from tests.unit.core.composition.documents import schema, version


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose requests fail."""
    return proxied_author


@pytest.mark.parametrize(
    ("type_", "status", "reason", "method", "of"),
    [
        pytest.param("Accepted", "Unknown", "NotRead", "GET", "crd", id="read"),
        pytest.param("Established", "Unknown", "NotRead", "GET", "crd", id="established"),
        pytest.param("Accepted", "False", "Failed", "PATCH", "crd", id="apply"),
        pytest.param("Accepted", "False", "Failed", "PATCH", "path", id="finalizer"),
    ],
)
async def test_what_lasts_is_said_and_gets_over(
    author: Author,
    observer: Observer,
    proxy: FaultProxy,
    group: str,
    type_: str,
    status: str,
    reason: str,
    method: str,
    of: str,
) -> None:
    thing = Definition(group, "thing")
    other = Definition(group, "other")
    path = {"crd": thing.crd, "path": thing.path}[of]
    proxy.faults.append(Fault(method, rf"^{path}(\?|$)", 503))
    await author.apply(thing)
    # One that is in trouble never delays the others.
    await author.apply(other)
    await author.ready(other)
    await observer.sees(thing, type_, status, reason, "a fault of the test", judged="InProgress")
    proxy.faults.clear()
    await author.ready(thing)


async def test_compositions_that_cannot_be_listed(
    author: Author, observer: Observer, proxied: Operator, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    proxied.stop()
    proxy.faults.append(Fault("GET", r"/compositions\?limit=100", 503))
    proxied.start()
    said = "The composer cannot list Compositions or CompositionRevisions."
    await observer.sees(thing, "Offered", "Unknown", "CompositionsUnknown", said, judged="Current")
    proxy.faults.clear()
    await observer.sees(thing, "Offered", "False", "NoComposition", judged="Current")


@pytest.mark.parametrize("policy", ["Cascade", "Protect"])
async def test_who_holds_up_a_deletion_is_named(
    author: Author, observer: Observer, group: str, policy: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, deletion=policy)
    await author.ready(thing)
    names = ["a", "b", "c"]
    await author.make_composites(thing, names, finalizers=["example.com/bill"])
    # With Protect, somebody deletes the CRD: nothing can save the composites, but their finalizers hold them.
    await author.delete(thing.crd if policy == "Protect" else thing.path)
    said = "3 composites wait for their finalizers: default/a (example.com/bill), default/b"
    await observer.sees(
        thing,
        "Established",
        "False",
        "TerminatingCompositeResource",
        said,
        judged="InProgress" if policy == "Protect" else "Terminating",
    )
    for each in names:
        await author.client.request(
            "PATCH",
            f"{thing.objects}/{each}",
            {"metadata": {"finalizers": None}},
            content_type=MERGE_PATCH,
        )
    if policy == "Protect":
        await author.ready(thing)
    else:
        await author.gone(thing.path)
        await author.gone(thing.crd)


async def test_who_overwrites_the_crd_is_named(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    overwritten = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": thing.name},
        "spec": {"names": {"categories": ["rivals"]}},
    }

    async def rival() -> None:
        while True:
            await author.client.request(
                "PATCH",
                f"{thing.crd}?fieldManager=rival&force=true",
                overwritten,
                content_type=APPLY_PATCH,
            )
            await asyncio.sleep(0.05)

    task = asyncio.create_task(rival())
    try:
        said = ("rival", "spec.names.categories")
        await observer.sees(thing, "Accepted", "False", "Overwritten", *said, judged="Failed")
        before = (await author.get(thing.crd))["metadata"]["generation"]
        await asyncio.sleep(3.0)
        assert (await author.get(thing.crd))["metadata"]["generation"] <= before + 2
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError)
    # What the user wants now does not wait.
    await author.apply(thing, "more")

    async def ours() -> bool:
        # A request that was under way may have arrived since.
        rivals = "rivals" in (await author.get(thing.crd))["spec"]["names"]["categories"]
        return not rivals and await author.fields(thing) == ["more"]

    await eventually(ours)
    await author.ready(thing)


async def test_the_composer_signs_what_it_writes(author: Author, group: str) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, versions=[version(of=schema({"type": "array"}))])
    found = await author.ready(thing, "False", "Invalid")
    managers = {each["manager"] for each in found["metadata"]["managedFields"]}
    assert managers == {"user", "crdkeeper-composer"}

    async def event() -> Json:
        path = f"/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3D{thing.name}"
        return (await author.get(path))["items"]

    (reported,) = await eventually(event)
    assert (reported["reportingController"], reported["reason"]) == ("crdkeeper.dev/composer", "Invalid")


@asynccontextmanager
async def guard(author: Author, group: str, how: str, operation: str) -> AsyncIterator[str]:
    """Something refuses to create the CRDs of a group, or to delete its composite `a`; yields what it says.

    A policy that denies it, or a webhook at a port where nobody answers.
    """
    name = f"guard.{group}"
    rules = [
        {"apiGroups": [each], "apiVersions": ["*"], "operations": [operation], "resources": ["*"]}
        for each in ("apiextensions.k8s.io", group)
    ]
    parts: list[tuple[str, str, Json]]
    # Who may not delete the CRD deletes no composite at all.
    named = "request.name == 'a'" if operation == "DELETE" else f"request.name.contains('{group}')"
    ours = {"name": "ours", "expression": named}
    if how == "denying":
        policy = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [ours],
            "validations": [{"expression": "false", "message": "it is guarded", "reason": "Forbidden"}],
        }
        binding = {"policyName": name, "validationActions": ["Deny"]}
        parts = [
            (POLICIES, "ValidatingAdmissionPolicy", {"spec": policy}),
            (BINDINGS, "ValidatingAdmissionPolicyBinding", {"spec": binding}),
        ]
        async with _objects(author, name, parts):
            yield "denied request: it is guarded"
        return
    with closed_port() if how == "refusing" else silent_port() as port:
        hook = {
            "name": name,
            "clientConfig": {"url": f"https://127.0.0.1:{port}/validate"},
            "rules": rules,
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1,
            "matchConditions": [ours],
        }
        parts = [(WEBHOOKS, "ValidatingWebhookConfiguration", {"webhooks": [hook]})]
        async with _objects(author, name, parts):
            yield f'failed calling webhook "{name}"'


@asynccontextmanager
async def _objects(author: Author, name: str, parts: list[tuple[str, str, Json]]) -> AsyncIterator[None]:
    """Objects of admission, until the end of the block."""
    for collection, kind, content in parts:
        value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        await author.put(f"{collection}/{name}", {**value, **content})
    try:
        yield
    finally:
        for collection, *_ in reversed(parts):
            await author.delete(f"{collection}/{name}")


@pytest.mark.parametrize("how", ["denying", "refusing", "hanging"])
async def test_who_refuses_a_crd_or_its_composites_is_quoted(author: Author, group: str, how: str) -> None:
    thing = Definition(group, "thing")
    probe = Definition(group, "probe")
    async with guard(author, group, how, "CREATE") as said:

        async def in_force() -> bool:
            answer = await author.client.send(
                "PATCH",
                f"{probe.crd}?fieldManager=probe&dryRun=All",
                content=_crd(probe),
                content_type=APPLY_PATCH,
            )
            return said in str(answer.json().get("message"))

        await eventually(in_force)
        await author.apply(thing)
        await author.says(thing, "Ready", "cannot apply the CRD", said)
    await author.ready(thing)
    await author.make_composites(thing, ["a", "b"])
    async with guard(author, group, how, "DELETE") as said:

        async def deletion_in_force() -> bool:
            answer = await author.client.send("DELETE", f"{thing.objects}/a?dryRun=All")
            return said in str(answer.json().get("message"))

        await eventually(deletion_in_force)
        await author.apply(thing, deletion="Cascade")
        await author.delete(thing.path)
        await author.says(thing, "Established", "default/a: ", said)
        await author.gone(f"{thing.objects}/b")
        assert await author.names(thing) == ["a"]
    await author.gone(thing.path)


def _crd(definition: Definition) -> bytes:
    body: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name},
        "spec": {
            "group": definition.group,
            "scope": "Cluster",
            "names": {"kind": definition.kind, "plural": definition.plural},
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
    return orjson.dumps(body)


@pytest.mark.parametrize(
    ("verb", "step"),
    [("get", "create"), ("create", "create"), ("patch", "create"), ("delete", "delete")],
)
async def test_a_missing_right_to_crds_is_said_with_the_rule(
    author: Author, observer: Observer, group: str, verb: str, step: str
) -> None:
    thing = Definition(group, "thing")
    said = ("apiextensions.k8s.io", "customresourcedefinitions", verb, "manifests/composer")
    if step == "delete":
        await author.apply(thing)
        await author.ready(thing)
    async with without(author, verb, "customresourcedefinitions"):
        if step == "create":
            await author.apply(thing)
            await observer.sees(thing, "Accepted", "False", "RightMissing", *said, judged="Failed")
        else:
            await author.delete(thing.path)
            going = ("Established", "False", "TerminatingCompositeResource")
            await observer.sees(thing, *going, *said, judged="Terminating")
    if step == "create":
        await author.ready(thing)
    else:
        await author.gone(thing.path)
