"""What docs/composites.md and README.md begin with: their commands, run as they are, print what they show."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crdkeeper.cluster.transport.client import ApiError, Client
from demo.composingstory import FILES
from demo.terminal import ROOT
from tests.cluster.composition.composerscene import NAME, OBJECTS, PATH, apply, database, gone, ready
from tests.cluster.harness import Operator, eventually
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import document, version

ROLE = "clusterrole/crdkeeper-compose-platform"
COLUMN = {"name": "Engine", "type": "string", "jsonPath": ".spec.engine"}
PAGE = (ROOT / "docs" / "composites.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILE = (ROOT / FILES / "database.yaml").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    """The page's blocks of code of a kind, which is empty for a console."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language == kind]


def steps() -> Iterator[tuple[str, list[str]]]:
    """Each command of the first two blocks, but for the installation, and the lines that it prints."""
    for block in blocks("")[:2]:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            end = lines.index("END") + 1 if lines[0].endswith("<<END") else 1
            if " -k manifests" not in lines[0]:
                yield "\n".join(lines[:end]), lines[end:]


def without_age(lines: list[str]) -> list[list[str]]:
    """The words of each line but the last one, which is the age of an object."""
    return [each.split()[:-1] for each in lines]


def run(command: str, cluster: Cluster, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command of the page in a folder."""
    environment = {
        **os.environ,
        "PATH": f"{binaries.find().kubectl.parent}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.kubeconfig),
        "KUBECACHEDIR": str(folder / "cache"),
        "KUBERC": "off",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


async def printed(command: str, shown: list[str], cluster: Cluster, folder: Path) -> None:
    """Run a command of the page until it prints what the page shows.

    Only what reads is run again: the conditions of a definition come one by one.
    """
    last: list[str] = []
    # By itself, kubectl waits for half a minute: not always enough on a busy machine.
    typed = command.replace("kubectl wait ", "kubectl wait --timeout=120s ")

    async def look() -> bool:
        done = await asyncio.to_thread(run, typed, cluster, folder)
        assert done.returncode == 0, (command, done.stdout)
        last[:] = done.stdout.splitlines()
        same = not shown or without_age(last) == without_age(shown)
        assert same or command.startswith("kubectl get"), (command, last)
        return same

    await eventually(look, otherwise=lambda: f"{command} prints {last}")


async def known(cluster: Cluster) -> None:
    """Returns once kubectl finds databases: an API server publishes an API a moment after it serves it."""

    async def look() -> bool:
        return "databases" in cluster.kubectl(
            "api-resources", "--api-group=platform.example.com", "--no-headers"
        )

    await eventually(look)


@pytest.fixture
def bare(composer: Operator, plane: Cluster) -> Iterator[Cluster]:
    """The cluster, in which nobody has permitted anything about composites."""
    yield plane
    plane.kubectl("delete", ROLE, "--ignore-not-found")


async def test_what_the_page_begins_with(bare: Cluster, client: Client, tmp_path: Path) -> None:
    assert blocks("yaml")[0] == FILE, "the demo and the page show the same"
    assert len(FILE.splitlines()) == 15
    assert f"```yaml\n{FILE}```\n" in README
    (tmp_path / "database.yaml").write_text(FILE)
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    commands = []
    for command, shown in steps():
        if command == "kubectl get databases":
            await known(bare)
        await printed(command, shown, bare, tmp_path)
        commands.append(command)
    assert len(commands) >= 7

    # The category of all composites, and the short name, for one whose kubectl has not seen an earlier API.
    (tmp_path / "other").mkdir()
    for name in ("composite", "db"):
        assert "orders" in run(f"kubectl get {name}", bare, tmp_path / "other").stdout
    kubectl = bare.kubectl
    too_long = r"metadata\.name: Too long: may not be more than 63"
    with pytest.raises(ApiError, match=too_long):
        await client.request("POST", OBJECTS, {**database("a" * 64), "spec": {}})
    await client.request("POST", OBJECTS, {**database("a" * 63), "spec": {}})
    kubectl("delete", "databases", "--all")
    kubectl("delete", f"cxrd/{NAME}", "--wait=false")
    await gone(client, f"{PATH}/{NAME}")


async def test_columns_of_composites_are_behind_those_of_the_definition(
    plane: Cluster, client: Client, rights: None
) -> None:
    await apply(client, document(version(additionalPrinterColumns=[COLUMN]), deletion="Cascade"))
    await ready(client, "True", "WatchingCompositeResource")
    await known(plane)
    plane.kubectl("apply", "--server-side", "--filename=-", input=json.dumps(database("a")))
    said = {"status": "True", "reason": "Tried", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    conditions = [{"type": each, **said} for each in ("Synced", "Ready")]

    async def shown() -> bool:
        header, row = plane.kubectl("get", "databases").splitlines()
        assert header.split() == ["NAME", "ENGINE", "READY", "SYNCED", "COMPOSITION", "AGE"]
        return row.split()[:-1] == ["a", "MySQL", "True", "True"]

    patch = json.dumps({"status": {"conditions": conditions, "observedGeneration": 1}})
    plane.kubectl("patch", "database", "a", "--subresource=status", "--type=merge", f"--patch={patch}")
    await eventually(shown)
    plane.kubectl("delete", f"cxrd/{NAME}")


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_DEMO"), reason="CRDKEEPER_DEMO is not set")
@pytest.mark.timeout(600)
def test_make_demo_composites() -> None:
    """On a control plane of its own, as `make demo-composites` plays it; pods play it in `make e2e`."""
    done = subprocess.run(
        [sys.executable, "-m", "demo", "composites"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr}"
    assert "All done and cleaned up" in done.stdout
