"""`make bench-rehearsal`: how long `crdkeeper rehearse` takes for many CRDs with objects.

It runs as users run it, a process for each run. The new CRDs restrict a field, remove one and add one: each
object has effects, and half of them are refused.

No figure makes it fail; a run that ends otherwise than expected does.
"""

import argparse
import copy
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import yaml

from tests.benchmark.command import noise_shown
from tests.benchmark.manydefinitions import version
from tests.controlplane.plane import ControlPlane

_GROUP: Final = "rehearsed.example.com"
_HARMFUL: Final = 1


class UnexpectedOutcome(Exception):
    """A rehearsal did not find what it must find."""


def _definition(number: int, *, new: bool) -> dict[str, Any]:
    made = version("As it will be." if new else "As it is.")
    fields = made["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    if new:
        del fields["field001"]
        fields["field000"]["properties"]["size"]["maximum"] = 9
        fields["added"] = {"type": "string"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gauges{number}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": f"gauges{number}", "kind": f"Gauge{number}"},
            "versions": [made],
        },
    }


def _object(number: int, index: int) -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"Gauge{number}",
        "metadata": {"name": f"gauge-{index}", "namespace": "default"},
        "spec": {f"field{each:03d}": {"size": index, "name": "gauge"} for each in range(20)},
    }


class Benchmark:
    """A control plane with CRDs and objects."""

    def __init__(self, plane: ControlPlane, directory: Path, definitions: int, objects: int) -> None:
        self._plane = plane
        self._directory = directory
        self._objects = objects
        self.definitions = definitions
        old = [_definition(number, new=False) for number in range(definitions)]
        self._apply(old)
        for each in old:
            plane.kubectl.wait_established(f"crd/{each['metadata']['name']}")
        self._apply([_object(number, index) for number in range(definitions) for index in range(objects)])

    def _apply(self, items: list[dict[str, Any]]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        self._plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(listed))

    def run(self, definitions: int, *arguments: str) -> tuple[float, float]:
        """The seconds of one rehearsal, and those of CPU that it used itself. Raises UnexpectedOutcome."""
        file = self._directory / "new.yaml"
        made = [copy.deepcopy(_definition(number, new=True)) for number in range(definitions)]
        file.write_text(yaml.safe_dump_all(made), encoding="utf-8")
        command = [sys.executable, "-m", "crdkeeper", "rehearse", "-f", str(file), "-o", "json", *arguments]
        begin, before = time.monotonic(), _cpu_seconds()
        done = subprocess.run(
            [*command, "--kubeconfig", str(self._plane.kubeconfig)],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds, cpu = time.monotonic() - begin, _cpu_seconds() - before
        if done.returncode != _HARMFUL:
            raise UnexpectedOutcome(f"{done.returncode}: {done.stderr}")
        expected = {"Pruned": self._objects, "Refused": max(self._objects - 10, 0)}
        for item in json.loads(done.stdout)["items"]:
            if item["affected"] != {key: number for key, number in expected.items() if number}:
                raise UnexpectedOutcome(f"{item['name']}: {item['affected']}")
        return seconds, cpu


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(description="Measure rehearsals of many CRDs.")
    parser.add_argument("--definitions", type=int, default=20)
    parser.add_argument("--objects", type=int, default=20, help="of each CRD")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("arguments", nargs="*", help="options of crdkeeper rehearse, after --")
    given = parser.parse_args()
    with (
        noise_shown(),
        tempfile.TemporaryDirectory() as directory,
        ControlPlane(Path(directory) / "plane") as plane,
    ):
        benchmark = Benchmark(plane, Path(directory), given.definitions, given.objects)
        for number in sorted({1, 3, given.definitions}):
            took = sorted(benchmark.run(number, *given.arguments) for _ in range(given.rounds))
            seconds, cpu = (median(each[i] for each in took) for i in (0, 1))
            print(
                f"{number:>3} CRDs with {given.objects} objects each: median {seconds:.1f} s, "
                f"worst {took[-1][0]:.1f} s; {cpu:.1f} s of CPU"
            )


if __name__ == "__main__":
    main()
