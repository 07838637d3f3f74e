"""`crdkeeper upgrade-manifest`: its output and exit codes."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.core.upgrade import topics
from generate.upgrademanifest import page

ROOT = Path(__file__).parents[4]
CLEAR = """\
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  version: v1
  scope: Namespaced
  preserveUnknownFields: false
  names: {plural: widgets, kind: Widget}
  validation:
    openAPIV3Schema:
      properties:
        spec:
          properties:
            size: {type: string}
"""
OPEN = CLEAR.replace("{type: string}", "{description: how big}")
NEW = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: others.example.com
spec: {group: example.com, names: {plural: others}, versions: [{name: v1}]}
"""


def upgrade(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["upgrade-manifest", *arguments], input=stdin)


def test_nothing_left_to_do() -> None:
    result = upgrade("-", stdin=CLEAR)
    assert result.exit_code == 0
    crd = yaml.safe_load(result.stdout)
    assert crd["apiVersion"] == "apiextensions.k8s.io/v1"
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "string"}}}},
    }
    assert "-:11:3: changed[per-version]: spec.validation: copied to schema of each version" in result.stderr
    assert "decide" not in result.stderr.replace("decisions", "")
    assert result.stderr.endswith("1 CRD upgraded, 0 decisions left to you.\n")


def test_a_decision_names_its_line_and_what_to_do() -> None:
    result = upgrade("-q", "-", stdin=OPEN)
    assert result.exit_code == 1
    field = "spec.validation.openAPIV3Schema.properties[spec].properties[size].type"
    assert result.stderr.startswith(f"-:16:13: decide[type-unknown]: {field}")
    assert topics.TYPE_UNKNOWN.remedy in result.stderr
    assert "changed" not in result.stderr
    assert yaml.safe_load(result.stdout)["kind"] == "CustomResourceDefinition"


def test_what_the_server_would_still_refuse() -> None:
    result = upgrade("-", stdin=CLEAR.replace("plural: widgets", "plural: Widgets"))
    assert result.exit_code == 1
    assert "still refused" in result.stderr
    assert "1 CRD that the API server would still refuse." in result.stderr


def test_other_documents() -> None:
    other = "kind: ConfigMap\napiVersion: v1\n"
    result = upgrade("-", stdin="---\n".join((CLEAR, NEW, other)))
    assert result.exit_code == 0
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(result.stdout)] == [
        "widgets.example.com",
        "others.example.com",
    ]
    assert "-:18: unchanged: already apiextensions.k8s.io/v1" in result.stderr
    assert "skipped: a ConfigMap" in result.stderr


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "crd.yaml"
    file.write_text(OPEN)
    result = upgrade(str(file), "-o", "json")
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said.keys() == {"manifests", "changes", "decisions", "refused", "leftOut"}
    (decision,) = said["decisions"]
    assert (decision["file"], decision["line"], decision["id"]) == (str(file), 16, "type-unknown")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "unreadable"),
        ("kind: ConfigMap\n", "skipped"),
        (CLEAR.replace("v1beta1", "v1alpha1", 1), "unreadable: apiVersion: 'apiextensions.k8s.io/v1alpha1'"),
        ("kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1beta1\n", "spec is missing"),
    ],
)
def test_what_cannot_be_read(content: str, words: str) -> None:
    result = upgrade("-", stdin=content)
    assert result.exit_code == 2
    assert words in result.stderr


def test_every_topic_is_used_and_the_page_is_fresh() -> None:
    said = "run `python -m generate.upgrademanifest > docs/upgrade-manifest.md`"
    assert (ROOT / "docs" / "upgrade-manifest.md").read_text(encoding="utf-8") == page(), said
    folder = ROOT / "operator" / "crdkeeper" / "core" / "upgrade"
    code = "".join(each.read_text(encoding="utf-8") for each in folder.glob("*.py"))
    names = [name for name, each in vars(topics).items() if isinstance(each, topics.Topic)]
    assert names
    assert not [each for each in names if f"topics.{each}" not in code]
