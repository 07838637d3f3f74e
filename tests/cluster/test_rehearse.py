"""`crdkeeper rehearse` as users have it: what it tells, what it needs, and that it leaves nothing behind."""

import asyncio
import copy
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.cli.rehearse.output import document
from crdkeeper.cluster.resources.definitions import get_definition_object, list_definition_objects
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.rehearsal.shadow import GROUP, LABEL, STALE
from crdkeeper.operations.rehearsal.run import Conversions, NotPermitted, rehearse
from crdkeeper.operations.rehearsal.shadow import Shadow, ShadowFailed
from tests.cluster.commandline import CommandLine
from tests.cluster.harness import eventually
from tests.cluster.rehearsal.scene import CRDS, Scene
from tests.controlplane.cluster import Cluster

Json = Any
SPEC: Json = {
    "type": "object",
    "properties": {
        "host": {"type": "string"},
        "port": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
NUMBER = 7


def crd(group: str, spec: Json = SPEC, **fields: Any) -> Json:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **fields}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def with_spec(**properties: Json) -> Json:
    """The schema with some other fields; None for none."""
    found = {**copy.deepcopy(SPEC["properties"]), **properties}
    return {"type": "object", "properties": {name: each for name, each in found.items() if each is not None}}


def widgets(group: str) -> list[Json]:
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "Widget",
            "metadata": {"name": f"w{i}", "namespace": "default"},
            "spec": {"host": "h" * i, "port": i, "tags": ["a", "a"] if i == 5 else ["a"]},
        }
        for i in range(NUMBER)
    ]


class Stage:
    """A CRD with objects, and a command line."""

    def __init__(self, plane: Cluster, client: Client, shell: CommandLine, directory: Path) -> None:
        self.plane = plane
        self.client = client
        self.shell = shell
        self.group = f"rehearse-{uuid.uuid4().hex[:8]}.example.com"
        self.scene = Scene(client, crd(self.group))
        self._directory = directory

    @property
    def name(self) -> str:
        return self.scene.name

    async def set_up(self) -> None:
        definition = crd(self.group)
        assert await self.scene.put(self.scene.marked(definition)) is None
        await self.scene.create(definition, widgets(self.group))
        assert len(self.scene.objects) == NUMBER

    def file(self, name: str, *documents: Json) -> str:
        path = self._directory / name
        path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        return str(path)

    async def shadows(self) -> list[Json]:
        """The shadows of our CRD that are not being deleted."""
        found = await list_definition_objects(self.client, LABEL)
        return [
            each
            for each in found
            if each["metadata"]["annotations"][LABEL] == self.name
            and "deletionTimestamp" not in each["metadata"]
        ]

    async def state(self) -> Json:
        """All of ours in the cluster."""
        listed = await self.client.request("GET", f"/apis/{self.group}/v1/widgets")
        return [listed["items"], await get_definition_object(self.client, self.name)]

    async def rehearse(self, definition: Json, conversions: Conversions | None = None) -> Json:
        """The report, by a rehearsal in this process."""
        report = await rehearse(self.client, definition, conversions or Conversions())
        return document([report])["items"][0]


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[Callable[[Path], CommandLine]]:
    opened: list[CommandLine] = []

    def open_(kubeconfig: Path) -> CommandLine:
        opened.append(CommandLine(kubeconfig, tmp_path / f"shell-{len(opened)}"))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
async def stage(
    plane: Cluster, shells: Callable[[Path], CommandLine], tmp_path: Path
) -> AsyncIterator[Stage]:
    async with Client(Connection(plane.kubeconfig)) as client:
        made = Stage(plane, client, shells(plane.kubeconfig), tmp_path)
        try:
            await made.set_up()
            yield made
        finally:
            for each in await made.shadows():
                await client.send("DELETE", f"{CRDS}/{each['metadata']['name']}")
            await made.scene.delete()


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
"""Schemas, and the objects that are affected."""


async def test_all_objects_are_counted_and_nothing_is_written(stage: Stage) -> None:
    before = await stage.state()

    async def check(spec: Json, affected: dict[str, int]) -> None:
        report = await stage.rehearse(crd(stage.group, spec))
        assert (report["objects"], report["affected"]) == (NUMBER, affected), spec
        assert report["verdict"] == ("Safe" if affected.keys() <= {"Defaulted"} else "Harmful")

    async with asyncio.TaskGroup() as tasks:
        for change in CHANGES:
            tasks.create_task(check(*change))
    assert await stage.state() == before
    assert await stage.shadows() == []


async def _text_names_fields_messages_and_objects(stage: Stage) -> None:
    new = stage.file(
        "new.yaml", crd(stage.group, with_spec(host={"type": "string", "maxLength": 5}, port=None))
    )

    done = await stage.shell.run("rehearse", "-f", new)

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f"{stage.name}: 7 objects rehearsed by the API server",
        "",
        "Pruned (a field is lost for all who read it): 7 objects",
        "  spec.port (v1): 7 objects",
        "      default/w0, default/w1, default/w2, default/w3, default/w4, …",
        "",
        "Refused (refused if it is created anew, or if the field changes): 1 object",
        "  spec.host: Too long: may not be more than 5 bytes (v1): 1 object",
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
        "a webhook converts: what is read at v2 was not rehearsed; give the rules with --rules"
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

    # The list at v2 does not show the port, which is still there for who reads v1.
    report = await stage.rehearse(two("v2", port=None))
    assert (report["verdict"], report["affected"]) == ("Uncertain", {"Indeterminate": NUMBER})
    assert "is stored in v1: migrate" in report["findings"][0]["message"]
    report = await stage.rehearse(two("v2", more={"type": "string"}))
    assert (report["verdict"], report["affected"]) == ("Safe", {})


async def test_told_to_stop_it_removes_the_shadow(stage: Stage) -> None:
    new = stage.file("new.yaml", crd(stage.group))
    numbers = (signal.SIGINT, signal.SIGTERM)
    commands = [stage.shell.start("rehearse", "-f", new) for _ in numbers]

    async def both() -> bool:
        return len(await stage.shadows()) == len(commands)

    await eventually(both)
    for command, number in zip(commands, numbers, strict=True):
        command.signal(number)

    done = [await each.done() for each in commands]
    assert [each.exit_code for each in done] == [128 + number for number in numbers]
    assert {each.stderr for each in done} == {"Stopped; nothing is left behind.\n"}
    assert await stage.shadows() == []


class Later(Client):
    """A client to whom it is later than it is."""

    def now(self) -> datetime:
        return super().now() + STALE + timedelta(minutes=1)


async def test_what_a_killed_rehearsal_left_is_removed_by_a_later_one(stage: Stage) -> None:
    command = stage.shell.start("rehearse", "-f", stage.file("new.yaml", crd(stage.group)))
    left = await eventually(stage.shadows)
    command.kill()

    # It is not removed while it could be at work, and nobody is in the way of the other.
    report = await stage.rehearse(crd(stage.group))
    assert (report["verdict"], report["objects"]) == ("Safe", NUMBER)
    assert [each["metadata"]["name"] for each in await stage.shadows()] == [left[0]["metadata"]["name"]]

    others = await list_definition_objects(stage.client, LABEL)
    if len([each for each in others if "deletionTimestamp" not in each["metadata"]]) > 1:
        pytest.skip("somebody else rehearses in this cluster, whose shadow would be removed")
    definition = await get_definition_object(stage.client, stage.name)
    assert definition is not None
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
                return "was removed by somebody else" in str(error)
            return False  # its removal takes a moment

        await eventually(refused)


def rules_of(group: str) -> list[Json]:
    """The rights as docs/rehearsal.md has them."""
    return [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["get", "list", "create", "delete", "update"],
        },
        {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["create"]},
        {"apiGroups": [group], "resources": ["widgets"], "verbs": ["get", "list"]},
    ]


@asynccontextmanager
async def account(stage: Stage) -> AsyncIterator[tuple[Path, Callable[[Sequence[Json]], Any]]]:
    """A ServiceAccount's kubeconfig, and a way to give it rights."""
    name = f"rehearser-{uuid.uuid4().hex[:8]}"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await stage.client.request("POST", accounts, {"metadata": {"name": name}})
    await stage.client.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": []})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await stage.client.request("POST", f"{rbac}/clusterrolebindings", binding)

    async def grant(rules: Sequence[Json]) -> None:
        role = await stage.client.request("GET", f"{rbac}/clusterroles/{name}")
        await stage.client.request("PUT", f"{rbac}/clusterroles/{name}", {**role, "rules": list(rules)})

    try:
        yield stage.plane.service_account_kubeconfig("default", name), grant
    finally:
        for path in (f"{rbac}/clusterrolebindings", f"{rbac}/clusterroles", accounts):
            await stage.client.send("DELETE", f"{path}/{name}")


async def test_missing_rights_are_told_before_the_work_with_the_rules_to_add(stage: Stage) -> None:
    new = crd(stage.group)
    async with account(stage) as (kubeconfig, grant), Client(Connection(kubeconfig)) as client:

        async def said() -> str:
            try:
                await rehearse(client, new, Conversions())
            except (NotPermitted, ApiError) as error:
                return str(error)
            return "nothing"

        async def rules_to_add() -> str:
            return (await said()).partition("Add to a ClusterRole of this account:\n")[2]

        async def works() -> bool:
            return await said() == "nothing"

        added = await eventually(rules_to_add)
        assert await stage.shadows() == []
        await grant(yaml.safe_load(added))
        await eventually(works)
        await grant(rules_of(stage.group))
        await eventually(works)
