"""The remains of a cluster whose process was killed: the next start finds and removes them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controlplane.pids import ProcessId
from tests.node import cgroups, leftovers
from tests.node.__main__ import main
from tests.node.cluster import NodeCluster

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from pathlib import Path
from tests.node.cluster import NodeCluster
cluster = NodeCluster(Path(sys.argv[1]), nodes=2).start()
print("started", flush=True)
input()
"""

pytestmark = pytest.mark.usefixtures("node_programs")


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Another cluster's process on this machine, in a cgroup like those of kubelets."""
    groups = [root / "kubepods-of-somebody" for root in cgroups.hierarchies()]
    for group in groups:
        group.mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        (cgroups.marking(groups[0].name) / "cgroup.procs").write_text(str(process.pid))
        yield process
        process.kill()
    for group in groups:
        group.rmdir()


def eventually(holds: Callable[[], bool], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_after_a_kill_the_next_start_removes_all(
    tmp_path: Path, session_nodes: NodeCluster, bystander: subprocess.Popen[bytes]
) -> None:
    directory = tmp_path / "killed"
    command = [sys.executable, "-c", RUN, str(directory)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout and run.stdout.readline() == b"started\n"
        record = leftovers.of(directory)
        assert record and not record.stale
        assert len(cgroups.processes(record.name)) > 10
        with session_nodes.network():
            leftovers.sweep()  # takes nothing from live owners
        assert len(cgroups.processes(record.name)) > 10
        run.send_signal(signal.SIGKILL)
    assert record.stale
    # The kernel ends the processes with their owner; cgroups and files need the next start.
    left = [f"cgroups called {record.name}"]
    assert eventually(lambda: list(leftovers.found(record)) == left), list(leftovers.found(record))

    leftovers.sweep()

    assert not list(leftovers.found(record))
    assert not directory.exists() and leftovers.of(directory) is None
    assert bystander.poll() is None
    with session_nodes.network():
        assert session_nodes.plane.kubectl("get", "--raw", "/readyz") == "ok"


def test_what_is_left_is_named(tmp_path: Path) -> None:
    record = leftovers.claim(tmp_path / "cluster", owner=ProcessId.of(os.getpid()))
    cgroups.create(f"{record.name}/node-0-system")
    with subprocess.Popen(["sleep", "600"]) as process:
        (cgroups.marking(f"{record.name}/node-0-system") / "cgroup.procs").write_text(str(process.pid))
        found = list(leftovers.found(record))
        assert found == [f"process {process.pid} (sleep 600)", f"cgroups called {record.name}"]
        leftovers.remove(record)
        assert process.wait(60) == -signal.SIGKILL
    assert not list(leftovers.found(record))


def test_a_cgroup_without_a_record_is_removed() -> None:
    name = f"{cgroups.PREFIX}00000000"
    cgroups.create(f"{name}/node-0")
    leftovers.sweep()
    assert name not in cgroups.names()


def test_up_stays_until_down(tmp_path: Path, image: Path, capfd: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "kept"

    def command(*words: str) -> tuple[int, str]:
        status = main([*words], directory=directory)
        return status, capfd.readouterr().out

    assert command("up")[0] == 0
    again, printed = command("up")
    assert (again, printed) == (0, f"alias kubectl={directory}/kubectl\n")
    kubectl = [str(directory / "kubectl"), "get", "nodes", "--output=name"]
    assert subprocess.run(kubectl, capture_output=True, text=True, check=True).stdout == "node/node-0\n"
    record = leftovers.of(directory)
    assert record
    leftovers.sweep()
    assert cgroups.processes(record.name)  # it has no owner, but exists on purpose

    assert command("down")[0] == 0
    assert not list(leftovers.found(record)) and leftovers.of(directory) is None
    shutil.rmtree(directory)
    assert command("down")[0] == 0
