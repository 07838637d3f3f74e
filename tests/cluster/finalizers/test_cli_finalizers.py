"""`crdkeeper finalizers` as users run it: what finalizers hold, and their release by name."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster.cli.commandline import CommandLine
from tests.cluster.finalizers.scene import (
    NAMED,
    OTHER,
    create_held,
    finalizers_of,
    held_objects,
    policy,
    release_events,
    rule,
    write,
)
from tests.cluster.harness import Admin, CustomKind, eventually

HEADER = "OBJECT FINALIZER IN DELETION LAST WRITTEN BY POLICY"


async def until_deleted_for_a_second(admin: Admin, kind: CustomKind, shell: CommandLine) -> None:
    """Returns when the policy's rule of two seconds makes all objects due."""

    async def look() -> bool:
        shown = (await shell.run("finalizers", kind.name, "--no-headers")).stdout.splitlines()
        rows = [each for each in shown if NAMED in each]
        return bool(rows) and all(": due" in each for each in rows)

    await eventually(look)


async def test_the_list(admin: Admin, group: str, shell: CommandLine) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        nothing = await shell.run("finalizers", kind.name)
        assert (nothing.exit_code, nothing.stdout) == (0, "")
        assert nothing.stderr == f"No object of {kind.name} is held in deletion.\n"
        empty = await shell.run("finalizers", kind.name, "-o", "json")
        assert (empty.exit_code, json.loads(empty.stdout)["items"]) == (0, [])

        await create_held(admin, kind, ["one", "two"], [NAMED, OTHER])
        await admin.create_objects(kind, 1, prefix="alive")
        await policy(admin, group, rule(after="2s", mode="Plan", when="true"))
        await until_deleted_for_a_second(admin, kind, shell)
        shown = await shell.run("finalizers", kind.name)
        header, *rows = shown.stdout.splitlines()
        assert " ".join(header.split()) == HEADER
        cells = [[each.strip() for each in row.split("   ") if each.strip()] for row in rows]
        due = f"{group}: due if `when` is true (Plan)"
        assert [(each[0], each[1], each[4], each[5]) for each in cells] == [
            ("default/one", NAMED, "admin", due),
            ("default/one", OTHER, "admin", "-"),
            ("default/two", NAMED, "admin", due),
            ("default/two", OTHER, "admin", "-"),
        ]
        listed = json.loads((await shell.run("finalizers", kind.name, "-o", "json")).stdout)
        assert (listed["kind"], listed["resource"], listed["total"]) == ("HeldObjectList", kind.name, 2)
        live = (await admin.get(kind.path("one")))["metadata"]
        first = next(each for each in listed["items"] if each["name"] == "one")
        due_time = first["finalizers"][0]["release"].pop("dueTime")
        assert due_time > first["deletionTimestamp"]
        planned = {"policy": group, "mode": "Plan", "state": "due", "when": "true"}
        assert first == {
            "namespace": "default",
            "name": "one",
            "uid": live["uid"],
            "deletionTimestamp": live["deletionTimestamp"],
            "finalizers": [{"name": NAMED, "release": planned}, {"name": OTHER}],
            "lastWrittenTime": live["managedFields"][-1]["time"],
            "lastWriter": "admin",
        }
        as_yaml = yaml.safe_load((await shell.run("finalizers", kind.name, "-o", "yaml")).stdout)
        assert [each["name"] for each in as_yaml["items"]] == ["one", "two"]
        elsewhere = await shell.run("finalizers", kind.name, "-n", "kube-system")
        assert (elsewhere.exit_code, elsewhere.stdout) == (0, "")
        said = f"No object of {kind.name} in namespace kube-system is held in deletion.\n"
        assert elsewhere.stderr == said
        await policy(admin, group, rule(after="719h"))
        await write(admin, kind, "two", "cleaner", "1")
        shown = await shell.run("finalizers", kind.name, "--no-headers")
        one, _, two, _ = shown.stdout.splitlines()
        assert one.endswith(f"{group}: in 29d")
        assert "cleaner" in two
        assert two.endswith(f"{group}: in 29d, still written")


async def test_a_release(admin: Admin, group: str, shell: CommandLine) -> None:
    kind = CustomKind(group)
    async with held_objects(admin, kind):
        await create_held(admin, kind, ["one", "two"], [OTHER, NAMED])
        await create_held(admin, kind, ["three"], [OTHER])
        all_held = await finalizers_of(admin, kind)

        early = await shell.run("finalizers", kind.name, "--release", NAMED, "--yes")
        assert (early.exit_code, early.stdout) == (1, f"Released {NAMED} from 0 objects; 2 left.\n")
        assert "default/one: kept, in deletion only for" in early.stderr
        mistyped = await shell.run("finalizers", kind.name, "--release", f"{NAMED}s", "--yes")
        said = f"No object of {kind.name} is in deletion with the finalizer {NAMED}s.\n"
        assert (mistyped.exit_code, mistyped.stdout) == (0, said)
        assert mistyped.stderr == f"`crdkeeper finalizers {kind.name}` shows those that hold objects.\n"
        elsewhere = await shell.run("finalizers", kind.name, "-n", "kube-system", "--release", NAMED)
        said = (
            f"No object of {kind.name} in namespace kube-system is in deletion with the finalizer {NAMED}.\n"
        )
        assert (elsewhere.exit_code, elsewhere.stdout) == (0, said)
        said = f"`crdkeeper finalizers {kind.name} -n kube-system` shows those that hold objects.\n"
        assert elsewhere.stderr == said
        elsewhere = await shell.run("finalizers", f"database.{kind.group}")
        said = f"Error: no CRD database.{kind.group}; did you mean {kind.name}?\n"
        assert (elsewhere.exit_code, elsewhere.stderr) == (1, said)
        await policy(admin, group, rule(after="2s", mode="Plan"))
        await until_deleted_for_a_second(admin, kind, shell)
        unasked = await shell.run("finalizers", kind.name, "--release", NAMED, "--after", "1s")
        assert unasked.exit_code == 1
        assert unasked.stderr.endswith("Error: nobody is there to ask: use --yes\n")
        assert on_a_terminal(admin, "no", kind.name, "--release", NAMED, "--after", "1s") == 1
        interrupted_when_asked(admin, kind.name, "--release", NAMED, "--after", "1s")
        assert await finalizers_of(admin, kind) == all_held

        await write(admin, kind, "two", "cleaner", "1")
        busy = await shell.run("finalizers", kind.name, "--release", NAMED, "--after", "1h", "--yes")
        assert "default/two: kept, written" in busy.stderr
        assert await finalizers_of(admin, kind) == all_held
        await until_deleted_for_a_second(admin, kind, shell)

        assert on_a_terminal(admin, "y", kind.name, "--release", NAMED, "--after", "1s") == 0
        assert await finalizers_of(admin, kind) == {"one": [OTHER], "two": [OTHER], "three": [OTHER]}
        notes = await release_events(admin, kind)
        assert sorted(notes) == ["one", "two"]
        assert (
            f"Released the finalizer {NAMED} on behalf of a user of crdkeeper finalizers" in notes["one"][0]
        )


def on_a_terminal(admin: Admin, said: str, *args: str) -> int:
    """The exit code of a command whose user answers so."""
    with asking(admin, *args) as (process, terminal):
        os.write(terminal, f"{said}\n".encode())
        _, stderr = process.communicate(timeout=120)
    assert b"Release test.example.com/named from 2 objects?" in stderr
    return process.returncode


def interrupted_when_asked(admin: Admin, *args: str) -> None:
    with asking(admin, *args) as (process, _):
        assert process.stderr is not None
        said = b""
        while not said.endswith(b"objects? [y/N]:"):
            piece = process.stderr.read(1)
            assert piece, said
            said += piece
        until_it_reads(process.pid)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout, stderr.strip()) == (130, b"", b"")


def until_it_reads(pid: int) -> None:
    """Returns when a process that has asked waits for the answer.

    Just before, Python would note a signal, and go on to read.
    """
    waiting = 0
    while waiting < 10:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state != "Z", "it has ended"
        waiting = waiting + 1 if state == "S" else 0
        time.sleep(0.02)


@contextmanager
def asking(admin: Admin, *args: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command, and the other side of its terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "crdkeeper", "finalizers", *args],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "KUBECONFIG": str(admin.cluster.kubeconfig), "KUBERC": "off"},
    )
    with process:
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(theirs)
            os.close(ours)


async def test_what_is_refused(admin: Admin, group: str, shell: CommandLine) -> None:
    kind = CustomKind(group)
    refused = await shell.run("finalizers", kind.name, "--release", "orphan", "--yes")
    assert refused.exit_code == 2
    assert "Kubernetes itself serves the finalizer orphan" in refused.stderr
    both = await shell.run("finalizers", kind.name, "--release", NAMED, "-o", "json")
    assert both.exit_code == 2
    absent = await shell.run("finalizers", kind.name)
    assert (absent.exit_code, absent.stderr) == (1, f"Error: no CRD {kind.name}\n")
