"""`make bench-several`: `crdkeeper migrate` with several resources, and one after the other.

Each resource has a new storage version. Together, they wait for it to settle at the same time. With the
defaults of the command, so with the wait that users have. It fails if etcd holds an object that was not
rewritten.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.benchmark.command import execute, parser_of, show, tell
from tests.benchmark.report import spread
from tests.benchmark.subject import WrongResult
from tests.cluster.harness.installation import install
from tests.controlplane.plane import ControlPlane

_GROUP: Final = "several.example.com"
_VERSIONS: Final = ("v1", "v2")


class Resources:
    """CRDs with objects, whose storage version changes."""

    def __init__(self, plane: ControlPlane, number: int, objects: int) -> None:
        self._plane = plane
        self._objects = objects
        self._storage = _VERSIONS[0]
        self.plurals = [f"boxes{each}" for each in range(number)]
        self._apply([_definition(each, self._storage) for each in self.plurals])
        plane.kubectl.wait_established(*(f"crd/{each}.{_GROUP}" for each in self.plurals))
        self._apply([_object(each, index) for each in self.plurals for index in range(objects)])

    def outdate(self) -> None:
        """Have another version stored from now on."""
        self._storage = next(each for each in _VERSIONS if each != self._storage)
        self._apply([_definition(each, self._storage) for each in self.plurals])

    def migrate(self, plurals: Sequence[str]) -> float:
        """The seconds that one command takes for these resources. Raises WrongResult if it fails."""
        command = [sys.executable, "-m", "crdkeeper", "migrate", *(f"{each}.{_GROUP}" for each in plurals)]
        began = time.monotonic()
        done = subprocess.run(
            [*command, f"--kubeconfig={self._plane.kubeconfig}"],
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
        if done.returncode:
            raise WrongResult(f"crdkeeper migrate ended with {done.returncode}: {done.stderr[-2000:]}")
        return took

    def check(self) -> None:
        """Raises WrongResult unless etcd stores all objects at the storage version."""
        for each in self.plurals:
            found = self._plane.etcd.stored_versions(_GROUP, each)
            if found != {f"{_GROUP}/{self._storage}": self._objects}:
                raise WrongResult(f"of {each}, etcd holds {dict(found)}")

    def _apply(self, items: list[dict[str, Any]]) -> None:
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        self._plane.kubectl("apply", "--server-side", "-f", "-", input=listed)


def _definition(plural: str, storage: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": _kind(plural)},
            "versions": [
                {"name": each, "served": True, "storage": each == storage, "schema": schema}
                for each in _VERSIONS
            ],
        },
    }


def _object(plural: str, index: int) -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/{_VERSIONS[0]}",
        "kind": _kind(plural),
        "metadata": {"name": f"box-{index}", "namespace": "default"},
        "spec": {"size": index},
    }


def _kind(plural: str) -> str:
    return plural.title()


def run(options: argparse.Namespace) -> dict[str, list[float]]:
    """The whole benchmark; prints the table and returns the seconds of each round."""
    one_by_one, together = "one command after the other", "one command for all"
    took: dict[str, list[float]] = {one_by_one: [], together: []}
    with (
        tempfile.TemporaryDirectory(prefix="crdkeeper-bench-") as directory,
        ControlPlane(Path(directory), controllers=()) as plane,
    ):
        install(plane)
        resources = Resources(plane, options.resources, options.objects)
        for number in range(options.rounds):
            for name in (together, one_by_one):
                tell(f"round {number + 1} of {options.rounds}: {name}")
                resources.outdate()
                parts = [resources.plurals] if name == together else [[each] for each in resources.plurals]
                took[name].append(sum(resources.migrate(each) for each in parts))
                resources.check()
    ratio = median(all_ / single for all_, single in zip(took[together], took[one_by_one], strict=True))
    show(
        [
            f"{options.resources} resources of {options.objects} objects; seconds, with the wait until the "
            "change has settled",
            "",
            *(f"{name:<32}{spread(seconds):>16}" for name, seconds in took.items()),
            "",
            f"All at once take {ratio:.2f} of the time of one after the other.",
        ]
    )
    return took


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 if an object was not rewritten that should have been, else 0."""
    parser = parser_of("several", __doc__)
    parser.add_argument("--resources", type=int, default=5, metavar="N")
    parser.add_argument("--objects", type=int, default=100, metavar="N", help="of each")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    return execute(run, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
