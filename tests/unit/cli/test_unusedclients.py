"""A process of crdkeeper loads one client of Kubernetes, not all that are installed."""

import subprocess
import sys
from pathlib import Path

import pytest

LEFT_OUT = "from crdkeeper.cli.unusedclients import leave_out_unused_clients as leave_out; leave_out(); "


@pytest.mark.parametrize("command", [("run",), ("compose", "run")], ids=" ".join)
def test_the_operator_and_the_composer_load_no_other_client(command: tuple[str, ...], tmp_path: Path) -> None:
    missing = tmp_path / "kubeconfig"
    done = python("-X", "importtime", "-m", "crdkeeper", *command, f"--kubeconfig={missing}", "--identity=a")
    assert f"there is no {missing}" in done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert {"kopf", "kubernetes.aio.config"} <= loaded
    assert loaded & {"requests", "pykube.http", "oauthlib", "websocket"} == set()


def test_what_is_used_all_the_same_is_loaded_then() -> None:
    code = (
        "import inspect, sys, kubernetes.aio; inspect.getmodule(compile('', 'a', 'exec'));"
        "print('requests' in sys.modules, kubernetes.config.load_kube_config.__name__);"
        "from kubernetes.client import CoreV1Api; print(CoreV1Api.__name__)"
    )
    assert python("-c", LEFT_OUT + code).stdout.split() == ["False", "load_kube_config", "CoreV1Api"]


def test_pykube_is_as_if_it_were_not_installed() -> None:
    assert "ModuleNotFoundError" in python("-c", LEFT_OUT + "import pykube").stderr


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
