"""The policies of `crdkeeper convert admission` reject what the rules cannot convert, and nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cli.output.printing import as_yaml
from crdkeeper.core.conversion.admission import admission
from tests.cluster.conversion.rules import RULES, crontab_definition, rules_of
from tests.cluster.conversion.scene import V1, V1ALPHA1, Scene, until
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError
from tests.unit.core.conversion.admissionrules import (
    HOSTILE_NAMES,
    KINDS,
    TEXT,
    WHOLE,
    Kind,
    schema_of,
    spec_of,
)

V1BETA1: dict[str, Any] = {
    "host": "localhost",
    "port": "1234",
    "cronSpec": "* * * * */5",
    "containers": [{"name": "web", "memoryMiB": 1024}],
}


@pytest.fixture
def scene(installed: Cluster, group: str) -> Iterator[Scene]:
    scene = Scene(installed, group)
    yield scene
    scene.plane.kubectl("delete", "-f", "-", "--ignore-not-found", input=policies(scene))
    scene.remove()


_PRINTED: dict[str, str] = {}


def policies(scene: Scene) -> str:
    """The command's output for the CRD and the rules in files."""
    if scene.group not in _PRINTED:
        directory = scene.plane.directory / scene.group
        directory.mkdir()
        definition, rules = directory / "crd.json", directory / "rules.json"
        definition.write_text(json.dumps(crontab_definition(scene.group, storage="v1", client_config={})))
        rules.write_text(json.dumps(rules_of(scene.group, RULES)))
        _PRINTED[scene.group] = printed(definition, rules)
    return _PRINTED[scene.group]


def printed(definition: Path, rules: Path) -> str:
    command = [sys.executable, "-m", "crdkeeper", "convert", "admission"]
    done = subprocess.run(
        [*command, f"--definition={definition}", f"--rules={rules}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


_NUMBERS = count()


def refused(scene: Scene, version: str, spec: dict[str, Any], name: str = "") -> bool:
    """Whether such an object is rejected; a new one each time, as one that was once admitted may stay."""
    try:
        scene.create(version, name or f"bad-{next(_NUMBERS)}", spec)
    except KubectlError as error:
        return "has no counterpart in another version" in str(error)
    return False


def test_what_cannot_be_converted_is_refused_where_it_is_written(scene: Scene) -> None:
    bad = {**V1, "containers": [{"name": "web", "memory": "abc"}]}
    scene.create("v1", "before", bad)
    scene.plane.kubectl("apply", "--server-side", "-f", "-", input=policies(scene))
    # A policy takes effect some seconds after its creation.
    until(lambda: refused(scene, "v1", bad))
    until(lambda: refused(scene, "v1beta1", {**V1BETA1, "port": "abc"}))
    until(lambda: refused(scene, "v1alpha1", {**V1ALPHA1, "hostPort": "localhost"}))
    for number, memory in enumerate(("1Gi", "0.5", "128974848", "100m")):
        containers = [{"name": "web", "memory": memory}, {"name": "no-memory"}]
        scene.create("v1", f"good-{number}", {**V1, "containers": containers})
    scene.create("v1", "without-containers", {"schedule": "* * * * *"})
    scene.create("v1beta1", "good-port", V1BETA1)
    scene.create("v1alpha1", "good-join", V1ALPHA1)
    # Existing objects can be changed, and fixed.
    scene.create("v1", "before", {**bad, "replicas": 7})
    assert scene.spec("v1", "before")["replicas"] == 7
    scene.create("v1", "before", V1)
    assert refused(scene, "v1", bad, "before")


def test_the_expressions_for_all_kinds_of_rules_compile(installed: Cluster) -> None:
    created(installed, KINDS)


def test_policies_for_rules_that_mean_harm_are_taken(installed: Cluster) -> None:
    both = {"hub": "spec.a", "spoke": "spec.a"}
    texts = [*HOSTILE_NAMES, "", "{{", "x" * 100]
    pairs = [{"hub": text, "spoke": number} for number, text in enumerate(texts)]
    numbers = [
        {"hub": number, "spoke": str(number)} for number in (2**63, -(2**63), 2.5, 1e308, float("inf"))
    ]
    cases: list[Kind] = [
        ({"hub": f"spec[{name}]", "spoke": "spec.a", "quantity": "Mi"}, {name: TEXT}, {"a": WHOLE}, {})
        for name in HOSTILE_NAMES
    ]
    for between in ("\n", "😀", "^$", "\\", "]-[", "'\"", "(?i)"):
        join = {"template": f"{{h}}{between}{{p}}", "parts": {"h": "spec.h", "p": "spec.p"}}
        cases.append(({"spoke": "spec.at", "join": join}, {"h": TEXT, "p": WHOLE}, {"at": TEXT}, {}))
        items = {"type": "array", "items": WHOLE}
        cases.append(({**both, "separator": between}, {"a": TEXT}, {"a": items}, {}))
    many = [{"hub": f"spec.a{i}", "spoke": f"spec.a{i}", "cast": True} for i in range(512)]
    cases += [
        ({**both, "values": pairs}, {"a": TEXT}, {"a": WHOLE}, {}),
        ({**both, "values": numbers}, {"a": {"type": "number"}}, {"a": TEXT}, {}),
        (many, {f"a{i}": TEXT for i in range(512)}, {f"a{i}": WHOLE for i in range(512)}, {}),
    ]
    created(installed, cases)


def created(installed: Cluster, cases: Iterable[Kind]) -> None:
    """Have the API server check the policies for these rules, as printed."""
    made = []
    for number, (rules, hub, spoke, _) in enumerate(cases):
        found = admission(spec_of(rules), {"v1": schema_of(hub), "v1beta1": schema_of(spoke)})
        assert not found.uncovered
        assert found.documents
        for each in found.documents:
            each["metadata"]["name"] += f"-{number}"
            made.append(each)
    said = installed.kubectl("create", "--dry-run=server", "-f", "-", input=as_yaml(made))
    assert len(said.splitlines()) == len(made)
