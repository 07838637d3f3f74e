"""`crdkeeper lint`: which rules are reported, by option and configuration, and what is one finding."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.cli.input.files import LocatedDefinition
from crdkeeper.cli.lint.cluster import Live
from crdkeeper.core.documents.yamldocument import Document, Position
from tests.unit.cli.lint.test_lint import BAD, GOOD, lint
from tests.unit.cli.lint.test_lint_conventions import CRD, configure, document, line_of, shown


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "widgets.yaml").write_text(CRD)
    return tmp_path


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("default", {"duration-text", "pattern-anchors"}),
        ("pattern-anchors", {"pattern-anchors"}),
        ("limits", {"unbounded"}),
        ("style,pattern-anchors", {"description", "pattern-anchors"}),
        ("all,-limits", {"duration-text", "pattern-anchors", "description"}),
        ("-pattern-anchors", {"duration-text"}),
        ("-values", set()),
        ("values,-duration-text", {"pattern-anchors"}),
        ("limits,default", {"duration-text", "pattern-anchors", "unbounded"}),
        ("server", set()),
    ],
)
def test_rules_are_chosen_by_group_and_id(project: Path, rules: str, expected: set[str]) -> None:
    file = str(project / "crds" / "widgets.yaml")
    assert {id for id, _ in shown("--rules", rules, file)} == expected
    chosen = ", ".join(f"'{each}'" for each in rules.split(","))
    configure(project, f"lint: {{rules: [{chosen}]}}")
    assert {id for id, _ in shown(file)} == expected
    assert {id for id, _ in shown("--rules", "description", file)} == {"description"}


def test_all_shows_the_infos_of_what_is_chosen() -> None:
    assert {id for id, _ in shown("--all", "--rules", "-limits", "-", stdin=CRD)} == {
        "duration-text",
        "pattern-anchors",
        "description",
    }
    assert "3 info hidden" in lint("--rules", "-description", "-", stdin=CRD).stderr


def test_what_the_server_refuses_is_reported_whatever_is_chosen() -> None:
    assert shown("--rules", "limits", "-", stdin=BAD)[0] == ("type", "error")


TWICE = GOOD.replace("kind: Widget", "kind: Widget\n    kind: Widget{}")
BAD_NAMES = {"type": "NamesAccepted", "status": "False", "reason": "KindConflict", "message": "taken"}


def test_a_key_that_stands_twice_obeys_like_any_warning(project: Path) -> None:
    file = project / "crds" / "widgets.yaml"
    file.write_text(TWICE.format(""))
    assert shown(str(file)) == [("duplicate-key", "warning")]
    assert shown("--rules", "values", str(file)) == []
    for severity, expected in (("off", []), ("error", [("duplicate-key", "error")])):
        configure(project, f"lint: {{severity: {{duplicate-key: {severity}}}}}")
        assert shown(str(file)) == expected


@pytest.mark.parametrize(
    "text",
    [
        TWICE.format(" # crdkeeper:ignore=duplicate-key Ours."),
        TWICE.format("").replace(
            "  name: widgets",
            "  annotations: {lint.crdkeeper.dev/ignore: 'duplicate-key kind: Ours.'}\n  name: widgets",
        ),
    ],
)
def test_a_key_that_stands_twice_can_be_ignored(text: str) -> None:
    found = document("-", stdin=text)
    assert found["findings"] == []
    assert [(each["id"], each["reason"]) for each in found["ignored"]] == [("duplicate-key", "Ours.")]


def of_cluster(crd: dict[str, Any], *arguments: str) -> dict[str, Any]:
    """The result for a CRD in a cluster, of which the API server says that its names are taken."""

    async def gather(*_: object) -> Live:
        value = {**crd, "status": {"conditions": [BAD_NAMES]}}
        return Live([LocatedDefinition("", Document(value, Position(), []), (), value)])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crdkeeper.cli.lint.cluster.gather", gather)
        return document(*arguments, "widgets.example.com")


def test_a_condition_of_the_server_obeys_like_any_convention(tmp_path: Path) -> None:
    crd = yaml.safe_load(GOOD)
    (found,) = of_cluster(crd)["findings"]
    assert found["field"] == "status.conditions"
    assert (found["id"], found["severity"]) == ("server-condition", "error")
    assert found["message"] == "NamesAccepted=False (KindConflict): taken"
    assert of_cluster(crd, "--rules", "values")["findings"] == []
    configure(tmp_path, "lint: {severity: {server-condition: off}}")
    assert of_cluster(crd, "--config", str(tmp_path / ".crdkeeper.yaml"))["findings"] == []
    configure(tmp_path, "lint: {severity: {server-condition: warning}}")
    (found,) = of_cluster(crd, "--config", str(tmp_path / ".crdkeeper.yaml"))["findings"]
    assert found["severity"] == "warning"


def test_a_condition_of_the_server_can_be_ignored() -> None:
    crd = yaml.safe_load(GOOD)
    ignore = "server-condition status.conditions: Ours.\nduplicate-key kind: In the file.\n"
    crd["metadata"]["annotations"] = {"lint.crdkeeper.dev/ignore": ignore}
    found = of_cluster(crd)
    assert found["findings"] == []
    assert [(each["id"], each["reason"]) for each in found["ignored"]] == [("server-condition", "Ours.")]
    # The annotation is in the manifest, too, where there are no conditions.
    assert shown("-", stdin=yaml.safe_dump(crd)) == []


def test_a_list_of_rules_has_an_end(project: Path) -> None:
    file = str(project / "crds" / "widgets.yaml")
    assert lint("--rules", ",".join(["all"] * 1_000), file).exit_code == 0
    result = lint("--rules", ",".join(["all"] * 1_001), file)
    assert (result.exit_code, "more than 1,000 names of rules" in result.stderr) == (2, True)
    configure(project, f"lint: {{rules: [{', '.join(['all'] * 1_001)}]}}")
    result = lint(file)
    assert (result.exit_code, "more than 1,000 names of rules" in result.stderr) == (2, True)


def test_a_rule_to_choose_must_exist() -> None:
    result = lint("--rules", "default,spelling", "-", stdin=CRD)
    assert result.exit_code == 2
    assert "there is no rule and no group 'spelling'; the groups are default, all, server, " in result.stderr


def test_keywords_are_forbidden_by_the_configuration(project: Path) -> None:
    text = GOOD.replace(
        "                type: string\n", "                type: string\n                nullable: true\n"
    )
    (project / "crds" / "widgets.yaml").write_text(text)
    configure(project, "lint: {forbid: [nullable], severity: {forbidden-keyword: error}}")
    result = lint("-f", str(project / "crds" / "widgets.yaml"))
    assert result.exit_code == 1
    assert f":{line_of(text, 'nullable')}:" in result.stdout
    assert (
        "error[forbidden-keyword]: v1:.spec.size: nullable is forbidden by the configuration" in result.stdout
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lint: {rules: unbounded}\n", ":1: lint.rules must be a list of groups and ids of rules"),
        (
            "lint:\n  rules: [spelling]\n",
            ":2: there is no rule and no group 'spelling'; the groups are default, ",
        ),
        ("lint: {forbid: 3}\n", ":1: lint.forbid must be a list of keywords of schemas"),
        ("lint:\n  forbid:\n  - nulable\n", ":3: schemas have no keyword 'nulable'"),
    ],
)
def test_a_bad_choice_in_the_configuration_names_the_place(project: Path, text: str, said: str) -> None:
    configure(project, text)
    result = lint("-f", str(project / "crds"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Error: {project}/.crdkeeper.yaml{said}" in result.stderr


TWO = CRD.replace("name: v1\n", "name: v1beta1\n", 1)


def test_a_field_of_several_versions_is_one_finding() -> None:
    start = TWO.index("  - name: v1beta1")
    text = TWO + TWO[start:].replace("v1beta1", "v1").replace("storage: true", "storage: false")
    found = document("-", stdin=text)["findings"]
    assert [(each["field"], each["versions"]) for each in found] == [
        (f"v1beta1:.spec.{name}", ["v1beta1", "v1"]) for name in ("timeout", "drainTimeout", "zoneName")
    ]
    assert "v1beta1:.spec.timeout: takes any text for a duration, although " in lint("-", stdin=text).stdout
    # Each version has its own line for the comment.
    ignored = text.replace(" timeout:\n", " timeout: # crdkeeper:ignore=duration-text Ours.\n", 1)
    found = document("-", stdin=ignored)
    assert [each["field"] for each in found["ignored"]] == ["v1beta1:.spec.timeout"]
    assert "v1:.spec.timeout" in [each["field"] for each in found["findings"]]
