"""`crdkeeper lint`: its input, the lines that it points to, its output and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.cli.lint.cluster import Live

GOOD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names:
    plural: widgets
    kind: Widget
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
              size:
                type: string
"""
BAD = GOOD.replace("                type: string\n", "                maxLength: 3\n")
MESSAGE = (
    "spec.validation.openAPIV3Schema.properties[spec].properties[size].type: "
    "Required value: must not be empty for specified object fields"
)


def lint(*arguments: str, stdin: str | None = None) -> Result:
    # No test of this file may find a cluster.
    runner = CliRunner(env={"KUBECONFIG": "/nowhere", "KUBERNETES_SERVICE_HOST": ""})
    return runner.invoke(main, ["lint", *arguments], input=stdin)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "sub" / "bad.yml").write_text(BAD)
    (tmp_path / "notes.txt").write_text("no: [yaml")
    return tmp_path


def test_good() -> None:
    result = lint("-f", "-", stdin=GOOD)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "1 CRD: 0 errors, 0 warnings, 3 info hidden (--all shows them)." in result.stderr


def test_findings_of_a_folder(folder: Path) -> None:
    result = lint("-f", str(folder))
    assert result.exit_code == 1
    line, why, hint = result.stdout.splitlines()
    # A missing field is reported at its parent.
    assert line == f"{folder}/sub/bad.yml:22:15: error[type]: {MESSAGE}"
    assert why.startswith("    why: A structural schema gives each field its type")
    assert hint.startswith("    hint: Add or correct `type`")
    assert "2 CRDs: 1 error, 0 warnings, " in result.stderr


def test_json(folder: Path) -> None:
    result = lint("-o", "json", str(folder))
    document = json.loads(result.stdout)
    assert document["checked"] == 2
    (finding,) = document["findings"]
    assert (finding["line"], finding["column"], finding["id"]) == (22, 15, "type")
    assert f"{finding['field']}: {finding['message']}" == MESSAGE
    assert finding["definition"] == "widgets.example.com"


def test_sarif(folder: Path) -> None:
    (folder / "sub" / "bad.yml").rename(folder / "sub" / "bad one.yml")
    run = json.loads(lint("-o", "sarif", str(folder)).stdout)["runs"][0]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["type"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("type", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"{folder.as_posix()}/sub/bad%20one.yml"
    assert place["region"] == {"startLine": 22, "startColumn": 15}
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_many_documents_and_lists() -> None:
    items = "\n".join(f"  {line}" for line in BAD.splitlines()).replace("  apiVersion", "- apiVersion", 1)
    text = f"{GOOD}---\nkind: ConfigMap\napiVersion: v1\n---\napiVersion: v1\nkind: List\nitems:\n{items}\n"
    result = lint("-", stdin=text)
    assert result.exit_code == 1
    assert "-:25: skipped: a ConfigMap" in result.stderr
    line = next(i for i, each in enumerate(text.splitlines(), 1) if each == "                size:")
    assert result.stdout.startswith(f"-:{line}:17: error[type]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: ConfigMap\n", "contains no CustomResourceDefinition"),
        ("", "contains no CustomResourceDefinition"),
        ("just text", "contains no CustomResourceDefinition"),
        ("a: [", "not YAML"),
        ("a: &a [*a]", "inside its own anchor"),
    ],
)
def test_unreadable(text: str, said: str) -> None:
    result = lint("-f", "-", stdin=text)
    assert result.exit_code == 2
    assert said in result.stderr


def test_missing_and_binary_files(tmp_path: Path) -> None:
    result = lint("-f", str(tmp_path / "none.yaml"))
    assert (result.exit_code, "No such file or directory" in result.stderr) == (2, True)
    (tmp_path / "binary.yaml").write_bytes(b"a\n\xff\xfe\x00")
    result = lint("-f", str(tmp_path / "binary.yaml"))
    assert (result.exit_code, "binary.yaml:2:1: unreadable: not UTF-8" in result.stderr) == (2, True)
    (tmp_path / "huge.yaml").write_bytes(b"#" * ((16 << 20) + 1))
    result = lint("-f", str(tmp_path / "huge.yaml"))
    assert (result.exit_code, "bigger than 16 MiB" in result.stderr) == (2, True)


def test_what_is_good_is_checked_beside_what_is_unreadable(folder: Path) -> None:
    (folder / "a.yaml").write_text("a: [")
    result = lint("-f", str(folder))
    assert result.exit_code == 2
    assert MESSAGE in result.stdout


def test_a_deep_schema_is_refused() -> None:
    schema = '{"properties": {"a": ' * 500 + "{}" + "}}" * 500
    result = lint("-", stdin='{"kind": "CustomResourceDefinition", "spec": ' + schema + "}")
    assert (result.exit_code, "nested deeper than 300 levels" in result.stderr) == (2, True)


def deep_definition(schema: dict[str, Any]) -> str:
    text = GOOD.partition("        type: object")[0]
    return text.replace("openAPIV3Schema:\n", f"openAPIV3Schema: {json.dumps(schema)}\n")


@pytest.mark.parametrize(
    "keyword", ["properties", "additionalProperties", "items", "not", "default", "allOf"]
)
def test_the_deepest_schema_that_is_read_is_checked(keyword: str) -> None:
    below: Any = "x" if keyword == "default" else {"type": "string"}
    for _ in range(120 if keyword in ("properties", "allOf", "default") else 250):
        below = {
            "properties": {"type": "object", "properties": {"a": below}},
            "allOf": {"allOf": [below]},
            "default": [[below]],
        }.get(keyword, {keyword: below})
    if keyword == "default":
        below = {"type": "object", "properties": {"a": {"type": "array", "default": below}}}
    result = lint("-", stdin=deep_definition(below))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in (0, 1)


def test_unchecked_is_said_and_never_passed() -> None:
    # The API server fails on a path that leads beyond the schema.
    free = "type: object\n                additionalProperties: true"
    text = GOOD.replace("type: string", free).replace(
        "    schema:\n", "    selectableFields: [{jsonPath: .spec.size.a.b}]\n    schema:\n"
    )
    result = lint("-", stdin=text)
    assert result.exit_code == 0
    assert "Not checked (neither passed nor failed): 1 selectable-field, in 1 CRD" in result.stderr
    run = json.loads(lint("-o", "sarif", "-", stdin=text).stdout)["runs"][0]
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [("selectable-field", "note")]
    document = json.loads(lint("-o", "json", "-", stdin=text).stdout)
    assert document["unchecked"]["counts"] == {"selectable-field": 1}


def test_warnings_do_not_fail() -> None:
    text = GOOD.replace("scope:", "scopes: x\n  scope:").replace(
        "kind: Widget", "kind: Widget\n    kind: Widget"
    )
    result = lint("-", stdin=text)
    assert result.exit_code == 0
    lines = [each for each in result.stdout.splitlines() if not each.startswith(" ")]
    assert lines == [
        '-:7:3: warning[unknown-field]: spec.scopes: unknown field "spec.scopes"',
        '-:12:5: warning[duplicate-key]: kind: key "kind" is already set in the mapping',
    ]


def test_usage() -> None:
    assert lint("-", "-f", "-").exit_code == 2
    assert "not both" in lint("-f", "a.yaml", "-l", "a=b").stderr
    assert "not both" in lint("widgets.example.com", "-l", "a=b").stderr
    assert "not both" in lint("widgets.example.com", "a.yaml").stderr


@pytest.mark.parametrize("arguments", [(), ("widgets.example.com",), ("-l", "a=b")])
def test_without_a_file_it_is_about_the_cluster(arguments: tuple[str, ...]) -> None:
    result = lint(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No cluster configured" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("-l", "app=typo"), "no CRD has these labels"), ((), "the cluster has no CRD")],
)
def test_a_cluster_without_such_a_crd(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gather(*_: object) -> Live:
        return Live()

    monkeypatch.setattr("crdkeeper.cli.lint.cluster.gather", gather)
    result = lint(*arguments)
    assert (result.exit_code, f"Error: {said}\n" in result.stderr) == (2, True)
    assert json.loads(lint("-o", "json", *arguments).stdout)["missing"] == [said]
    assert lint("--allow-none", *arguments).exit_code == 0


def test_our_own_crds_are_clean() -> None:
    crds = Path(__file__).parents[4] / "crds"
    result = lint("-f", str(crds), "--fail-on", "warning")
    assert (result.exit_code, result.stdout) == (0, "")
