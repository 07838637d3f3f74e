"""What counts as a CRD in files, and the messages about everything else: the same for every command."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main

HEAD = "apiVersion: apiextensions.k8s.io/{}\nkind: CustomResourceDefinition\n"
NEW = (
    HEAD.format("v1")
    + """\
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
"""
)
OLD = (
    HEAD.format("v1beta1")
    + """\
metadata:
  name: widgets.example.com
spec:
  group: example.com
  version: v1
  preserveUnknownFields: false
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  additionalPrinterColumns:
  - name: Size
    type: string
    JSONPath: .spec.sise
  validation:
    openAPIV3Schema:
      type: object
      properties:
        spec:
          type: object
          properties:
            size:
              type: string
"""
)
OBJECT = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: b}, spec: {size: 1}}\n"
RULES = """\
apiVersion: crdkeeper.dev/v1alpha1
kind: VersionConversion
metadata: {name: widgets.example.com}
spec:
  resource: {group: example.com, resource: widgets}
  hub: v1
  spokes: [{version: v2, rules: []}]
"""
COMMANDS = {
    "lint": ["lint", "crd.yaml"],
    "diff": ["diff", "new.yaml", "crd.yaml"],
    "diff, old": ["diff", "crd.yaml", "new.yaml"],
    "rehearse": ["rehearse", "-f", "crd.yaml", "--objects", "object.yaml"],
    "rehearse --from": ["rehearse", "-f", "new.yaml", "--from", "crd.yaml", "--objects", "object.yaml"],
    "upgrade-manifest": ["upgrade-manifest", "crd.yaml"],
    "convert": [
        "convert",
        "--rules",
        "rules.yaml",
        "--definition",
        "crd.yaml",
        "--to",
        "v1",
        "-f",
        "object.yaml",
    ],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "new.yaml").write_text(NEW)
    (tmp_path / "object.yaml").write_text(OBJECT)
    (tmp_path / "rules.yaml").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner(env={"KUBECONFIG": "/nowhere"}).invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("rest", "missing"),
    [
        ("", "spec is missing"),
        ("metadata: {name: widgets.example.com}\n", "spec is missing"),
        ("spec: {}\n", "spec.group, spec.names, spec.versions are missing"),
        ("spec: {group: example.com, versions: [{name: v1}]}\n", "spec.names is missing"),
        ("spec: {group: example.com, names: {plural: widgets}}\n", "spec.versions is missing"),
        ("spec: {names: {plural: widgets}, versions: [{name: v1}]}\n", "spec.group is missing"),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_fragment_is_one_error(folder: Path, command: str, rest: str, missing: str, version: str) -> None:
    (folder / "crd.yaml").write_text(f"# a file\n{HEAD.format(version)}{rest}")
    result = run(*COMMANDS[command])
    assert result.exit_code == 2
    assert not result.stdout
    said = [each for each in result.stderr.splitlines() if "crd.yaml" in each]
    assert len(said) == 1
    assert "crd.yaml:2" in said[0]
    assert said[0].endswith(f"a fragment of a CustomResourceDefinition: {missing}")


@pytest.mark.parametrize("command", ["lint", "diff", "upgrade-manifest"])
def test_all_other_objects_of_a_release_are_one_line(folder: Path, command: str) -> None:
    kinds = ["Deployment"] * 40 + [f"Kind{i}" for i in range(20)] + ["ClusterRole"] * 30
    others = [f"apiVersion: v1\nkind: {each}\n" for each in kinds]
    (folder / "crd.yaml").write_text("---\n".join([*others, "a: 1\n", NEW]))
    result = run(*COMMANDS[command])
    assert result.exit_code == 0
    about = [each for each in result.stderr.splitlines() if "skipped" in each]
    assert len(about) == (0 if command == "diff" else 1)
    if about:
        assert "skipped 91 documents that are no CRDs, the first at crd.yaml:1: Deployment (40)" in about[0]
        assert about[0].endswith("17 other kinds")


def test_old_manifests_are_linted_at_their_lines(folder: Path) -> None:
    (folder / "crd.yaml").write_text(OLD)
    result = run("lint", "crd.yaml")
    assert result.exit_code == 1
    removed, *others = [each for each in result.stdout.splitlines() if not each.startswith(" ")]
    assert removed.startswith(
        "crd.yaml:1:1: error[api-version]: apiVersion: apiextensions.k8s.io/v1beta1 was removed"
    )
    assert "`crdkeeper upgrade-manifest`" in removed
    assert any(each.startswith("crd.yaml:13:5: warning[column-target]") for each in others), others


@pytest.mark.parametrize("old_is_new", [False, True])
def test_old_manifests_are_compared_at_their_lines(folder: Path, old_is_new: bool) -> None:
    (folder / "crd.yaml").write_text(OLD)
    result = run("diff", *(("new.yaml", "crd.yaml") if old_is_new else ("crd.yaml", "new.yaml")), "--all")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "crd.yaml:1:1: note: apiextensions.k8s.io/v1beta1 was removed in Kubernetes 1.22"
    )
    assert f"{'crd.yaml:22:15' if old_is_new else 'new.yaml:20:22'}: breaking[type-changed]" in result.stdout


def test_objects_are_rehearsed_against_old_manifests(folder: Path) -> None:
    (folder / "crd.yaml").write_text(OLD)
    result = run("rehearse", "-f", "crd.yaml", "--from", "new.yaml", "--objects", "object.yaml")
    assert result.exit_code == 1
    assert "Kubernetes 1.22" in result.stderr
    assert "spec.size" in result.stdout


def test_old_and_rewritten_manifests_are_the_same(folder: Path) -> None:
    (folder / "crd.yaml").write_text(OLD)
    (folder / "new.yaml").write_text(run("upgrade-manifest", "crd.yaml").stdout)
    assert yaml.safe_load((folder / "new.yaml").read_text())["apiVersion"] == "apiextensions.k8s.io/v1"
    result = run("diff", "crd.yaml", "new.yaml", "--all")
    assert "Changes: 0 breaking, 0 risky" in result.stdout
