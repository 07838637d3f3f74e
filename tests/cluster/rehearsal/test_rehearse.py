"""`crdkeeper rehearse` for its users: its output, its permissions, and that it leaves nothing behind."""

import asyncio
import copy
import signal
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.cluster.resources.definitions import get_definition_object, list_definition_objects
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.rehearsal.shadow import LABEL, STALE
from crdkeeper.operations.rehearsal import shadow as shadow_module
from crdkeeper.operations.rehearsal.proof import ShadowUse
from crdkeeper.operations.rehearsal.run import Conversions
from crdkeeper.operations.rehearsal.shadow import Shadow, ShadowFailed
from tests.cluster.harness import eventually
from tests.cluster.rehearsal.scene import CRDS
from tests.cluster.rehearsal.stage import NUMBER, Json, Stage, crd, widgets, with_spec

CHANGES: tuple[tuple[Json, dict[str, int]], ...] = (
    (with_spec(note={"type": "string"}), {}),
    (with_spec(zone={"type": "string", "default": "a"}), {"Defaulted": 7}),
    (with_spec(port=None), {"Pruned": 7}),
    (with_spec(host={"type": "string", "maxLength": 3}), {"Refused": 3}),
    (with_spec(port={"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5"}]}), {"Refused": 2}),
    (
        with_spec(tags={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        {"Refused": 1},
    ),
    ({**with_spec(zone={"type": "string"}), "required": ["zone"]}, {"Refused": 7}),
    (with_spec(tags={"type": "array", "items": {"type": "integer"}}), {"Refused": 7}),
)
"""Schemas, and the affected objects."""


async def test_all_objects_are_counted_and_nothing_is_written(stage: Stage) -> None:
    before = await stage.state()

    async def check(spec: Json, affected: dict[str, int], use: ShadowUse) -> None:
        report = await stage.rehearse(crd(stage.group, spec), use=use)
        assert (report["objects"], report["affected"]) == (NUMBER, affected), spec
        assert report["verdict"] == ("Safe" if affected.keys() <= {"Defaulted"} else "Harmful")
        proved = NUMBER if use is ShadowUse.ALWAYS else 0
        assert report["objectsByServer"] == proved
        assert report["judgedBy"] == ("Server" if proved else "Engine")
        for finding in report["findings"]:
            by_server = bool(proved) and finding["effect"] == "Refused"
            assert finding["judgedBy"] == ("Server" if by_server else "Engine"), finding

    async with asyncio.TaskGroup() as tasks:
        for change in CHANGES:
            for use in ShadowUse:
                tasks.create_task(check(*change, use))
    assert await stage.state() == before
    assert await stage.shadows() == []


async def _text_names_fields_messages_and_objects(stage: Stage) -> None:
    new = stage.file(
        "new.yaml", crd(stage.group, with_spec(host={"type": "string", "maxLength": 5}, port=None))
    )

    done = await stage.shell.run("rehearse", "-f", new, "--shadow", "always")

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{stage.name}: 7 objects rehearsed by the engine and the API server",
        "",
        "Pruned (a field is lost for all who read it): 7 objects",
        "  spec.port (v1): 7 objects",
        "      default/w0, default/w1, default/w2, default/w3, default/w4, …",
        "",
        "Refused (refused if it is created again, or if the field changes): 1 object",
        "  spec.host: Too long: may not be more than 5 bytes (v1): 1 object, as the API server says",
        "      default/w6",
        "",
        "Something is lost or refused.",
    ]


async def _one_that_is_refused_and_one_that_is_new(stage: Stage) -> None:
    renamed = crd(stage.group)
    renamed["spec"]["versions"][0]["name"] = "v2"
    report = await stage.rehearse(renamed)
    assert (report["verdict"], report["objects"]) == ("Rejected", 0)
    assert any("status.storedVersions[0]" in each for each in report["rejections"])

    other = f"other-{stage.group}"
    report = await stage.rehearse(crd(other))
    assert (report["verdict"], report["isNew"]) == ("Safe", True)
    assert (await stage.rehearse(crd(other, {"type": "nonsense"})))["verdict"] == "Rejected"
    assert await get_definition_object(stage.client, f"widgets.{other}") is None


async def _a_webhook_that_cannot_be_asked_leaves_it_open(stage: Stage) -> None:
    new = crd(stage.group)
    new["spec"]["versions"].append(
        {**copy.deepcopy(new["spec"]["versions"][0]), "name": "v2", "storage": False}
    )
    new["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"url": "https://example.invalid/convert"},
            "conversionReviewVersions": ["v1"],
        },
    }
    report = await stage.rehearse(new)
    assert (report["verdict"], report["objects"], report["affected"]) == ("Uncertain", NUMBER, {})
    assert report["doubts"] == [
        "https://example.invalid/convert converts, and what it makes of objects is not known: what is read "
        "at v2 was not rehearsed; give its rules with --rules"
    ]

    spec = {
        "resource": {"group": stage.group, "resource": "widgets"},
        "hub": "v1",
        "spokes": [{"version": "v2", "rules": []}],
    }

    def rules(accepted: Mapping[str, Any]) -> Conversion:
        made = compile_conversion(VersionConversionSpec.model_validate(spec), schemas_of(accepted))
        assert isinstance(made, Conversion)
        return made

    report = await stage.rehearse(new, Conversions(new=rules))
    assert (report["verdict"], report["doubts"]) == ("Safe", [])


async def test_what_is_told_of_definitions_of_all_kinds(stage: Stage) -> None:
    async with asyncio.TaskGroup() as tasks:
        for tell in (
            _text_names_fields_messages_and_objects,
            _one_that_is_refused_and_one_that_is_new,
            _a_webhook_that_cannot_be_asked_leaves_it_open,
        ):
            tasks.create_task(tell(stage))
    assert await stage.shadows() == []


async def test_objects_that_may_be_stored_in_another_version(stage: Stage) -> None:
    def two(storage: str, **first: Json) -> Json:
        found = crd(stage.group, with_spec(**first))
        other = crd(stage.group, with_spec(port=None))["spec"]["versions"][0]
        found["spec"]["versions"].append({**other, "name": "v2"})
        for each in found["spec"]["versions"]:
            each["storage"] = each["name"] == storage
        return found

    for storage in ("v1", "v2"):
        assert await stage.scene.put(stage.scene.marked(two(storage))) is None

    # The list at v2 does not show the port, which readers of v1 still get.
    report = await stage.rehearse(two("v2", port=None))
    assert (report["verdict"], report["affected"]) == ("Uncertain", {"Indeterminate": NUMBER})
    assert "is stored in v1: migrate" in report["findings"][0]["message"]
    report = await stage.rehearse(two("v2", more={"type": "string"}))
    assert (report["verdict"], report["affected"]) == ("Safe", {})


@pytest.mark.usefixtures("waiting")
async def test_told_to_stop_it_removes_the_shadow(stage: Stage) -> None:
    new = stage.file("new.yaml", crd(stage.group))
    numbers = (signal.SIGINT, signal.SIGTERM)
    commands = [stage.shell.start("rehearse", "-f", new, "--shadow", "always") for _ in numbers]

    async def both() -> bool:
        return len(await stage.shadows()) == len(commands)

    await eventually(both)
    for command, number in zip(commands, numbers, strict=True):
        command.signal(number)

    done = [await each.done() for each in commands]
    assert [each.exit_code for each in done] == [128 + number for number in numbers]
    assert {each.stderr for each in done} == {"Stopped. Nothing was left in the cluster.\n"}
    assert await stage.shadows() == []


class Later(Client):
    """A client whose clock is ahead."""

    def now(self) -> datetime:
        return super().now() + STALE + timedelta(minutes=1)


@pytest.mark.usefixtures("waiting")
async def test_what_a_killed_rehearsal_left_is_removed_by_the_next_one(stage: Stage) -> None:
    new = stage.file("new.yaml", crd(stage.group))
    command = stage.shell.start("rehearse", "-f", new, "--shadow", "always")
    await eventually(stage.shadows)
    command.kill()
    await command.done()
    assert len(await stage.shadows()) == 1

    # Also by one that makes no shadow itself.
    done = await stage.shell.run("rehearse", "-f", new, "--shadow", "never")
    assert done.exit_code == 0
    assert await stage.shadows() == []


async def test_what_a_killed_rehearsal_of_another_machine_left_is_removed_when_it_is_old(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_module, "this_process", lambda: "another-machine.1.1")
    definition = await get_definition_object(stage.client, stage.name)
    assert definition is not None
    async with Shadow(stage.client, definition) as left:
        # It is not removed while it could be in use, and the two do not block each other.
        report = await stage.rehearse(crd(stage.group))
        assert (report["verdict"], report["objects"]) == ("Safe", NUMBER)
        assert [each["metadata"]["name"] for each in await stage.shadows()] == [left.name]

        others = await list_definition_objects(stage.client, LABEL)
        if len([each for each in others if "deletionTimestamp" not in each["metadata"]]) > 1:
            pytest.skip("somebody else rehearses in this cluster, whose shadow would be removed")
        async with Later(Connection(stage.plane.kubeconfig)) as later, Shadow(later, definition) as shadow:
            assert [each["metadata"]["name"] for each in await stage.shadows()] == [shadow.name]
        assert await stage.shadows() == []


async def test_a_namespace_that_is_gone_and_a_shadow_that_is_gone(stage: Stage) -> None:
    definition = await get_definition_object(stage.client, stage.name)
    assert definition is not None
    sent = widgets(stage.group)[1]
    async with Shadow(stage.client, definition) as shadow:
        answer = await shadow.judge(sent)
        assert answer is not None and answer.code == 201
        gone = {**sent, "metadata": {"name": "w", "namespace": f"gone-{uuid.uuid4().hex[:8]}"}}
        assert await shadow.judge(gone) is None

        await stage.client.request("DELETE", f"{CRDS}/{shadow.name}")

        async def refused() -> bool:
            try:
                await shadow.judge(sent)
            except ShadowFailed as error:
                return "was removed by another client" in str(error)
            return False  # its removal takes a moment

        await eventually(refused)
