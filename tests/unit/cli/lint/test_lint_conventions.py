"""`crdkeeper lint` and conventions: severities, the configuration, suppressions, and the output."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.lint.test_lint import BAD, GOOD, lint

FIELDS = """\
              timeout:
                type: string
                description: A Go duration.
              drainTimeout:
                type: string
                description: Golang duration.
              zoneName:
                type: string
                description: The zone.
                pattern: '[a-z]+'
"""
CRD = GOOD + FIELDS
WARNINGS = ["duration-text", "duration-text", "pattern-anchors"]


def line_of(text: str, part: str) -> int:
    return next(i for i, each in enumerate(text.splitlines(), 1) if part in each)


def document(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(lint("-o", "json", *arguments, stdin=stdin).stdout)
    return loaded


def shown(*arguments: str, stdin: str | None = None) -> list[tuple[str, str]]:
    return [(each["id"], each["severity"]) for each in document(*arguments, stdin=stdin)["findings"]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "crds" / "old").mkdir(parents=True)
    (tmp_path / "crds" / "widgets.yaml").write_text(CRD)
    (tmp_path / "crds" / "old" / "widgets.yaml").write_text(CRD)
    return tmp_path


def configure(project: Path, text: str, folder: str = ".") -> None:
    (project / folder / ".crdkeeper.yaml").write_text(text)


def test_findings_of_one_kind_are_put_together() -> None:
    result = lint("-", stdin=CRD)
    assert [each for each in result.stdout.splitlines() if not each.startswith(" ")] == [
        f"-:{line_of(CRD, ' timeout:')}:15: warning[duration-text]: v1:.spec.timeout: takes any text for a "
        "duration, although the description demands a format (and 1 more such field)",
        f"-:{line_of(CRD, '[a-z]+')}:17: warning[pattern-anchors]: v1:.spec.zoneName: "
        "[a-z]+ matches anywhere",
    ]
    counted = "1 CRD: 0 errors, 3 warnings, 5 info hidden (--all shows them)."
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (0, counted)


def test_json_has_each_by_itself() -> None:
    found = document("-", stdin=CRD)
    assert [each["id"] for each in found["findings"]] == WARNINGS
    assert found["findings"][1]["field"] == "v1:.spec.drainTimeout"
    assert (found["hidden"], found["ignored"]) == (5, [])
    assert len(document("--all", "-", stdin=CRD)["findings"]) == 8


def test_sarif_has_related_places_levels_and_help() -> None:
    run = json.loads(lint("-o", "sarif", "--all", "-", stdin=CRD).stdout)["runs"][0]
    (result,) = [each for each in run["results"] if each["ruleId"] == "duration-text"]
    assert result["level"] == "warning"
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == line_of(CRD, "drainTimeout:")
    assert related["logicalLocations"] == [
        {"fullyQualifiedName": "widgets.example.com/v1:.spec.drainTimeout"}
    ]
    levels = {each["id"]: each["defaultConfiguration"]["level"] for each in run["tool"]["driver"]["rules"]}
    assert levels == {
        "description": "note",
        "duration-text": "warning",
        "pattern-anchors": "warning",
        "unbounded": "note",
    }
    assert {each["level"] for each in run["results"]} == {"note", "warning"}


@pytest.mark.parametrize(
    ("fail_on", "text", "code"),
    [
        ("error", CRD, 0),
        ("warning", CRD, 1),
        ("warning", GOOD, 0),
        ("info", GOOD, 1),
        ("none", BAD, 0),
        ("error", BAD, 1),
    ],
)
def test_fail_on(fail_on: str, text: str, code: int) -> None:
    assert lint("--fail-on", fail_on, "-", stdin=text).exit_code == code


def test_an_error_that_the_server_accepts() -> None:
    text = GOOD.replace(
        "            type: object\n", "            type: object\n            required: [size, color]\n", 1
    )
    result = lint("-", stdin=text)
    assert result.exit_code == 1
    at = f"-:{line_of(text, 'required:')}:30"
    assert result.stdout.startswith(f"{at}: error[required-undefined]: v1:.spec: requires color")


def test_the_nearest_configuration_counts(project: Path) -> None:
    configure(project, "lint: {severity: {duration-text: off, pattern-anchors: error, boolean: 'off'}}")
    nearer = "lint: {severity: {pattern-anchors: info, description: warning}, all: false}"
    configure(project, nearer, "crds/old")
    assert shown(str(project / "crds" / "widgets.yaml")) == [("pattern-anchors", "error")]
    old = shown(str(project / "crds" / "old"))
    assert set(old) == {("description", "warning"), ("duration-text", "warning"), ("pattern-anchors", "info")}
    result = lint("-f", str(project / "crds" / "widgets.yaml"))
    assert result.exit_code == 1
    assert "skipped" not in lint("-f", str(project)).stderr


def test_a_configuration_that_is_named_counts_for_all(project: Path) -> None:
    configure(project, "lint: {severity: {pattern-anchors: off}}")
    (project / "mine.yaml").write_text("lint: {all: true}")
    found = shown("--config", str(project / "mine.yaml"), str(project / "crds" / "old"))
    assert ("pattern-anchors", "warning") in found
    assert ("unbounded", "info") in found


def test_standard_input_has_the_configuration_of_the_working_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(project, "lint: {severity: {pattern-anchors: off, duration-text: off}}")
    monkeypatch.chdir(project / "crds")
    assert shown("-", stdin=CRD) == []


@pytest.mark.parametrize(
    ("glob", "excluded"),
    [
        ("crds/old/**", 1),
        ("crds/old", 1),
        ("crds/old/", 1),
        ("./crds/*.yaml", 1),
        ("**/widgets.yaml", 2),
        ("crds/**", 2),
        ("*.yaml", 0),
        ("old", 0),
        ("crds/wid?ets.yaml", 1),
    ],
)
def test_files_are_excluded(project: Path, glob: str, excluded: int) -> None:
    configure(project, f"lint: {{exclude: ['{glob}']}}")
    found = document(str(project / "crds"))
    assert (len(found["excluded"]), found["checked"]) == (excluded, 2 - excluded)


def test_what_is_excluded_is_no_error(project: Path) -> None:
    configure(project, "lint: {exclude: [crds]}")
    result = lint("-f", str(project / "crds"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Excluded by the configuration: 2 files." in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lint:\n  severity:\n    spelling: off\n", ":3: there is no rule 'spelling'"),
        (
            "lint:\n  severity:\n    boolean: loud\n",
            ":3: severity of boolean: must be error, warning, info or off",
        ),
        (
            "lint:\n  colour: red\n",
            ":2: unknown field lint.colour; known fields are all, exclude, forbid, rules, severity",
        ),
        ("linter: {}\n", ":1: unknown field linter; known fields are diff, lint"),
        ("- lint\n", ":1: the configuration must be a mapping"),
        ("lint: 3\n", ":1: lint must be a mapping"),
        ("lint: {all: 3}\n", ":1: lint.all must be true or false"),
        ("lint: {exclude: crds}\n", ":1: lint.exclude must be a list of globs"),
        ("lint:\n  exclude:\n  - 3\n", ":3: lint.exclude must be a list of globs"),
        ("lint: [\n", ":2: not YAML"),
        ("lint: {}\n---\nlint: {}\n", ":3: a second document"),
        ("", None),
        ("lint:\ndiff: {severity: {enum-tightened: safe}}\n", None),
    ],
)
def test_a_bad_configuration_names_the_place(project: Path, text: str, said: str | None) -> None:
    configure(project, text)
    result = lint("-f", str(project / "crds"))
    if said is None:
        assert result.exit_code == 0
    else:
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"Error: {project}/.crdkeeper.yaml{said}" in result.stderr


def test_a_configuration_that_is_not_there() -> None:
    result = lint("--config", "/nowhere.yaml", "-", stdin=GOOD)
    assert result.exit_code == 2
    assert "Error: /nowhere.yaml: No such file or directory" in result.stderr


def test_the_servers_errors_are_not_configurable(project: Path) -> None:
    configure(project, "lint: {severity: {type: off}}")
    (project / "crds" / "widgets.yaml").write_text(BAD)
    assert shown(str(project / "crds" / "widgets.yaml")) == [("type", "error")]


def with_comments(*comments: tuple[str, str]) -> str:
    """The CRD with a comment behind the line of a field."""
    text = CRD
    for name, comment in comments:
        text = text.replace(f" {name}:\n", f" {name}: {comment}\n")
    return text


def test_a_comment_on_or_above_the_line() -> None:
    above = CRD.replace(
        "              timeout:",
        "              # crdkeeper:ignore=duration-text Old.\n\n\n              timeout:",
    )
    on = with_comments(("timeout", "# crdkeeper:ignore=duration-text Old."))
    for text in (above, on):
        found = document("-", stdin=text)
        assert [each["field"] for each in found["findings"]] == [
            "v1:.spec.drainTimeout",
            "v1:.spec.zoneName",
        ]
        (ignored,) = found["ignored"]
        assert (ignored["id"], ignored["field"], ignored["reason"]) == (
            "duration-text",
            "v1:.spec.timeout",
            "Old.",
        )


def test_a_comment_for_several_and_for_hidden_ones() -> None:
    text = with_comments(("drainTimeout", "# crdkeeper:ignore=duration-text , unbounded Public."))
    found = document("-", stdin=text)
    assert [each["id"] for each in found["findings"]] == ["duration-text", "pattern-anchors"]
    assert found["hidden"] == 4
    assert "3 warnings" not in lint("-", stdin=text).stderr


def test_a_comment_at_a_field_is_about_its_keywords_too() -> None:
    pattern = "                type: string\n                pattern: a|b\n"
    text = GOOD.replace("                type: string\n", pattern)
    assert [each["id"] for each in document("-", stdin=text)["findings"]] == ["pattern-anchors"]
    for at in ("size:", "pattern: a|b"):
        ignored = text.replace(at, f"{at} # crdkeeper:ignore=pattern-anchors Searched.")
        assert document("-", stdin=ignored)["findings"] == []


@pytest.mark.parametrize(
    ("comment", "id", "said"),
    [
        ("# crdkeeper:ignore=spelling Fine.", "ignore-invalid", "there is no rule 'spelling'"),
        (
            "# crdkeeper:ignore=duration-text",
            "ignore-invalid",
            "duration-text is ignored, but no reason is given",
        ),
        (
            "# crdkeeper:ignore duration-text Fine.",
            "ignore-invalid",
            "expected `# crdkeeper:ignore=<id> <reason>`",
        ),
        (
            "# crdkeeper:ignore=boolean Fine.",
            "ignore-unused",
            "boolean is ignored, but there is no such finding",
        ),
    ],
)
def test_a_bad_comment_is_a_finding_at_its_place(comment: str, id: str, said: str) -> None:
    text = with_comments(("timeout", comment))
    result = lint("-", stdin=text)
    assert result.exit_code == (1 if id == "ignore-invalid" else 0)
    place = (
        f"-:{line_of(text, ' timeout:')}:{text.splitlines()[line_of(text, ' timeout:') - 1].index('#') + 1}"
    )
    assert f"{place}: {'error' if id == 'ignore-invalid' else 'warning'}[{id}]: " in result.stdout
    assert said in result.stdout


def test_an_error_of_the_server_cannot_be_ignored() -> None:
    text = BAD.replace("size:", "size: # crdkeeper:ignore=type It is anything.")
    result = lint("-", stdin=text)
    assert result.exit_code == 1
    assert "warning[ignore-unused]: type is ignored, but the API server refuses it anyway" in result.stdout


def test_a_comment_inside_of_a_text_is_text() -> None:
    said = "# crdkeeper:ignore=duration-text Old, a Go duration."
    for value in (f"|\n                  {said}", f"'x {said}'"):
        text = CRD.replace(" description: A Go duration.\n", f" description: {value}\n")
        assert [each["id"] for each in document("-", stdin=text)["findings"]] == WARNINGS


def annotated(*lines: str) -> str:
    block = "".join(f"      {each}\n" for each in lines)
    return CRD.replace(
        "metadata:\n", f"metadata:\n  annotations:\n    lint.crdkeeper.dev/ignore: |\n{block}", 1
    )


def test_an_annotation() -> None:
    text = annotated("duration-text .spec.*imeout: Ours.", "", "pattern-anchors v1:.spec.zoneName: A hash.")
    found = document("-", stdin=text)
    assert found["findings"] == []
    assert [each["reason"] for each in found["ignored"]] == ["Ours.", "Ours.", "A hash."]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("duration-text .spec.timeout", "is not in the form <id> <field>: <reason>"),
        ("spelling .spec.timeout: Ours.", "there is no rule 'spelling'"),
        ("boolean .spec.timeout: Ours.", "boolean is ignored, but there is no such finding here"),
        (
            "duration-text v2:.spec.timeout: Ours.",
            "duration-text is ignored, but there is no such finding here",
        ),
    ],
)
def test_a_bad_annotation_is_a_finding_at_its_place(line: str, said: str) -> None:
    text = annotated(line)
    result = lint("-", stdin=text)
    assert said in result.stdout
    assert f"-:{line_of(text, 'lint.crdkeeper.dev/ignore')}:5: " in result.stdout


def test_a_finding_that_a_comment_and_the_annotation_ignore() -> None:
    text = annotated("duration-text .spec.timeout: Ours.").replace(
        "              timeout:", "              timeout: # crdkeeper:ignore=duration-text Old."
    )
    found = document("-", stdin=text)
    assert [(each["id"], each["reason"]) for each in found["ignored"]][:1] == [("duration-text", "Old.")]
    assert "ignore-unused" not in {each["id"] for each in found["findings"]}


@pytest.mark.parametrize(
    "rest",
    [
        "metadata: {name: a.example.com, annotations: {cert-manager.io/inject-ca-from: a/b}}",
        "metadata: {name: a.example.com}\nspec: {conversion: {strategy: Webhook}}",
    ],
)
def test_a_patch_is_no_definition(rest: str) -> None:
    text = f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n{rest}\n"
    result = lint("-", stdin=f"{GOOD}---\n{text}")
    assert result.exit_code == 0
    assert "skipped: a patch of a CRD" in result.stderr
    assert lint("-", stdin=f"{GOOD}---\n{text.replace('conversion', 'scope')}spec: {{}}").exit_code == 2


def test_allow_none(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("a: 1")
    (tmp_path / "template.yaml").write_text("{{- if .Values.a }}\na: {{ b }")
    files = [str(tmp_path / "values.yaml"), str(tmp_path / "template.yaml")]
    assert lint(*files).exit_code == 2
    assert lint("--allow-none", *files).exit_code == 0
    (tmp_path / "template.yaml").write_text("{{- if .Values.a }}\nkind: CustomResourceDefinition {{ b }")
    assert lint("--allow-none", *files).exit_code == 2
    (tmp_path / "empty").mkdir()
    result = lint("-f", str(tmp_path / "empty"))
    assert (result.exit_code, "the folder has no YAML or JSON file" in result.stderr) == (2, True)
    result = lint("--allow-none", "-f", str(tmp_path / "empty"))
    assert (result.exit_code, "unreadable" in result.stderr) == (0, False)
