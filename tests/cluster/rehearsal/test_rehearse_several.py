"""`crdkeeper rehearse` of several CRDs: each has its report, whatever becomes of the others."""

import asyncio
import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.operations.rehearsal import run as run_module
from crdkeeper.operations.rehearsal.run import CannotRehearse
from crdkeeper.operations.rehearsal.source import pages
from tests.cluster.harness import eventually
from tests.cluster.rehearsal.scene import CRDS, Scene
from tests.cluster.rehearsal.stage import MAIL, NUMBER, Json, Stage, crd, undecided, widgets, with_spec


async def test_one_that_cannot_be_rehearsed_leaves_the_others_alone(stage: Stage) -> None:
    unserved = crd(f"unserved-{stage.group}")
    unserved["spec"]["versions"][0]["served"] = False
    await stage.client.request("POST", CRDS, unserved)
    try:
        files = stage.file("new.yaml", unserved, crd(stage.group))
        done = await stage.shell.run("rehearse", "-f", files, "-o", "json")
    finally:
        await stage.client.send("DELETE", f"{CRDS}/{unserved['metadata']['name']}")
    assert done.exit_code == 2
    assert [(each["name"], each["objects"]) for each in json.loads(done.stdout)["items"]] == [
        (stage.name, NUMBER)
    ]
    assert done.stderr == (
        f"Error: {unserved['metadata']['name']}: no version of {unserved['metadata']['name']} is served: "
        "its objects cannot be read\n"
    )


async def test_shadows_of_the_same_kind_at_the_same_time(stage: Stage) -> None:
    """CRDs of different groups may have the same kind; a shadow has the kind of its CRD if that is free."""
    scenes = [Scene(stage.client, crd(f"{letter}-{stage.group}")) for letter in "abc"]
    try:
        for each, letter in zip(scenes, "abc", strict=True):
            group = f"{letter}-{stage.group}"
            assert await each.put(each.marked(crd(group))) is None
            await each.create(crd(group), widgets(group))
        files = stage.file(
            "new.yaml", *(crd(f"{letter}-{stage.group}", with_spec(port=None)) for letter in "abc")
        )
        done = await stage.shell.run("rehearse", "-f", files, "-o", "json", "--shadow", "always")
        assert done.exit_code == 1, done.stderr
        items = json.loads(done.stdout)["items"]
        assert [each["name"] for each in items] == [each.name for each in scenes]
        assert all((each["judgedBy"], each["affected"]) == ("Server", {"Pruned": NUMBER}) for each in items)
    finally:
        for each in scenes:
            await each.delete()


async def test_the_api_server_is_asked_where_the_engine_is_not_certain(stage: Stage) -> None:
    await stage.scene.create(crd(stage.group), [undecided(stage.group)])

    file = stage.file("new.yaml", crd(stage.group, MAIL))
    found = {
        use: json.loads((await stage.shell.run("rehearse", "-f", file, "-o", "json", "--shadow", use)).stdout)
        for use in ("auto", "never")
    }
    (auto,), (never,) = (each["items"] for each in found.values())
    assert (auto["judgedBy"], auto["objectsByServer"], auto["objects"]) == ("Both", 1, NUMBER + 1)
    assert (never["judgedBy"], never["objectsByServer"]) == ("Engine", 0)
    assert auto["affected"] == never["affected"] == {"Refused": NUMBER, "Indeterminate": 1}
    assert await stage.shadows() == []


Hook = Callable[..., Any]


async def meanwhile(stage: Stage, monkeypatch: pytest.MonkeyPatch, what: Hook) -> Json:
    """The report of a rehearsal during which something happens, before the objects are read."""

    async def later(*arguments: Any) -> Any:
        await what()
        async for each in pages(*arguments):
            yield each

    monkeypatch.setattr(run_module, "pages", later)
    return await stage.rehearse(crd(stage.group))


async def test_a_crd_that_is_deleted_or_changed_in_the_meantime(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def change() -> None:
        assert await stage.scene.put(stage.scene.marked(crd(stage.group))) is None

    with monkeypatch.context() as patched:
        report = await meanwhile(stage, patched, change)
    assert report["verdict"] == "Uncertain"
    assert report["doubts"] == ["the CRD was changed in the meantime: rehearse again"]

    async def delete() -> None:
        await stage.client.request("DELETE", f"{CRDS}/{stage.name}")

        async def gone() -> bool:
            path = f"/apis/{stage.group}/v1/widgets"
            return (await stage.client.send("GET", path)).code == 404

        await eventually(gone)

    with pytest.raises(CannotRehearse, match="the CRD was deleted in the meantime"):
        await meanwhile(stage, monkeypatch, delete)
    assert await stage.shadows() == []


@pytest.mark.usefixtures("waiting")
async def test_many_at_a_time_are_stopped_with_all_of_their_shadows(stage: Stage) -> None:
    others = [crd(f"{letter}-{stage.group}") for letter in "abcd"]
    scenes = [Scene(stage.client, each) for each in others]
    try:
        async with asyncio.TaskGroup() as tasks:
            for each, document in zip(scenes, others, strict=True):
                tasks.create_task(each.put(each.marked(document)))
        for each, document in zip(scenes, others, strict=True):
            await each.create(document, widgets(document["spec"]["group"])[:1])
        file = stage.file("new.yaml", *others)
        command = stage.shell.start("rehearse", "-f", file, "--shadow", "always")
        names = {each.name for each in scenes}

        async def made() -> bool:
            return bool(await stage.shadows_of(names))

        await eventually(made)
        command.signal(signal.SIGINT)
        done = await command.done()
        assert done.exit_code == 130
        assert done.stderr == "Stopped. Nothing was left in the cluster.\n"
        assert await stage.shadows_of(names) == []
    finally:
        for each in scenes:
            await each.delete()
