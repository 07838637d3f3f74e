"""`crdkeeper diff` against the CRDs of a cluster."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import CustomKind, Version
from tests.controlplane.cluster import Cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Definitions:
    """Applies CRDs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._names: set[str] = set()

    async def apply(self, kind: CustomKind) -> None:
        self._names.add(kind.name)
        path = f"{CRDS}/{kind.name}?fieldManager=test&force=true"
        await self._client.request("PATCH", path, kind.to_object(), content_type=APPLY_PATCH)

    async def clean_up(self) -> None:
        for name in self._names:
            await self._client.request("DELETE", f"{CRDS}/{name}")


@pytest.fixture
async def definitions(plane: Cluster) -> AsyncIterator[Definitions]:
    async with Client(Connection(plane.kubeconfig)) as client:
        made = Definitions(client)
        yield made
        await made.clean_up()


def written(folder: Path, crd: dict[str, Any]) -> str:
    file = folder / "crd.json"
    file.write_text(json.dumps(crd, indent=2))
    return str(file)


async def test_what_was_applied_is_the_same(
    definitions: Definitions, group: str, shell: CommandLine, tmp_path: Path
) -> None:
    kind = CustomKind(group)
    await definitions.apply(kind)
    file = written(tmp_path, kind.to_object())

    for arguments in (("-f", file), ("--live", file)):
        done = await shell.run("diff", *arguments, "--fail-on=risky", "--all")
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout == "1 CRD compared. Changes: 0 breaking, 0 risky, 0 safe.\nCompatible.\n"


async def test_the_cluster_knows_what_is_stored(
    definitions: Definitions, group: str, shell: CommandLine, tmp_path: Path
) -> None:
    kind = CustomKind(group)
    await definitions.apply(kind)
    await definitions.apply(kind.storing("v2"))
    without = CustomKind(group, versions=(Version("v2", storage=True),))

    done = await shell.run("diff", "-f", written(tmp_path, without.to_object()))

    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.startswith(f"{kind.name}, v1\n  {tmp_path}/crd.json:")
    message = "spec.versions: missing from spec.versions; v1 was previously a storage version"
    assert f"breaking[stored-version-removed]: {message}" in done.stdout
    assert "the cluster:" not in done.stdout


async def test_what_the_cluster_refuses_is_said_before(
    definitions: Definitions, group: str, shell: CommandLine, tmp_path: Path
) -> None:
    kind = CustomKind(group)
    await definitions.apply(kind)
    crd = kind.to_object()
    crd["spec"]["scope"] = "Cluster"
    open_spec = {"x-kubernetes-preserve-unknown-fields": False}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = open_spec

    done = await shell.run("diff", "-f", written(tmp_path, crd), "-o", "json")

    assert done.exit_code == 1
    reported = {each["id"]: each for each in json.loads(done.stdout)["changes"]}
    assert reported["scope"]["was"] is None
    assert reported["scope"]["at"]["file"] == f"{tmp_path}/crd.json"
    assert "must be true or undefined" in reported["refused"]["message"]


async def test_a_crd_that_the_cluster_lacks_is_new(group: str, shell: CommandLine, tmp_path: Path) -> None:
    done = await shell.run("diff", "--all", "-f", written(tmp_path, CustomKind(group).to_object()))
    assert (done.exit_code, "safe[definition-added]" in done.stdout) == (0, True)
