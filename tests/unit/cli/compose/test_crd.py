"""`crdkeeper compose crd`, and the commands that take a CompositeResourceDefinition for a CRD."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.apiserver.objects import effort
from crdkeeper.cli import main

ROOT = Path(__file__).parents[4]
GOOD = """\
apiVersion: crdkeeper.dev/v1alpha1
kind: CompositeResourceDefinition
metadata:
  name: databases.platform.example.com
spec:
  group: platform.example.com
  names: {kind: Database, plural: databases}
  versions:
  - name: v1
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: string, enum: [Small, Large]}
"""
REFUSED = GOOD.replace("            properties:\n", "            maxProperties: 1\n            properties:\n")
WARNED = GOOD + "              crdkeeper: {type: string}\n"
COMMENTED = WARNED.replace(
    "crdkeeper: {", "# crdkeeper:ignore=composite-reserved as before\n              crdkeeper: {"
)
IGNORING = (
    "\n  metadata:\n    annotations:\n      lint.crdkeeper.dev/ignore: |\n        {} *: as before\n  names:"
)
ANNOTATED = WARNED.replace("\n  names:", IGNORING.format("composite-reserved"))
INVALID = GOOD.replace("referenceable: true", "referenceable: false")
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
CROSSPLANE = GOOD.replace("crdkeeper.dev/v1alpha1", "apiextensions.crossplane.io/v2")


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], input=stdin)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "definition.yaml"


def test_the_definition_is_printed(file: Path) -> None:
    file.write_text(f"{OTHER}---\n{GOOD}")
    result = run("compose", "crd", "-f", file)
    assert (result.exit_code, result.stderr) == (0, "")
    crd = yaml.safe_load(result.stdout)
    assert (crd["kind"], crd["metadata"]["name"]) == (
        "CustomResourceDefinition",
        "databases.platform.example.com",
    )
    assert "&" not in result.stdout
    assert run("lint", "-", stdin=result.stdout).exit_code == 0


def test_json() -> None:
    result = run("compose", "crd", "-f", "-", "-o", "json", stdin=f"{GOOD}---\n{REFUSED}")
    assert result.exit_code == 1
    (item,) = json.loads(result.stdout)["items"]
    assert item["kind"] == "CustomResourceDefinition"


def test_a_refused_one_is_told_with_its_line(file: Path) -> None:
    file.write_text(REFUSED)
    result = run("compose", "crd", "-f", file)
    assert (result.exit_code, result.stdout) == (1, "")
    place, why, hint = result.stderr.splitlines()
    assert place.startswith(f"{file}:17:13: error[composite-counted]: spec.versions[0].schema.")
    assert '"[has(self.size)].filter(each, each).size() <= 1"' in place
    assert why.startswith("    why: ") and hint.startswith("    hint: ")


def test_a_warning_does_not_hold_up(file: Path) -> None:
    file.write_text(WARNED)
    result = run("compose", "crd", "-f", file)
    assert result.exit_code == 0
    assert f"{file}:19:15: warning[composite-reserved]:" in result.stderr
    assert yaml.safe_load(result.stdout)["kind"] == "CustomResourceDefinition"


@pytest.mark.parametrize("text", [COMMENTED, ANNOTATED], ids=["comment", "annotation"])
def test_a_warning_that_is_ignored_is_not_printed(file: Path, text: str) -> None:
    file.write_text(text)
    result = run("compose", "crd", "-f", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert yaml.safe_load(result.stdout)["kind"] == "CustomResourceDefinition"


def test_an_error_cannot_be_ignored(file: Path) -> None:
    counted = "            maxProperties: 1 # crdkeeper:ignore=composite-counted as before\n"
    commented = REFUSED.replace("            maxProperties: 1\n", counted)
    file.write_text(commented.replace("\n  names:", IGNORING.format("composite-counted")))
    result = run("compose", "crd", "-f", file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[composite-counted]" in result.stderr


def test_its_own_rules(file: Path) -> None:
    file.write_text(INVALID)
    result = run("compose", "crd", "-f", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{file}:5:1: spec: " in result.stderr
    assert "exactly one version must be referenceable" in result.stderr


@pytest.mark.parametrize("command", ["lint", "compose crd"])
def test_the_api_servers_errors_name_the_fields_of_the_file(file: Path, command: str) -> None:
    file.write_text(GOOD.replace("type: string", "type: text"))
    result = run(*command.split(), "-f", file)
    assert "error[type]: spec.versions[0].schema.openAPIV3Schema.properties[spec]." in result.output


@pytest.mark.parametrize("text", [OTHER, CROSSPLANE])
def test_nothing_to_do(file: Path, text: str) -> None:
    file.write_text(text)
    result = run("compose", "crd", "-f", file)
    assert result.exit_code == 2
    assert "contains no CompositeResourceDefinition" in result.stderr


RULES = """\
              size: {type: string}
            x-kubernetes-validations: [{rule: "self.size != ''"}, {rule: "self.size != ' '"}]
"""


@pytest.mark.parametrize("command", [("crd", "-f"), ("import",)])
def test_what_is_not_checked_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    text = GOOD if command[0] == "crd" else CROSSPLANE
    file.write_text(text[: text.rindex("              size")] + RULES)
    assert "not checked" not in run("compose", *command, file).stderr
    monkeypatch.setattr(effort, "_STEPS_PER_CHARACTER", 10**9)
    result = run("compose", *command, file)
    assert result.exit_code == 0
    assert f"{file}:19:13: not checked[cel]: spec.versions[0].schema.openAPIV3Schema." in result.stderr
    assert "to compile all expressions of the CRD may take too long" in result.stderr
    assert "What is not checked neither passed nor failed" in result.stderr


def test_of_many_problems_the_rest_is_counted(file: Path) -> None:
    wrong = "".join(f"              f{i}: {{type: text}}\n" for i in range(600))
    file.write_text(GOOD + wrong)
    result = run("compose", "crd", "-f", file)
    assert result.exit_code == 1
    assert result.stderr.count(": error[") == 500
    assert result.stderr.splitlines()[-1] == "and 100 more problems"


def test_standard_input_once() -> None:
    assert run("compose", "crd", "-f", "-", "-f", "-", stdin=GOOD).exit_code == 2


def test_lint_takes_it_for_the_definition(file: Path) -> None:
    file.write_text(WARNED.replace("type: string, enum", "typ: string, enum"))
    result = run("lint", "-o", "json", "-f", file)
    assert result.exit_code == 1
    found = [(each["id"], each["severity"], each["line"]) for each in json.loads(result.stdout)["findings"]]
    assert ("composite-reserved", "warning", 19) in found
    assert ("type", "error", 18) in found


def test_lint_says_nothing_of_what_crdkeeper_adds(file: Path) -> None:
    file.write_text(GOOD)
    result = run("lint", "-a", "-o", "json", "-f", file)
    assert result.exit_code == 0
    fields = {each["field"] for each in json.loads(result.stdout)["findings"]}
    assert fields == {"v1:.spec", "v1:.spec.size"}


def test_a_warning_can_be_ignored(file: Path) -> None:
    file.write_text(COMMENTED)
    result = run("lint", "-o", "json", "-f", file)
    found = json.loads(result.stdout)
    assert [each["id"] for each in found["ignored"]] == ["composite-reserved"]
    assert found["findings"] == []


def test_the_annotation_ignores_a_warning_about_the_definition_itself(file: Path) -> None:
    file.write_text(ANNOTATED)
    found = json.loads(run("lint", "-o", "json", "-f", file).stdout)
    assert [each["id"] for each in found["ignored"]] == ["composite-reserved"]
    assert found["findings"] == []
    # Its CRD has the annotation, too, and nothing of what that is about.
    made = run("compose", "crd", "-f", file).stdout
    assert "composite-reserved" in made
    assert "ignore-unused" not in run("lint", "-", stdin=made).output


def test_the_annotation_in_its_metadata_is_read_and_checked(file: Path) -> None:
    annotation = (
        "\n  metadata:\n    annotations:\n      lint.crdkeeper.dev/ignore: |\n"
        "        keyword-type .spec.size: for our forms\n        no-such-rule .spec.size: as before\n"
    )
    pointless = GOOD.replace("{type: string, enum", "{type: string, minimum: 1, enum")
    file.write_text(pointless.replace("\n  names:", f"{annotation}  names:"))
    result = run("lint", "-o", "json", "-f", file)
    found = json.loads(result.stdout)
    assert [each["id"] for each in found["ignored"]] == ["keyword-type"]
    (wrong,) = found["findings"]
    assert (wrong["id"], wrong["line"]) == ("ignore-invalid", 9)
    assert wrong["field"] == "spec.metadata.annotations[lint.crdkeeper.dev/ignore]"


def test_diff_compares_it(file: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(GOOD)
    file.write_text(GOOD.replace("[Small, Large]", "[Small]"))
    result = run("diff", old, file, "-o", "json")
    assert result.exit_code == 1
    (change,) = json.loads(result.stdout)["changes"]
    assert change["field"].endswith("spec.size")
    file.write_text(REFUSED)
    result = run("diff", old, file)
    assert result.exit_code == 2
    assert f"{file}:17:13" in result.output


def test_rehearse_takes_it(file: Path, tmp_path: Path) -> None:
    file.write_text(GOOD)
    objects = tmp_path / "objects.yaml"
    objects.write_text(
        "apiVersion: platform.example.com/v1\nkind: Database\n"
        "metadata: {name: a, namespace: default}\nspec: {size: Huge}\n"
    )
    result = run("rehearse", "-f", file, "--objects", objects, "-o", "json")
    assert result.exit_code == 1
    assert "spec.size" in result.stdout


def test_upgrade_manifest_leaves_it_out(file: Path) -> None:
    file.write_text(GOOD)
    result = run("upgrade-manifest", file)
    assert "skipped: a CompositeResourceDefinition" in result.stderr


def test_hostile_texts_are_shown_safely(file: Path) -> None:
    file.write_text(
        GOOD.replace("size: {", '"\\e[31m": {}\n              size: {').replace("type: string, ", "")
    )
    result = run("compose", "crd", "-f", file)
    assert result.exit_code == 1
    assert "\x1b" not in result.output
