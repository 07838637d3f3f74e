"""`crdkeeper compose import`: what it prints where, and how it exits."""

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from tests.unit.core.importing.crossplanes import A_FIELD_MORE, EXAMPLES
from tests.unit.core.importing.graphs import WEB, graph
from tests.unit.core.importing.pipelines import composition, server

CLEAR = yaml.safe_dump(EXAMPLES["the smallest"])
OPEN = """\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xstores.example.org}
spec:
  group: example.org
  names: {kind: XStore, plural: xstores}
  claimNames: {kind: Store, plural: stores}
  defaultCompositeDeletePolicy: Foreground
  scope: Cluster
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema: {type: object}
"""
BAD = OPEN.replace("referenceable: true", "referenceable: false")


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["compose", *map(str, arguments)], input=stdin)


def test_nothing_left_to_do() -> None:
    result = run("import", "-", stdin=f"{CLEAR}---\nkind: ConfigMap\n")
    assert result.exit_code == 0
    assert result.stderr == "1 definition imported, 0 decisions left to you, 0 errors.\n"
    again = run("crd", "-f", "-", stdin=result.stdout)
    assert again.exit_code == 0
    assert yaml.safe_load(again.stdout)["metadata"]["name"] == "stores.example.org"


def test_a_graph_of_kro(tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(yaml.safe_dump_all([WEB, graph(schema={"spec": {"a": "text"}})], sort_keys=False))
    result = run("import", file)
    assert result.exit_code == 2
    assert [each["kind"] for each in yaml.safe_load_all(result.stdout)] == [
        "CompositeResourceDefinition",
        "Composition",
    ]
    typed, remedy, refused, summary = result.stderr.splitlines()
    assert typed.startswith(f"{file}:24:5: decide: spec.schema.status: kro infers the types of available ")
    assert remedy == "    Set the types of these fields in the schema of the definition's status."
    assert "spec.schema.spec.a: there is no type 'text'" in refused
    assert summary == "1 definition and 1 Composition imported, 1 decision left to you, 0 errors."


def test_decisions_have_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OPEN)
    result = run("import", file)
    assert result.exit_code == 1
    first, remedy, second, summary = result.stderr.splitlines()
    assert first == f"{file}:7:3: decide: spec.claimNames: dropped: crdkeeper has no claims"
    assert remedy.startswith("    Let users create composites")
    assert second.startswith(f"{file}:8:3: changed: spec.defaultCompositeDeletePolicy")
    assert summary == "1 definition imported, 1 decision left to you, 0 errors."
    assert yaml.safe_load(result.stdout)["spec"]["scope"] == "Cluster"


def test_versions_that_need_a_conversion() -> None:
    result = run("import", "-", stdin=yaml.safe_dump(A_FIELD_MORE))
    assert result.exit_code == 1
    first, remedy, summary = result.stderr.splitlines()
    assert first.startswith("<stdin>:") or first.startswith("-:")
    assert "decide: spec.versions: the composer refuses versions between which fields are lost: v1" in first
    assert "spec.size: only v1 has the field" in first
    assert remedy.startswith("    Create a VersionConversion such as {")
    assert summary == "1 definition imported, 1 decision left to you, 0 errors."
    proposed = yaml.safe_load(remedy.partition("such as ")[2].partition(" Or set ")[0])
    assert proposed["spec"]["spokes"][0]["rules"] == [{"hub": "spec.size", "aside": True}]


def test_what_would_be_refused_is_told(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(BAD)
    result = run("import", file)
    assert result.exit_code == 1
    assert f"{file}:4:1: error[composite-invalid]: spec: " in result.stderr
    assert "exactly one version must be referenceable" in result.stderr


def test_json() -> None:
    result = run("import", "-", "-o", "json", stdin=f"{CLEAR}---\n{OPEN}")
    kinds = [each["kind"] for each in json.loads(result.stdout)["items"]]
    assert kinds == ["CompositeResourceDefinition"] * 2


def test_what_is_not_of_crossplane() -> None:
    for text in ("kind: ConfigMap\n", CLEAR.replace("/v2", "/v9")):
        result = run("import", "-", stdin=text)
        assert (result.exit_code, result.stdout) == (2, "")
    assert run("import", "-", "-", stdin=CLEAR).exit_code == 2


def test_a_composition_of_crossplane(tmp_path: Path) -> None:
    left = server({"type": "FromEnvironmentFieldPath", "fromFieldPath": "a", "toFieldPath": "spec.b"})
    file = tmp_path / "composition.yaml"
    file.write_text(yaml.safe_dump(composition(left), sort_keys=False))
    result = run("import", file)
    assert result.exit_code == 1
    (made,) = yaml.safe_load_all(result.stdout)
    assert (made["apiVersion"], made["kind"]) == ("crdkeeper.dev/v1alpha1", "Composition")
    dropped, remedy, _named, summary = result.stderr.splitlines()
    assert dropped.startswith(f"{file}:26:11: decide: spec.pipeline[0].input.resources[0].patches[0]: ")
    assert remedy.startswith("    Write the field into the template")
    assert summary == "1 Composition imported, 1 decision left to you, 0 errors."
    file.write_text(yaml.safe_dump(composition(server())))
    assert run("import", file).exit_code == 0
