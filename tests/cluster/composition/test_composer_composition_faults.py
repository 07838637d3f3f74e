"""Compositions while requests fail or rights are missing, and when a composer starts again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from tests.cluster.composition.authoring import CRDS, Author, Definition, without
from tests.cluster.composition.designing import REVISIONS, Designer, settings
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import Fault, FaultProxy

Json = Any


@pytest.fixture
async def designer(proxied_author: Author, group: str) -> AsyncIterator[Designer]:
    """A user who writes Compositions, for a definition that is served, behind the proxy."""
    definition = Definition(group, "thing")
    await proxied_author.apply(definition)
    await proxied_author.ready(definition)
    designer = Designer(proxied_author, definition)
    yield designer
    await designer.clean_up()


async def test_schemas_that_cannot_be_read(designer: Designer, proxy: FaultProxy) -> None:
    await designer.put("small", settings(engine="a"))
    await designer.ready("small")
    # Nothing changes for composites meanwhile.
    proxy.faults.append(Fault("GET", "^/openapi/v3", 503))
    await asyncio.sleep(6.0)
    await designer.put("small", settings(engine="b"))
    await designer.says("small", "Valid", "Unknown", "NotRead", "503", judged="InProgress")
    assert len(await designer.revisions("small")) == 1
    proxy.faults.clear()
    await designer.ready("small", 2)


async def test_a_revision_that_may_not_be_created(designer: Designer) -> None:
    rule = "{apiGroups: [crdkeeper.dev], resources: [compositionrevisions], verbs: [create]}"
    async with without(designer.author, "create", "compositionrevisions"):
        await designer.put("small", settings(engine="a"))
        said = f"{designer.name('small')}-1 cannot be created: "
        await designer.says("small", "Ready", "False", "RevisionFailed", said, rule, judged="Failed")
        await designer.says("small", "Valid", "True", "Valid", judged="Failed")
    await designer.ready("small")


async def test_a_revision_that_would_be_stored_without_a_field(designer: Designer) -> None:
    # As between the two steps of an upgrade.
    async with field_of_compositions(designer.author, "novel"):

        async def put() -> bool:
            try:
                await designer.put("small", settings(engine="a"), novel="x")
            except ApiError as error:
                if "novel" in str(error):
                    return False
                raise
            return True

        await eventually(put)
        said = "the API server changes spec.novel. The CRD of CompositionRevisions may be"
        await designer.says("small", "Ready", "False", "RevisionFailed", said, judged="Failed")
        await asyncio.sleep(2.0)
        assert await designer.revisions("small") == []
    await designer.ready("small", 1)
    assert [each["spec"]["revision"] for each in await designer.revisions("small")] == [1]


@asynccontextmanager
async def field_of_compositions(author: Author, name: str) -> AsyncIterator[None]:
    """Compositions can have this field of spec, and CompositionRevisions cannot."""
    path = f"{CRDS}/compositions.crdkeeper.dev"

    async def change(operation: Json) -> None:
        where = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
        patch = [{"path": f"{where}/{name}", **operation}]
        await author.client.request("PATCH", path, patch, content_type="application/json-patch+json")

    await change({"op": "add", "value": {"type": "string"}})
    try:
        yield
    finally:
        await change({"op": "remove"})


@pytest.mark.parametrize("code", [0, 429, 500])
async def test_an_answer_that_is_lost_makes_no_second_revision(
    designer: Designer, proxy: FaultProxy, code: int
) -> None:
    proxy.faults.append(Fault("POST", "/compositionrevisions[?]fieldManager", code, after=True, times=1))
    await designer.put("small", settings(engine="a"))
    await designer.ready("small")
    assert [each["spec"]["revision"] for each in await designer.revisions("small")] == [1]
    assert proxy.faults[0].met == 1


async def test_revisions_are_kept_while_composites_cannot_be_listed(
    designer: Designer, proxy: FaultProxy
) -> None:
    listed = Fault("GET", f"^{designer.definition.objects.partition('/namespaces')[0]}/things[?]limit", 503)
    await designer.put("small", settings(engine="1"), revisionHistoryLimit=0)
    await designer.ready("small")
    proxy.faults.append(listed)
    await designer.put("small", settings(engine="2"), revisionHistoryLimit=0)
    await designer.ready("small", 2)

    async def tried() -> bool:
        return listed.met > 3

    await eventually(tried)
    await asyncio.sleep(1.0)
    assert len(await designer.revisions("small")) == 2


async def test_a_composition_that_may_not_be_read(designer: Designer) -> None:
    rule = "{apiGroups: [crdkeeper.dev], resources: [compositions], verbs: [get]}"
    async with without(designer.author, "get", "compositions"):
        await designer.put("small", settings(engine="a"))
        said = ("is forbidden", rule)
        for type_ in ("Valid", "Ready"):
            await designer.says("small", type_, "Unknown", "NotRead", *said, judged="InProgress")
    # Else it would be seen within 15 seconds.
    await designer.put("small", settings(engine="b"))
    await designer.ready("small")


async def test_revisions_that_may_not_be_deleted(designer: Designer) -> None:
    rule = "{apiGroups: [crdkeeper.dev], resources: [compositionrevisions], verbs: [delete]}"
    async with without(designer.author, "delete", "compositionrevisions"):
        await designer.put("small", settings(engine="1"), revisionHistoryLimit=0)
        await designer.ready("small")
        await designer.put("small", settings(engine="2"), revisionHistoryLimit=0)
        said = ("-2 has the content of the Composition. Older ones", "is forbidden", rule)
        ready = ("Ready", "True", "RevisionsKept")
        await designer.says("small", *ready, *said, judged="Current", revision=2)
        assert len(await designer.revisions("small")) == 2
        # Somebody who may does it.
        (old, _) = await designer.revisions("small")
        await designer.author.delete(f"{REVISIONS}/{old['metadata']['name']}")
        await designer.ready("small", 2)


async def test_a_composer_that_starts_writes_nothing(
    designer: Designer, proxy: FaultProxy, proxied: Operator
) -> None:
    await designer.put("small", settings(engine="a"))
    await designer.put("large", settings(engine="${composite.spec.wrong}"))
    await designer.ready("small")
    await designer.says("large", "Ready", "False", "Invalid", judged="Failed")
    await proxy.until_quiet(6.0)
    proxied.stop()
    since = len(proxy.requests)
    await asyncio.to_thread(proxied.start)

    async def looked() -> bool:
        paths = [each.path for each in proxy.requests[since:]]
        return all(
            any(path.endswith(f"/{designer.name(each)}") for path in paths) for each in ("small", "large")
        )

    await eventually(looked)
    await asyncio.sleep(6.0)
    assert [str(each) for each in proxy.writes(since) if "/compositions/" in each.path] == []
