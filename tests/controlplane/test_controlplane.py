"""Tests of the control plane itself: that it is what the other tests assume."""

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controlplane import Cluster, ControlPlane, Etcd, KubectlError, etcd, pids
from tests.controlplane.binaries import CONTROL_PLANE
from tests.controlplane.pids import ProcessId

ROOT = Path(__file__).parents[2]
GROUP = "selftest.crdkeeper.dev"


def definition(plural: str, storage: str) -> str:
    """A CRD with versions v1 and v2, one of which is stored."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": plural.capitalize()},
                "versions": [
                    {"name": name, "served": True, "storage": name == storage, "schema": schema}
                    for name in ("v1", "v2")
                ],
            },
        }
    )


def custom_object(plural: str, name: str) -> str:
    """An object of such a CRD, written at v1."""
    metadata = {"name": name, "namespace": "default"}
    return json.dumps({"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": metadata})


def define(plane: Cluster, plural: str, storage: str) -> None:
    """Applies the CRD and waits until its storage version is in effect (the server needs a moment)."""
    plane.kubectl("apply", "-f", "-", input=definition(plural, storage))
    plane.kubectl.wait_established(f"crd/{plural}.{GROUP}")

    def stores() -> bool:
        plane.kubectl("create", "-f", "-", input=custom_object(plural, "probe"))
        stored = plane.etcd.get(f"/registry/{GROUP}/{plural}/default/probe")
        plane.kubectl("delete", f"{plural}.{GROUP}", "probe")
        return stored is not None and stored["apiVersion"] == f"{GROUP}/{storage}"

    assert eventually(stores)


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def lease_times(plane: Cluster) -> dict[str, str]:
    """When each API server renewed its identity Lease."""
    leases = plane.kubectl(
        "get",
        "leases",
        "--namespace=kube-system",
        "--selector=apiserver.kubernetes.io/identity",
        "--output=json",
    )
    return {item["metadata"]["name"]: item["spec"]["renewTime"] for item in json.loads(leases)["items"]}


def saved(directory: Path) -> list[ProcessId]:
    """The processes of the plane in a directory."""
    return [ProcessId.read(path) for path in (directory / "pids").glob("*.json")]


def python(code: str) -> list[str]:
    """A command that runs code in another Python, with the repository's packages."""
    return [sys.executable, "-c", f"from pathlib import Path\n{code}"]


@pytest.fixture
def stored(plane: Cluster) -> Etcd:
    """The session's etcd. A test that requests it is skipped on a cluster without access to etcd."""
    return plane.etcd


@pytest.fixture
def namespace(plane: Cluster) -> Iterator[str]:
    """A namespace for one test."""
    name = f"selftest-{secrets.token_hex(4)}"
    plane.kubectl("create", "namespace", name)
    yield name
    plane.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.mark.skipif("KUBEBUILDER_ASSETS" in os.environ, reason="the version is up to KUBEBUILDER_ASSETS")
@pytest.mark.usefixtures("stored")  # we know the version only of our own control plane
def test_servers_report_the_version_that_the_module_names(plane: Cluster) -> None:
    named = re.search(
        r"^\tk8s\.io/kubernetes (\S+)", (CONTROL_PLANE.directory / "go.mod").read_text(), re.MULTILINE
    )
    assert named
    reported = json.loads(plane.kubectl("get", "--raw", "/version"))
    assert (reported["gitVersion"], reported["gitTreeState"]) == (named[1], "archive")


def test_stored_versions_are_those_that_the_server_stored(
    plane: Cluster, stored: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd, "PAGE", 2)
    define(plane, "flips", storage="v1")
    for name in ("a", "b", "c"):
        plane.kubectl("create", "-f", "-", input=custom_object("flips", name))
    define(plane, "flips", storage="v2")
    plane.kubectl("create", "-f", "-", input=custom_object("flips", "d"))

    assert stored.stored_versions(GROUP, "flips") == Counter({f"{GROUP}/v1": 3, f"{GROUP}/v2": 1})
    prefix = f"/registry/{GROUP}/flips/default/"
    assert list(stored.keys(prefix)) == [f"{prefix}{name}" for name in "abcd"]


def test_etcd_can_be_changed_past_the_server(stored: Etcd) -> None:
    key = f"/registry/{GROUP}/smuggled/default/x"
    assert stored.get(key) is None
    stored.put(key, {"kind": "Smuggled", "apiVersion": "old/v0"})
    assert stored.get(key) == {"kind": "Smuggled", "apiVersion": "old/v0"}
    assert stored.stored_versions(GROUP, "smuggled") == Counter({"old/v0": 1})  # though not its first key
    assert stored.delete(key)
    assert not stored.delete(key)


def test_values_larger_than_the_head_are_counted(stored: Etcd) -> None:
    key = f"/registry/{GROUP}/large/default/x"
    stored.put(key, {"a": "x" * 10_000, "apiVersion": "old/v0"})
    assert stored.stored_versions(GROUP, "large") == Counter({"old/v0": 1})
    stored.delete(key)


def test_raw_bytes_of_a_built_in_resource(plane: Cluster, stored: Etcd) -> None:
    plane.kubectl("create", "secret", "generic", "raw", "--from-literal=key=visible")
    value = stored.raw("/registry/secrets/default/raw")
    assert value and value.startswith(b"k8s\0") and b"visible" in value


def test_compaction_forgets_history(plane: Cluster, stored: Etcd) -> None:
    before = stored.revision()
    plane.kubectl("create", "configmap", "newer")
    assert stored.revision() > before
    stored.compact()
    with pytest.raises(etcd.EtcdError, match="compacted"):
        stored.compact(before)


def test_kubectl_tells_why_it_failed(plane: Cluster) -> None:
    with pytest.raises(KubectlError, match="NotFound"):
        plane.kubectl("get", "configmap", "missing")
    assert "NotFound" in plane.kubectl("get", "configmap", "missing", check=False)


def test_service_account_has_its_own_rights_only(plane: Cluster, namespace: str) -> None:
    plane.kubectl("create", "serviceaccount", "modest", f"--namespace={namespace}")
    modest = plane.service_account_kubeconfig(namespace, "modest")
    whoami = plane.kubectl("auth", "whoami", "--output=json", kubeconfig=modest)
    username = json.loads(whoami)["status"]["userInfo"]["username"]
    assert username == f"system:serviceaccount:{namespace}:modest"
    with pytest.raises(KubectlError, match="Forbidden"):
        plane.kubectl("get", "secrets", f"--namespace={namespace}", kubeconfig=modest)


def test_controllers_run(plane: Cluster, namespace: str) -> None:
    get_account = ("get", "serviceaccount", "default", f"--namespace={namespace}")
    assert eventually(lambda: "NotFound" not in plane.kubectl(*get_account, check=False))
    plane.kubectl("delete", "namespace", namespace, "--timeout=120s")


def test_two_servers_are_two_identities_and_can_be_stopped_one_by_one(
    start_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_plane(api_servers=2)
    first, second = plane.api_servers
    assert eventually(lambda: len(lease_times(plane)) == 2)  # a server may serve before it has one
    renewed = lease_times(plane)

    second.pause()
    with pytest.raises(KubectlError, match=r"(?i)timeout|deadline"):
        plane.kubectl("get", "namespaces", "--request-timeout=1s", kubeconfig=second.kubeconfig)
    plane.kubectl("get", "namespaces", kubeconfig=first.kubeconfig)
    second.resume()
    plane.kubectl("get", "namespaces", "--request-timeout=60s", kubeconfig=second.kubeconfig)
    assert eventually(lambda: all(renewed[name] < at for name, at in lease_times(plane).items()))

    url, pid = second.url, second.pid
    second.kill()
    assert not second.running
    second.restart()
    assert (second.url, second.pid == pid) == (url, False)
    plane.kubectl("get", "namespaces", kubeconfig=second.kubeconfig)
    assert lease_times(plane).keys() == renewed.keys()


def test_stop_leaves_no_process_even_if_one_is_paused(start_plane: Callable[..., ControlPlane]) -> None:
    plane = start_plane(controllers=())
    processes = saved(plane.directory)
    assert plane.controller_manager is None and len(processes) == 2
    plane.api_servers[0].pause()
    plane.stop()
    assert not any(process.alive for process in processes)


def test_an_older_version_is_emulated(start_plane: Callable[..., ControlPlane]) -> None:
    plane = start_plane(emulated_version="1.34")
    reported = json.loads(plane.kubectl("get", "--raw", "/version"))
    assert (reported["emulationMajor"], reported["emulationMinor"]) == ("1", "34")
    assert "storagemigration.k8s.io/v1\n" not in plane.kubectl("api-versions")


@pytest.mark.usefixtures("start_plane")
def test_plane_dies_with_a_test_run_that_is_killed(tmp_path: Path) -> None:
    directory = tmp_path / "plane"
    code = f"""
from tests.controlplane import ControlPlane
plane = ControlPlane(Path({str(directory)!r}), api_servers=2).start()
print("started", flush=True)
input()
"""
    with subprocess.Popen(python(code), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout and run.stdout.readline() == b"started\n"
        processes = saved(directory)
        assert len(processes) == 4 and all(process.alive for process in processes)
        run.kill()
    assert eventually(lambda: not any(process.alive for process in processes))


@pytest.mark.usefixtures("start_plane")
def test_up_stays_until_down(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"

    def command(name: str) -> subprocess.CompletedProcess[str]:
        code = f"""
from tests.controlplane.__main__ import main
raise SystemExit(main([{name!r}], directory=Path({str(directory)!r})))
"""
        return subprocess.run(python(code), cwd=ROOT, check=False, capture_output=True, text=True)

    assert command("kubeconfig").returncode == 1
    first, second = command("up"), command("up")
    assert first.returncode == second.returncode == 0
    assert first.stdout == second.stdout and "already" in second.stderr
    assert first.stdout.strip() == f"export KUBECONFIG={command('kubeconfig').stdout.strip()}"

    part = saved(directory)[0]
    part.signal(signal.SIGKILL)
    part.wait()
    third = command("up")  # one with a part missing is not up
    assert third.returncode == 0 and "already" not in third.stderr

    processes = saved(directory)
    assert len(processes) == 3 and all(process.alive for process in processes)
    assert command("down").returncode == 0
    assert not any(process.alive for process in processes) and not directory.exists()
    assert command("down").returncode == 0


def test_stale_pid_file_kills_nobody(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as bystander:
        ProcessId(bystander.pid, "an earlier boot/123").write(tmp_path / "etcd.json")
        pids.kill_all(tmp_path)
        assert bystander.poll() is None
        ProcessId.of(bystander.pid).write(tmp_path / "etcd.json")
        pids.kill_all(tmp_path)
        assert bystander.wait(60) == -signal.SIGKILL
