"""What docs/retirement.md tells people to do: its commands, and what they print there."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.api.meta import API_VERSION
from crdkeeper.api.versionretirement import MIGRATED, STEPS, UNUSED
from crdkeeper.cluster.resources.access import Right
from demo.terminal import ROOT
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, CRDS, MIGRATIONS, OURS
from tests.cluster.retirement.scene import (
    AT_ONCE,
    NEW,
    OLD,
    RETIREMENTS,
    SLOWLY,
    assert_retired,
    change,
    install_composite_kinds,
    moved,
    permit,
    put_back,
    retire,
    until_due,
    until_ready,
)
from tests.controlplane import binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import NO_OPENAPI

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
    """Each command of a transcript, and what is shown of what it prints."""
    for part in "\n".join(lines).split("$ ")[1:]:
        command, *printed = part.splitlines()
        yield command, printed


def is_as_shown(line: str, shown: str) -> bool:
    """Whether a line is that of the page, but for spaces and for what is different each time."""
    pieces: list[str] = []
    end = 0
    for found in VARYING.finditer(shown):
        pieces += [re.escape(shown[end : found.start()]), ".*" if found[0] == "…" else r"\S+"]
        end = found.end()
    pattern = "".join((*pieces, re.escape(shown[end:])))
    return re.fullmatch(re.sub(r"(?:\\ )+", " +", pattern), line.rstrip()) is not None


def are_as_shown(printed: list[str], shown: list[str]) -> bool:
    """Whether these are the lines of the page, in which "…" stands for any lines that are left out."""
    left, leaves_out = iter(printed), False
    for line in shown:
        if line == "…":
            leaves_out = True
            continue
        candidates = left if leaves_out else islice(left, 1)
        if not any(is_as_shown(each, line) for each in candidates):
            return False
        leaves_out = False
    return leaves_out or not any(left)


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

    async def types(self, command: str, given: str = "", seconds: float = 240.0) -> str:
        """What a command prints; it must succeed in that time: its thread keeps the test from ending.

        It is typed again where kubectl has written nothing, as the API server was too busy to describe kinds.
        """

        async def typed() -> subprocess.CompletedProcess[str] | None:
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
                timeout=seconds,
            )
            return done if NO_OPENAPI not in done.stdout else None

        done = await eventually(typed, every=0.5, otherwise=lambda: f"{command}: {NO_OPENAPI}")
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout

    async def sees(self, command: str, shown: list[str]) -> None:
        """Types a command until it prints these lines; only what reads is typed again."""
        last: list[str] = []

        async def look() -> bool:
            last[:] = (await self.types(command)).splitlines()
            same = are_as_shown(last, shown)
            assert same or command.startswith(("kubectl get", "crdkeeper retire status")), (command, last)
            return same

        await eventually(look, every=0.3, otherwise=lambda: f"{command} prints {last}, not {shown}")


@pytest.fixture
def person(installed: Cluster, tmp_path: Path) -> Person:
    """A reader of the page, with the rights of an admin."""
    return Person(installed, tmp_path)


async def _moved(admin: Admin) -> CustomKind:
    """The kind of the page with three objects, once that of another test is gone."""

    async def gone() -> bool:
        return await admin.find(f"{CRDS}/{CustomKind(GROUP).name}") is None

    await eventually(gone, otherwise=lambda: f"the kind of {GROUP} is still there")
    return await moved(admin, GROUP, 3)


def _requested(admin: Admin, folder: Path, **spec: Any) -> str:
    """Writes the page's retirement, with other fields of its spec, to a file; returns its path in the API.

    No test waits for a quiet period that may end before a busy machine has looked.
    """
    document = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    document["spec"] |= {"quietPeriod": "3600s", "migration": AT_ONCE, **spec}
    (folder / "databases-v1alpha1.yaml").write_text(json.dumps(document))
    path = f"{RETIREMENTS}/{document['metadata']['name']}"
    admin.cleans_up(path)
    return path


async def test_the_first_transcript(admin: Admin, operator: Operator, person: Person, tmp_path: Path) -> None:
    kind = await _moved(admin)
    path = _requested(admin, tmp_path)
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
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


async def test_the_transcript_of_mode_guide(
    admin: Admin, operator: Operator, person: Person, tmp_path: Path
) -> None:
    kind = await _moved(admin)
    await admin.opt_in(GROUP)
    # Argo CD alone applies the CRD.
    await put_back(admin, kind, "argocd-controller")
    nothing = {key: value for key, value in kind.to_object().items() if key != "spec"}
    await admin.apply(f"{CRDS}/{kind.name}", nothing)
    path = _requested(admin, tmp_path, mode="Guide")
    old, new = (each.to_object() for each in kind.versions)
    deprecated = {"name": OLD, "served": True, "deprecated": True} | old
    edited = iter([[deprecated, new], [deprecated | {"served": False}, new], [new]])

    for command, printed in steps(transcript("Before each `grep`, somebody has edited")):
        if command.startswith("grep"):
            crd = kind.to_object()
            crd["spec"]["versions"] = next(edited)
            (tmp_path / "databases.yaml").write_text(yaml.safe_dump(crd, sort_keys=False))
        if "=NotServed" in command:
            await admin.merge(path, {"spec": {"quietPeriod": "1s"}})
        await person.sees(command, printed)
        if "kubectl create" in command:
            admin.cleans_up(f"{MIGRATIONS}/{kind.name}-retire-{OLD}")
    assert not [*edited]
    await assert_retired(admin, kind, 3)


async def test_the_transcripts_of_a_composition_that_holds_a_step(
    admin: Admin, installed: Cluster, operator: Operator, person: Person, tmp_path: Path
) -> None:
    install_composite_kinds(installed)
    kind = await _moved(admin)
    await admin.opt_in(GROUP)
    # What the composer does, which does not run here: it is the second writer, and makes the revisions.
    written = {"apiVersion": kind.api_version(OLD), "kind": kind.kind, "spec": {"note": "composed"}}
    await admin.apply(kind.path("db-00000", version=OLD), written, manager="crdkeeper-composer")
    makes_old, makes_new = (_made_of(kind, each) for each in (OLD, NEW))
    (tmp_path / "apps.yaml").write_text(yaml.safe_dump(_composed("Composition", "apps", makes_old)))
    await person.types("kubectl apply -f apps.yaml")
    admin.cleans_up(f"{OURS}/compositions/apps")
    await _revised(admin, 1, makes_old)
    _requested(admin, tmp_path, mode="Guide", quietPeriod="0s")
    await person.types("kubectl apply -f databases-v1alpha1.yaml")
    await change(admin, kind, [{"op": "add", "path": "/spec/versions/0/deprecated", "value": True}])

    for command, printed in steps(transcript("Another run of the [same kind]")):
        await person.sees(command, printed)
    (tmp_path / "apps.yaml").write_text(yaml.safe_dump(_composed("Composition", "apps", makes_new)))
    for command, printed in steps(transcript("Once the template in `apps.yaml` names v1")):
        if command.startswith("kubectl get vret"):
            # Each change of the CRD has the operator look at once.
            await admin.merge(f"{CRDS}/{kind.name}", {"metadata": {"annotations": {"looked": "again"}}})
        await person.sees(command, printed)
        if command.startswith("kubectl apply"):
            await _revised(admin, 2, makes_new)


async def _revised(admin: Admin, number: int, made: Mapping[str, Any]) -> None:
    more = {"compositionRef": {"name": "apps"}, "revision": number}
    body = _composed("CompositionRevision", f"apps-{number}", made, **more)
    await admin.create(f"{OURS}/compositionrevisions", body)


def _composed(kind: str, name: str, made: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    of = {"apiVersion": "platform.example.com/v1", "kind": "App"}
    spec = {"compositeTypeRef": of, "resources": [{"name": "database", "template": made}], **more}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _made_of(kind: CustomKind, version: str) -> dict[str, Any]:
    return {"apiVersion": kind.api_version(version), "kind": kind.kind, "metadata": {"name": "app"}}


async def test_the_transcripts_of_suspend_and_undo(
    admin: Admin, operator: Operator, person: Person, tmp_path: Path
) -> None:
    kind = await _moved(admin)
    await permit(admin, kind)
    path = _requested(admin, tmp_path, mode="Execute", migration=SLOWLY)
    for command, printed in steps(transcript("In a run with `mode: Execute`")):
        await person.sees(command, printed)
        if '"suspend":true' in command:
            await admin.merge(path, {"spec": {"quietPeriod": "1s"}})
    for command, printed in steps(transcript("With `suspend: false` it goes on at once.")):
        await person.sees(command, printed)
    await admin.create_objects(kind, 1, version=OLD, prefix="again", engine="mysql")


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
    left = iter((await person.types(f"cd {ROOT} && python -m demo retirement", seconds=570.0)).splitlines())
    begin = transcript("From `make demo-retirement`")
    end = transcript("After the removal nothing is undone.")
    for line in filter(None, begin + end):
        assert any(is_as_shown(each, line) for each in left), f"not printed, or not there: {line}"
