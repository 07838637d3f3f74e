"""The tests' own pods, made from crdkeeper's image, which contains a Python."""

import json
import time
from typing import Any, Final

from tests.controlplane.kubectl import Kubectl

IMAGE: Final = "ghcr.io/crdkeeper/crdkeeper:0.1.0"
ASKS: Final = """
import time, urllib.request

def status(url, **options):
    '''That of the first answer: nodes and DNS get to know a Service some time after it is made.'''
    deadline = time.monotonic() + 120
    while True:
        try:
            return urllib.request.urlopen(url, timeout=30, **options).status
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)

"""
"""What code begins with that asks a Service."""
_ENDS_SECONDS = 180.0


def manifest(name: str, code: str, **spec: Any) -> dict[str, Any]:
    """A pod that runs Python code; keywords are added to its spec. It terminates quickly."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": IMAGE, "command": ["python", "-c", code]}],
            **spec,
        },
    }


def apply(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    """Applies these objects."""
    kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def run(kubectl: Kubectl, name: str, code: str, **spec: Any) -> str:
    """The output of the code in its own pod, which is then deleted. Fails if the code fails."""
    apply(kubectl, manifest(name, code, **spec))
    try:
        deadline = time.monotonic() + _ENDS_SECONDS
        while (phase := kubectl("get", "pod", name, "-o=jsonpath={.status.phase}")) in ("Pending", "Running"):
            assert time.monotonic() < deadline, f"{name} is {phase}: {kubectl('logs', name, check=False)}"
            time.sleep(0.2)
        said = kubectl("logs", name)
        assert phase == "Succeeded", said
        return said
    finally:
        kubectl("delete", "pod", name, "--now")
