"""What docs/retirement.md tells people to do: its commands, and what they print there."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from crdkeeper.api.versionretirement import MIGRATED, STEPS, UNUSED
from crdkeeper.cluster.resources.access import Right
from demo.terminal import ROOT
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, Operator, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, MIGRATIONS
from tests.cluster.retirement.scene import (
    AT_ONCE,
    RETIREMENTS,
    assert_retired,
    moved,
    retire,
    until_due,
    until_ready,
)
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster

PAGE = (ROOT / "docs" / "retirement.md").read_text(encoding="utf-8")
GROUP = "shop.example.com"
VARYING = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d+s\b|127\.0\.0\.1:\d+|(?<=revision )\d+|…")
"""Times, periods, addresses and revisions, and what a transcript leaves out."""


def transcript(after: str) -> list[str]:
    """The lines of the first indented block after a line of the page that begins so."""
    found = re.search(rf"^{re.escape(after)}.*\n\n((?: {{4}}.*\n|\n)+)", PAGE, re.MULTILINE)
    assert found is not None, f"the page has no transcript after: {after}"
    return [each[4:] for each in found[1].rstrip().splitlines()]


def steps(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each command of a transcript, and the lines that it prints, as far as they are shown."""
    for part in "\n".join(lines).split("$ ")[1:]:
        command, *printed = part.splitlines()
        yield command, [each for each in printed if each != "…"]


def is_as_shown(line: str, shown: str) -> bool:
    """Whether a line is that of the page, but for spaces and for what is different each time."""
    pieces: list[str] = []
    end = 0
    for found in VARYING.finditer(shown):
        pieces += [re.escape(shown[end : found.start()]), ".*" if found[0] == "…" else r"\S+"]
        end = found.end()
    pattern = "".join((*pieces, re.escape(shown[end:])))
    return re.fullmatch(re.sub(r"(?:\\ )+", " +", pattern), line.rstrip()) is not None


class Person:
    """Types commands into a shell, whose `kubectl` and `crdkeeper` are those of the tests."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._folder = folder
        programs = (binaries.find().kubectl.parent, Path(sys.executable).parent)
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
            "KUBECONFIG": str(cluster.kubeconfig),
            "KUBECACHEDIR": str(folder / "cache"),
            "KUBERC": "off",
        }

    async def types(self, command: str, given: str = "") -> str:
        """What a command prints; it must succeed."""
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout

    async def sees(self, command: str, shown: list[str]) -> None:
        """Types a command until it prints these lines; only what reads is typed again."""
        last: list[str] = []

        async def look() -> bool:
            last[:] = (await self.types(command)).splitlines()
            same = len(last) >= len(shown) and all(map(is_as_shown, last, shown))
            assert same or command.startswith("kubectl get"), (command, last)
            return same

        await eventually(look, every=0.3, otherwise=lambda: f"{command} prints {last}, not {shown}")


@pytest.fixture
def person(installed: Cluster, tmp_path: Path) -> Person:
    """A reader of the page, with the rights of an admin."""
    return Person(installed, tmp_path)


async def test_the_first_transcript(admin: Admin, operator: Operator, person: Person, tmp_path: Path) -> None:
    kind = await moved(admin, GROUP, 3)
    document = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    assert document["spec"]["resource"] == {"group": kind.group, "resource": kind.plural}
    # No test waits for a quiet period that may end before a busy machine has looked.
    spec = document["spec"] | {"quietPeriod": "3600s", "migration": AT_ONCE}
    (tmp_path / "databases-v1alpha1.yaml").write_text(json.dumps(document | {"spec": spec}))
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    path = f"{RETIREMENTS}/{document['metadata']['name']}"
    admin.cleans_up(path)
    admin.cleans_up(f"{CLUSTER_ROLES}/crdkeeper-retire-shop")

    commands = [*steps(transcript("A retirement with three objects and a quiet period of 20 seconds"))]
    for command, printed in commands:
        if command.startswith("kubectl wait"):
            await admin.merge(path, {"spec": {"quietPeriod": "1s"}})
        await person.sees(command, printed)
        if "retirer-role.yaml" in command:
            crd = Right("retire", "apiextensions.k8s.io", "customresourcedefinitions", name=kind.name)
            await admin.until_permitted([crd, Right("list", kind.group, kind.plural)])
    assert len(commands) == 8
    await assert_retired(admin, kind, 3)


async def test_what_retire_status_prints_takes_each_step(
    admin: Admin, operator: Operator, shell: CommandLine, person: Person, group: str
) -> None:
    kind = await moved(admin, group, 3)
    await admin.opt_in(group)
    name = await retire(admin, kind, mode="Guide")
    for step in STEPS:
        if step == UNUSED:
            continue  # only time takes it
        await until_due(admin, name, step)
        told = (await shell.run("retire", "status", name)).stdout.splitlines()
        due = next(number for number, each in enumerate(told) if each.startswith("Due: "))
        if step == MIGRATED:
            path = "jsonpath={.status.due.manifest}"
            manifest = await person.types(f"kubectl get vret {name} -o '{path}'")
            created = json.loads(await person.types("kubectl create -o json -f -", manifest))
            admin.cleans_up(f"{MIGRATIONS}/{created['metadata']['name']}")
            continue
        command = told[told.index("Or:", due) + 1].strip()
        assert command.startswith(f"kubectl patch crd {kind.name} ")
        await person.types(command)
    await until_ready(admin, name, "True", "Removed")
    await assert_retired(admin, kind, 3)


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_DEMO"), reason="CRDKEEPER_DEMO is not set")
@pytest.mark.timeout(600)
async def test_the_transcript_of_the_demo(person: Person) -> None:
    left = iter((await person.types(f"cd {ROOT} && python -m demo retirement")).splitlines())
    begin = transcript("From `make demo-retirement`")
    end = transcript("After the removal nothing is undone.")
    for line in filter(None, begin + end):
        assert any(is_as_shown(each, line) for each in left), f"not printed, or not there: {line}"
