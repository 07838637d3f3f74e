"""Cascade on the API server: composites that may not be deleted, and a policy that changes in the middle."""

import itertools
import threading
from collections.abc import AsyncIterator

import pytest

from crdkeeper.cluster.resources.compositedeletion import UNASKED
from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.authoring import CRDS, OWNER, Author, Definition
from tests.cluster.composition.test_composer_refusals import crd_of_other
from tests.cluster.composition.test_composer_refusals import policy as frozen
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
KEPT = [f"a{each:02}" for each in range(24)]
"""More than are deleted at once, and first in the list."""
COMPOSITES = 400
DELETED = 100
"""When the policy changes."""


@pytest.fixture
async def policy(author: Author, group: str) -> AsyncIterator[None]:
    """Nobody may delete what has the label kept."""
    meta = {"metadata": {"name": group}}
    kinds = {
        "validatingadmissionpolicies": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["DELETE"],
                        "resources": ["*"],
                    }
                ]
            },
            "validations": [
                {
                    "expression": "!('kept' in oldObject.metadata.?labels.orValue({}))",
                    "message": "it is kept",
                    "reason": "Invalid",
                }
            ],
        },
        "validatingadmissionpolicybindings": {"policyName": group, "validationActions": ["Deny"]},
    }
    for plural, spec in kinds.items():
        await author.client.request("POST", f"{ADMISSION}/{plural}", {**meta, "spec": spec})
    yield
    for plural in kinds:
        await author.delete(f"{ADMISSION}/{plural}/{group}")


async def test_composites_that_may_not_be_deleted(author: Author, group: str, policy: None) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    await author.make_composites(thing, KEPT, labels={"kept": ""})
    await author.make_composites(thing, [f"b{each:02}" for each in range(60)])

    async def in_force() -> bool:
        answer = await author.client.send("DELETE", f"{thing.objects}/{KEPT[-1]}?dryRun=All")
        return answer.code == 422

    await eventually(in_force)
    await author.delete(thing.path)

    async def all_others() -> bool:
        return await author.names(thing) == KEPT

    await eventually(all_others)
    await author.says(thing, "Established", "it is kept", f"default/{KEPT[0]}")

    # One goes by itself: that leads to another attempt.
    for name in KEPT:
        patch = {"metadata": {"labels": {"kept": None}}}
        await author.client.request("PATCH", f"{thing.objects}/{name}", patch, content_type=MERGE_PATCH)
    await author.delete(f"{thing.objects}/{KEPT[0]}")
    await author.gone(thing.path)
    await author.gone(thing.crd)


async def test_a_policy_that_changes_in_the_middle(
    proxied_author: Author, proxy: FaultProxy, group: str
) -> None:
    author, thing = proxied_author, Definition(group, "thing")
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    await author.make_composites(thing, [f"a{each:03}" for each in range(COMPOSITES)])
    held, numbers = threading.Event(), itertools.count()
    others = Fault("DELETE", rf"/{thing.plural}/", held=held, chance=lambda: next(numbers) >= DELETED)
    proxy.faults.append(others)
    await author.delete(thing.path)

    async def under_way() -> bool:
        return others.met >= 8

    try:
        await eventually(under_way)
        left = await author.names(thing)
        assert len(left) == COMPOSITES - DELETED
        await author.apply(thing, deletion="Orphan")
    finally:
        held.set()
    await author.gone(thing.path)
    kept = await author.names(thing)
    assert len(left) - UNASKED <= len(kept) < len(left)
    assert OWNER not in ((await author.get(thing.crd))["metadata"].get("annotations") or {})


@pytest.mark.parametrize("deletion", ["Cascade", "Protect"])
async def test_a_crd_that_nobody_may_delete(author: Author, group: str, deletion: str) -> None:
    """Neither its composites go, nor is its API closed."""
    thing, names = Definition(group, "thing"), ["a", "b"] if deletion == "Cascade" else []
    await author.put(f"{CRDS}/probes.{group}", crd_of_other(group, "probe"))
    await author.apply(thing, deletion=deletion)
    await author.ready(thing)
    await author.make_composites(thing, names)
    before = (await author.get(thing.crd))["spec"]
    async with frozen(author, group, "DELETE", "customresourcedefinitions"):
        await author.delete(thing.path)
        said = "cannot delete the CRD, as a dry run shows", "CRDs are frozen until Monday"
        await author.says(thing, "Established", *said)
        crd = await author.get(thing.crd)
        assert crd["spec"] == before
        assert "deletionTimestamp" not in crd["metadata"]
        assert await author.names(thing) == names
    await author.gone(thing.path)
    await author.gone(thing.crd)
