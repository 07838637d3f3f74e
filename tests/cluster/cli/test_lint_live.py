"""`crdkeeper lint` of a live cluster."""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import CustomKind, eventually
from tests.controlplane.cluster import Cluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = f"lint-live-{uuid4().hex[:8]}.example.com"
LABELS = {"test": GROUP}
FIRST = CustomKind(GROUP, labels=LABELS)
SECOND = CustomKind(GROUP, plural="stores", labels=LABELS)
THIRD = CustomKind(GROUP, plural="caches", kind="Cache")


@pytest.fixture
async def client(plane: Cluster) -> AsyncIterator[Client]:
    """Deletes the CRDs at the end."""
    async with Client(Connection(plane.kubeconfig)) as opened:
        yield opened
        for each in (FIRST, SECOND, THIRD):
            await opened.send("DELETE", f"{CRDS}/{each.name}")


async def _has(client: Client, kind: CustomKind, type_: str, status: str) -> None:
    """Returns when the API server has set that condition."""

    async def settled() -> bool:
        found = await client.request("GET", f"{CRDS}/{kind.name}")
        conditions = (found.get("status") or {}).get("conditions") or ()
        return any(each["type"] == type_ and each["status"] == status for each in conditions)

    await eventually(settled, otherwise=lambda: f"{kind.name} does not become {type_}={status}")


async def test_by_names_and_labels(client: Client, shell: CommandLine) -> None:
    # Of two CRDs that claim one kind, the second is never established.
    await client.request("POST", CRDS, FIRST.to_object())
    await _has(client, FIRST, "Established", "True")
    await client.request("POST", CRDS, SECOND.to_object())
    await _has(client, SECOND, "NamesAccepted", "False")
    await _has(client, SECOND, "Established", "False")

    named = await shell.run("lint", FIRST.name)
    assert (named.exit_code, "error" in named.stdout) == (0, False)
    assert named.stderr.startswith("1 CRD: 0 errors, ")

    selected = await shell.run("lint", "-l", f"test={GROUP}", "-o", "json")
    assert selected.exit_code == 1
    document = json.loads(selected.stdout)
    assert document["checked"] == 2
    errors = [each for each in document["findings"] if each["severity"] == "error"]
    assert {each["definition"] for each in errors} == {SECOND.name}
    assert {each["id"] for each in errors} == {"server-condition"}
    assert "file" not in errors[0]
    said = " ".join(each["message"] for each in errors)
    assert (
        "NamesAccepted=False (KindConflict): " in said or "NamesAccepted=False (ListKindConflict): " in said
    )
    assert "Established=False (NotAccepted): " in said

    everything = await shell.run("lint", "-o", "json")
    assert json.loads(everything.stdout)["checked"] >= 2

    absent = await shell.run("lint", f"database.{GROUP}", FIRST.name)
    assert absent.exit_code == 2
    assert f"Error: no CRD database.{GROUP}; did you mean {FIRST.name}?\n" in absent.stderr


async def test_an_annotation_holds_in_the_cluster(client: Client, shell: CommandLine) -> None:
    crd = THIRD.to_object()
    ignore = "description *: Our users know.\nboolean *: There is none.\n"
    crd["metadata"]["annotations"] = {"lint.crdkeeper.dev/ignore": ignore}
    await client.request("POST", CRDS, crd)
    done = await shell.run("lint", THIRD.name, "--all", "-o", "json")
    document = json.loads(done.stdout)
    assert {each["id"] for each in document["ignored"]} == {"description"}
    unused = [each["message"] for each in document["findings"] if each["id"] == "ignore-unused"]
    assert unused == ["boolean is ignored, but there is no such finding here"]
