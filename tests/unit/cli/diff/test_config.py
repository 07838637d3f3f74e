"""`crdkeeper diff`: the severities that a team sets in `.crdkeeper.yaml`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.diff.test_diff import BREAKING, GONE, OLD, OTHER, RISKY, SAFE, SAFE_BEFORE, diff

CONFIG = ".crdkeeper.yaml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the new side; the old one is elsewhere."""
    (tmp_path / "old").mkdir()
    (tmp_path / "new" / "deep").mkdir(parents=True)
    write(tmp_path, OLD, BREAKING)
    return tmp_path


def write(project: Path, old: str, new: str) -> None:
    (project / "old" / "crd.yaml").write_text(old)
    (project / "new" / "deep" / "crd.yaml").write_text(new)


def configure(project: Path, severities: str, folder: str = "new") -> Path:
    path = project / folder / CONFIG
    path.write_text(f"diff:\n  severity: {{{severities}}}\n")
    return path


def compared(project: Path, *arguments: str | Path) -> dict[str, Any]:
    result = diff(project / "old", project / "new", "-o", "json", *arguments)
    document: dict[str, Any] = json.loads(result.stdout)
    document["code"] = result.exit_code
    return document


@pytest.mark.parametrize(
    ("severity", "code", "fail_on_risky", "counts"),
    [
        ("breaking", 1, 1, (1, 0, 0)), ("risky", 0, 1, (0, 1, 0)), ("safe", 0, 0, (0, 0, 1)),
        ("off", 0, 0, (0, 0, 0)), ("'off'", 0, 0, (0, 0, 0)),
    ],
)  # fmt: skip
def test_the_severity_of_a_kind(
    project: Path, severity: str, code: int, fail_on_risky: int, counts: tuple[int, ...]
) -> None:
    configure(project, f"enum-tightened: {severity}")
    found = compared(project)
    assert (found["code"], tuple(found["counts"].values())) == (code, counts)
    assert [each["severity"] for each in found["changes"]] == [
        name for name, number in found["counts"].items() if number
    ]
    assert compared(project, "--fail-on", "risky")["code"] == fail_on_risky


def test_a_safe_kind_may_become_breaking(project: Path) -> None:
    write(project, SAFE_BEFORE, SAFE)
    configure(project, "limit-loosened: breaking")
    result = diff(project / "old", project / "new")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "breaking[limit-loosened]: spec.size: maxLength: 2 → 3" in lines[1]
    assert lines[2].startswith("      Breaking by configuration. Every valid object")
    assert lines[-1] == "Breaking."


def test_the_text_says_what_the_configuration_did(project: Path) -> None:
    write(project, OLD, GONE.replace("[red, blue]", "[blue]"))
    path = configure(project, "enum-tightened: risky, field-removed: off")
    lines = diff(project / "old", project / "new").stdout.splitlines()
    assert lines[2].startswith("      Risky by configuration. Hurts writers and stored objects. ")
    assert lines[-3:] == [
        "1 CRD compared. Changes: 0 breaking, 1 risky, 0 safe.",
        f"By configuration ({path}): 1 change with another severity, 1 left out.",
        "Risky for writers and stored objects: needs a review.",
    ]


def test_the_text_says_what_is_left_out_of_a_compatible_change(project: Path) -> None:
    path = configure(project, "enum-tightened: off")
    assert diff(project / "old", project / "new").stdout.splitlines() == [
        "1 CRD compared. Changes: 0 breaking, 0 risky, 0 safe.",
        f"By configuration ({path}): 0 changes with another severity, 1 left out.",
        "Compatible.",
    ]


def test_json_and_sarif_say_what_the_configuration_did(project: Path) -> None:
    write(project, OLD, GONE.replace("[red, blue]", "[blue]"))
    path = configure(project, "enum-tightened: risky, field-removed: off")
    found = compared(project)
    assert found["configuration"] == {"files": [str(path)], "changed": 1, "leftOut": 1}
    (change,) = found["changes"]
    assert (change["severity"], change["configured"]) == ("risky", True)
    assert change["effects"] == {"writers": "breaking", "stored objects": "breaking"}
    (run,) = json.loads(diff(project / "old", project / "new", "-o", "sarif").stdout)["runs"]
    assert [each["level"] for each in run["results"]] == ["warning"]
    assert run["invocations"][0]["toolConfigurationNotifications"] == [
        {
            "level": "note",
            "message": {"text": f"By configuration ({path}): 1 change with another severity, 1 left out."},
        }
    ]


def test_a_configuration_without_effect_is_not_mentioned(project: Path) -> None:
    configure(project, "enum-tightened: breaking, columns: off")
    assert "By configuration" not in diff(project / "old", project / "new").stdout
    found = compared(project)
    assert found["configuration"] == {"files": [], "changed": 0, "leftOut": 0}
    assert [each["configured"] for each in found["changes"]] == [False]


def test_the_nearest_configuration_of_the_new_file_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(project, "enum-tightened: risky", "old")
    configure(project, "enum-tightened: risky", ".")
    configure(project, "enum-tightened: safe", "new")
    assert compared(project)["severity"] == "safe"
    configure(project, "field-removed: safe", "new/deep")
    assert compared(project)["severity"] == "breaking"
    chosen = project / "chosen.yaml"
    chosen.write_text("diff: {severity: {enum-tightened: risky}}")
    assert compared(project, "--config", chosen)["severity"] == "risky"
    # CRDs that are in no file have the configuration of the working directory.
    monkeypatch.chdir(project / "new")
    result = diff(project / "old", "-", "-o", "json", stdin=BREAKING)
    assert json.loads(result.stdout)["severity"] == "safe"


def test_a_removed_crd_follows_its_old_file(project: Path) -> None:
    write(project, f"{OLD}---\n{OTHER}", OLD)
    configure(project, "definition-removed: risky", "old")
    configure(project, "definition-removed: safe", "new")
    assert compared(project)["severity"] == "risky"


def test_each_crd_has_the_configuration_of_its_file(project: Path) -> None:
    write(project, f"{OLD}---\n{OTHER}", BREAKING)
    (project / "new" / "other.yaml").write_text(OTHER.replace("[red, blue]", "[blue]"))
    configure(project, "enum-tightened: safe")
    configure(project, "enum-tightened: risky", "new/deep")
    found = compared(project)
    assert tuple(found["counts"].values()) == (0, 1, 1)
    said = diff(project / "old", project / "new").stdout
    assert "and 1 more file): 2 changes with another severity, 0 left out." in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("diff:\n  severity:\n    spelling: off\n", ":3: there is no kind of change 'spelling'"),
        (
            "diff:\n  severity:\n    columns: error\n",
            ":3: severity of columns: must be breaking, risky, safe or off",
        ),
        ("diff:\n  severity:\n    columns: [off]\n", ":3: severity of columns: must be breaking, "),
        ("diff:\n  severity:\n    3: off\n", ":3: there is no kind of change '3'"),
        ("diff:\n  severity:\n    columns: true\n", ":3: severity of columns: must be "),
        (
            "diff:\n  severity:\n    columns: safe\n    not-accepted: off\n",
            ":4: severity of not-accepted: cannot be changed, because the API server refuses such a CRD",
        ),
        ("diff:\n  severity:\n    scope: off\n", ":3: severity of scope: cannot be changed"),
        ("diff: {exclude: []}\n", ":1: unknown field diff.exclude; known fields are severity"),
        ("diff: off\n", ":1: diff must be a mapping"),
        ("diff: {severity: off}\n", ":1: diff.severity must be a mapping"),
        ("differ: {}\n", ":1: unknown field differ; known fields are diff, lint"),
        ("diff: [\n", ":2: not YAML"),
        ("", None),
        ("diff:\n", None),
        ("lint: {severity: {type: off}, all: true}\n", None),
    ],
)
def test_a_bad_configuration_names_the_place(project: Path, text: str, said: str | None) -> None:
    (project / "new" / CONFIG).write_text(text)
    result = diff(project / "old", project / "new")
    if said is None:
        assert (result.exit_code, "Breaking for writers" in result.stdout) == (1, True)
    else:
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"Error: {project}/new/{CONFIG}{said}" in result.stderr


def test_a_configuration_that_is_not_there(project: Path) -> None:
    result = diff(project / "old", project / "new", "--config", "/nowhere.yaml")
    assert result.exit_code == 2
    assert "Error: /nowhere.yaml: No such file or directory" in result.stderr


def test_risky_kinds(project: Path) -> None:
    write(project, OLD, RISKY)
    configure(project, "enum-loosened: breaking")
    result = diff(project / "old", project / "new")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "Breaking for readers.")
