"""`crdkeeper convert`, on the CronTab of Kubernetes' documentation."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from tests.unit.cluster.transport.localserver import kubeconfig

NAME = "crontabs.stable.example.com"
STRING = {"type": "string"}
SPECS: dict[str, dict[str, Any]] = {
    "v1": {"host": STRING, "port": {"type": "integer"}, "schedule": STRING, "replicas": {"type": "integer"}},
    "v1beta1": {"host": STRING, "port": STRING, "cronSpec": STRING, "replicas": {"type": "integer"}},
    "v1alpha1": {"hostPort": STRING, "cronSpec": STRING},
}
RULES = """\
apiVersion: crdkeeper.dev/v1alpha1
kind: VersionConversion
metadata: {name: crontabs.stable.example.com}
spec:
  resource: {group: stable.example.com, resource: crontabs}
  hub: v1
  spokes:
  - version: v1beta1
    rules:
    - {hub: spec.schedule, spoke: spec.cronSpec}
    - {hub: spec.port, spoke: spec.port, cast: true}
  - version: v1alpha1
    rules:
    - {hub: spec.schedule, spoke: spec.cronSpec}
    - spoke: spec.hostPort
      join: {template: "{host}:{port}", parts: {host: spec.host, port: spec.port}}
    - {hub: spec.replicas, aside: true}
"""


def crontab(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"stable.example.com/{version}",
        "kind": "CronTab",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": spec,
    }


FULL = crontab("v1", host="localhost", port=1234, schedule="* * * * *", replicas=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": fields}},
                }
            },
        }
        for name, fields in SPECS.items()
    ]
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab"},
            "versions": versions,
        },
    }
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd))
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def convert(folder: Path, *arguments: str, stdin: Any = None) -> Result:
    files = ["--rules", str(folder / "rules.yaml"), "--definition", str(folder / "crd.yaml")]
    return CliRunner().invoke(main, ["convert", *files, "-f", "-", *arguments], input=_text(stdin))


def check(folder: Path, stdin: Any) -> Result:
    files = ["--rules", str(folder / "rules.yaml"), "--definition", str(folder / "crd.yaml")]
    return CliRunner().invoke(main, ["convert", "test", *files, "-f", "-"], input=_text(stdin))


def _text(stdin: Any) -> str | None:
    return yaml.safe_dump_all(stdin if isinstance(stdin, list) else [stdin]) if stdin is not None else None


def test_there_and_back(folder: Path) -> None:
    there = convert(folder, "--to", "v1alpha1", stdin=FULL)
    assert there.exit_code == 0, there.output
    made = yaml.safe_load(there.stdout)
    assert made["apiVersion"] == "stable.example.com/v1alpha1"
    assert made["spec"] == {"hostPort": "localhost:1234", "cronSpec": "* * * * *"}
    back = convert(folder, "--to", "v1", stdin=made)
    assert yaml.safe_load(back.stdout) == FULL


def test_lists_and_json(folder: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [FULL, crontab("v1alpha1", hostPort="a:1")]}
    result = convert(folder, "--to", "v1beta1", "-o", "json", stdin=listed)
    assert result.exit_code == 0, result.output
    specs = [each["spec"] for each in json.loads(result.stdout)["items"]]
    assert specs == [
        {"host": "localhost", "port": "1234", "cronSpec": "* * * * *", "replicas": 3},
        {"host": "a", "port": "1"},
    ]


def test_one_that_cannot_be_converted_is_named_and_the_others_are_converted(folder: Path) -> None:
    refuse(folder)
    result = convert(folder, "--to", "v1", stdin=[crontab("v1beta1", port="http"), FULL])
    assert result.exit_code == 1
    assert "-:1: default/mine: spec.port: a string that is no integer" in result.stderr
    assert yaml.safe_load(result.stdout) == FULL


def refuse(folder: Path) -> None:
    rules = (folder / "rules.yaml").read_text()
    (folder / "rules.yaml").write_text(rules.replace("cast: true}", "cast: true, refuse: true}"))


def test_a_value_without_a_counterpart_is_noted(folder: Path) -> None:
    bad = crontab("v1beta1", port="http")
    result = convert(folder, "--to", "v1", stdin=bad)
    assert result.exit_code == 0
    assert result.stderr == "note: 1 value without a counterpart at v1, kept aside\n"
    assert (
        yaml.safe_load(convert(folder, "--to", "v1beta1", stdin=yaml.safe_load(result.stdout)).stdout) == bad
    )
    tried = check(folder, [FULL, bad])
    assert tried.exit_code == 0
    assert "default/mine: v1beta1 to v1: spec.port: a string that is no integer" in tried.stderr


def test_what_has_no_room_in_annotations_comes_back(folder: Path) -> None:
    # Without a port there is no hostPort.
    large = crontab("v1", host="x" * 250_000)
    result = convert(folder, "--to", "v1alpha1", stdin=large)
    assert (result.exit_code, result.stderr) == (0, "")
    back = convert(folder, "--to", "v1", stdin=yaml.safe_load(result.stdout))
    assert yaml.safe_load(back.stdout) == large


def test_round_trips(folder: Path) -> None:
    result = check(folder, [FULL, crontab("v1alpha1", hostPort="[::1]:80")])
    assert result.exit_code == 0, result.output
    # To each of two other versions and back, and through both.
    assert "6 round trips, 0 failures." in result.stdout
    assert "1 object needed something kept aside while at v1alpha1." in result.stdout
    assert "generated from the schemas, 0 failures." in result.stdout


def test_what_is_lost_by_choice_is_said(folder: Path) -> None:
    rules = RULES.replace("{hub: spec.replicas, aside: true}", "{hub: spec.replicas, drop: true}")
    (folder / "rules.yaml").write_text(rules)
    result = check(folder, FULL)
    assert result.exit_code == 0, result.output
    assert "1 object lost values at v1alpha1 that the rules drop." in result.stdout


def test_an_object_that_cannot_go_fails_the_test(folder: Path) -> None:
    refuse(folder)
    result = check(folder, [FULL, crontab("v1beta1", port="http")])
    assert result.exit_code == 1
    assert "default/mine: v1beta1 to v1: spec.port: a string that is no integer" in result.stderr


def test_options_that_do_not_fit(folder: Path) -> None:
    for arguments in (["test"], [], ["--to", "v1", "test", "a.example.com"]):
        result = CliRunner().invoke(main, ["convert", *arguments])
        assert result.exit_code == 2, result.output


def test_a_field_without_a_rule(folder: Path) -> None:
    (folder / "rules.yaml").write_text(RULES.replace("    - {hub: spec.replicas, aside: true}\n", ""))
    result = convert(folder, "--to", "v1", stdin=FULL)
    assert result.exit_code == 2
    assert "rules.yaml: spec.spokes[1].version: spec.replicas: the spoke has no such field" in result.stderr


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (
            "rules.yaml",
            RULES.replace("cast: true", "cast: maybe"),
            "spec.spokes.0.rules.1.cast: Input should be True",
        ),
        ("rules.yaml", RULES.replace("hub: v1\n", "hub: v9\n"), "spec.hub: v9 is none of the CRD's versions"),
        ("rules.yaml", RULES.replace("version: v1alpha1", "version: v1beta1"), "v1beta1 is named twice"),
        ("rules.yaml", "a: [", "rules.yaml:2: not YAML"),
        ("rules.yaml", f"{RULES}---\n{RULES}", "holds 2 documents"),
        ("crd.yaml", "kind: List\nitems: []\n", f"no CustomResourceDefinition {NAME}"),
        (
            "crd.yaml",
            f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
            f"metadata: {{name: {NAME}}}\nspec: 1\n",
            "spec",
        ),
    ],
)
def test_bad_input(folder: Path, file: str, content: str, words: str) -> None:
    (folder / file).write_text(content)
    result = convert(folder, "--to", "v1", stdin=FULL)
    assert result.exit_code == 2, result.output
    assert words in result.stderr


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ("x", "metadata: must be an object"),
        (["x"], "metadata: must be an object"),
        ({"annotations": [1]}, "metadata: annotations: must be an object"),
        ({"labels": {"a": 1}}, "metadata: labels: must be a string"),
        ({"name": 123}, "metadata: name: must be a string"),
    ],
)
def test_metadata_that_no_object_can_have_is_bad_input(folder: Path, metadata: Any, said: str) -> None:
    bad = {"kind": "List", "items": [FULL, {**FULL, "metadata": metadata}]}
    for result in (convert(folder, "--to", "v1beta1", stdin=bad), check(folder, bad)):
        assert result.exit_code == 2, result.output
        assert result.stderr == f"Error: -:1: {said}\n"


def test_metadata_may_be_missing_or_empty(folder: Path) -> None:
    for metadata in ({}, {"metadata": None}, {"metadata": {"annotations": {"a": None}, "labels": None}}):
        plain = {key: each for key, each in FULL.items() if key != "metadata"} | metadata
        result = convert(folder, "--to", "v1alpha1", stdin=plain)
        assert (result.exit_code, result.stderr) == (0, "")


def test_bad_objects_and_versions(folder: Path) -> None:
    assert convert(folder, "--to", "v9", stdin=FULL).exit_code == 2
    assert convert(folder, "--to", "v1", stdin={"a": 1}).exit_code == 2
    assert convert(folder, stdin=FULL).exit_code == 2
    other = convert(folder, "--to", "v1", stdin={**FULL, "apiVersion": "other.example.com/v1"})
    assert other.exit_code == 1
    assert "apiVersion: 'other.example.com/v1' is no version of stable.example.com" in other.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "-f", "-", "--to", "v1"),
        ("convert", "-f", "-", "--to", "v1", "--rules", "rules.yaml"),
        ("convert", "test", NAME),
        ("convert", "test", "--rules", "rules.yaml", "--definition", "crd.yaml"),
        ("convert", "admission", NAME),
    ],
)
@pytest.mark.parametrize(
    ("configured", "said"), [(False, "No cluster configured"), (True, "Cannot connect to host")]
)
def test_a_cluster_that_cannot_be_asked_is_no_object_that_cannot_be_converted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], configured: bool, said: str
) -> None:
    monkeypatch.chdir(folder)
    path = kubeconfig(folder, "http://127.0.0.1:9") if configured else folder / "none"
    runner = CliRunner(env={"KUBECONFIG": str(path), "KUBERNETES_SERVICE_HOST": ""})
    result = runner.invoke(main, arguments, input=_text(FULL))
    assert (result.exit_code, said in result.stderr) == (2, True), result.output


def test_every_process_converts_in_the_same_words() -> None:
    demo = Path(__file__).parents[4] / "demo" / "conversion"
    files = [f"--{option}={demo / name}" for option, name in FILES.items()]
    command = [sys.executable, "-m", "crdkeeper", "convert", *files, "--to=v1beta1"]
    made = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(made) == 1


FILES = {"definition": "crd.yaml", "rules": "rules.yaml", "filename": "objects.yaml"}
