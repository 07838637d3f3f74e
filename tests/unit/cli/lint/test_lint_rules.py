"""`crdkeeper lint`: which rules are reported, by option and configuration, and what is one finding."""

from pathlib import Path

import pytest

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
