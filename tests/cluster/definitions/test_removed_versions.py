"""What the API server does when a version is removed from spec.versions, and that `diff` reports it."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, Answer
from crdkeeper.core.compatibility.change import Audience, Change, Impact
from crdkeeper.core.compatibility.compare import compare
from crdkeeper.core.removedversions import APPLY_ANSWER
from tests.cluster.harness import Admin, CustomKind
from tests.cluster.harness.waiting import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Crd = dict[str, Any]


def without(crd: Crd, version: str) -> Crd:
    """The CRD without a version; then another one stores."""
    new = copy.deepcopy(crd)
    new["spec"]["versions"] = [each for each in new["spec"]["versions"] if each["name"] != version]
    if not any(each["storage"] for each in new["spec"]["versions"]):
        new["spec"]["versions"][0]["storage"] = True
    return new


def renamed(crd: Crd, version: str) -> Crd:
    """The CRD with another name for a version."""
    new = copy.deepcopy(crd)
    for each in new["spec"]["versions"]:
        if each["name"] == version:
            each["name"] = "v3"
    return new


def _said(old: Crd, new: Crd, id: str) -> Sequence[Change]:
    return [each for each in compare(old, new).changes if each.kind.id == id]


@pytest.mark.parametrize("change", [without, renamed])
@pytest.mark.parametrize("served", [True, False])
async def test_the_removal_of_a_stored_version_is_refused(
    admin: Admin, group: str, served: bool, change: Callable[[Crd, str], Crd]
) -> None:
    kind = CustomKind(group).changed("v1", served=served)
    await admin.apply_definition(kind)
    file = kind.to_object()
    new = change(file, "v1")

    live, answer = await _put(admin, kind, new, dry_run=True)

    assert answer.code == 422
    message = answer.json()["message"]
    assert "missing from spec.versions" in message
    # The file says which version stores; the live CRD names it in status.
    for old in (file, live):
        (said,) = _said(old, new, "stored-version-removed")
        assert (said.severity, said.effects[Audience.OPERATORS]) == (Impact.BREAKING, Impact.BREAKING)
        assert said.message in message


async def test_the_removal_of_a_version_that_once_stored_is_refused(admin: Admin, group: str) -> None:
    kind = CustomKind(group)
    await admin.apply_definition(kind)
    await admin.apply_definition(kind.storing("v2"))
    file = kind.storing("v2").to_object()
    new = without(file, "v1")

    live, answer = await _put(admin, kind, new, dry_run=True)

    (said,) = _said(live, new, "stored-version-removed")
    assert answer.code == 422
    assert said.message in answer.json()["message"]
    # The file alone does not know.
    (maybe,) = _said(file, new, "version-maybe-stored")
    assert maybe.severity is Impact.RISKY


async def _put(admin: Admin, kind: CustomKind, new: Crd, *, dry_run: bool = False) -> tuple[Crd, Answer]:
    """Replace the CRD: what it was before, and the answer. Others may write to it meanwhile."""
    path = f"{CRDS}/{kind.name}{'?dryRun=All' if dry_run else ''}"

    async def put() -> tuple[Crd, Answer] | None:
        live = await admin.definition(kind)
        metadata = {**new["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
        content = orjson.dumps({**new, "metadata": metadata, "status": live["status"]})
        answer = await admin.client.send("PUT", path, content=content)
        return (live, answer) if answer.code != 409 else None

    return await eventually(put)


async def test_apply_fails_where_managed_fields_name_a_removed_version(admin: Admin, group: str) -> None:
    kind = CustomKind(group).storing("v2")
    await admin.apply_definition(kind)
    await admin.create_instances(kind, [kind.instance("old", version="v1"), kind.instance("new")])
    status = f"{kind.path('new', version='v1')}/status?fieldManager=controller"
    await admin.create_instances(kind, [kind.instance("untouched")])
    await admin.client.request("PATCH", status, {"status": {"readyReplicas": 2}}, content_type=MERGE_PATCH)

    async def code(name: str, manager: str, **body: Any) -> int:
        content = orjson.dumps({**kind.instance(name), **body})
        # A dry run: a successful apply would replace its manager's entry.
        path = f"{kind.path(name)}?fieldManager={manager}&force=true&dryRun=All"

        async def served() -> Answer | None:
            answer = await admin.client.send("PATCH", path, content=content, content_type=APPLY_PATCH)
            return answer if answer.code != 429 else None  # as right after a change of the CRD

        answer = await eventually(served, otherwise=lambda: f"{kind.name} is not served")
        assert answer.code == 200 or APPLY_ANSWER in answer.json()["message"]
        return answer.code

    await admin.apply_definition(kind.changed("v1", served=False))
    assert await code("old", "admin") == 200
    before = kind.to_object()
    _, answer = await _put(admin, kind, without(before, "v1"))
    assert answer.code == 200

    async def fails() -> bool:
        return await code("old", "admin") == 500

    await eventually(fails, otherwise=lambda: "server-side apply still succeeds")
    assert [await code(name, "somebody-else") for name in ("old", "new", "untouched")] == [500, 500, 200]
    patch = {"metadata": {"labels": {"a": "b"}}}
    path = f"{kind.path('new')}?fieldManager=patcher"
    patched = await admin.client.request("PATCH", path, patch, content_type=MERGE_PATCH)
    assert "patcher" not in {each["manager"] for each in patched["metadata"]["managedFields"]}
    (said,) = _said(before, without(before, "v1"), "apply-of-removed-version")
    assert (said.severity, dict(said.effects)) == (Impact.RISKY, {Audience.WRITERS: Impact.RISKY})
    assert APPLY_ANSWER in said.kind.why
