"""A baseline: what was accepted is known wherever it moves to, all else is new, and what is gone is stale."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.lint.test_lint import BAD, GOOD, lint
from tests.unit.cli.lint.test_lint_conventions import CRD

MORE = """\
              dryTimeout:
                type: string
                description: A Go duration.
"""
WAIT = """\
              {}:
                type: object
                properties:
                  size:
                    type: string
                  timeout:
                    type: string
                    description: A Go duration.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A file with two warnings about durations and one about a secret, and a baseline that lists them."""
    (tmp_path / "widgets.yaml").write_text(CRD)
    result = lint("--write-baseline", str(tmp_path / "known.json"), str(tmp_path / "widgets.yaml"))
    assert result.exit_code == 0
    assert f"Wrote a baseline with 3 findings: {tmp_path}/known.json\n" in result.stderr
    return tmp_path


def run(project: Path, *arguments: str, file: str = "widgets.yaml") -> Any:
    return lint("--baseline", str(project / "known.json"), *arguments, str(project / file))


def document(project: Path, *arguments: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(run(project, "-o", "json", *arguments).stdout)
    return loaded


def test_it_lists_what_was_found_one_a_line(project: Path) -> None:
    text = (project / "known.json").read_text()
    assert json.loads(text) == {
        "version": 1,
        "findings": [
            {"definition": "widgets.example.com", "id": "duration-text", "field": ".spec.drainTimeout"},
            {"definition": "widgets.example.com", "id": "duration-text", "field": ".spec.timeout"},
            {"definition": "widgets.example.com", "id": "pattern-anchors", "field": ".spec.zoneName"},
        ],
    }
    assert sum("pattern-anchors" in line for line in text.splitlines()) == 1


def test_what_it_lists_does_not_fail_wherever_it_stands(project: Path) -> None:
    moved = "# A comment.\n\n" + CRD.replace("name: v1\n", "name: v2\n")
    (project / "moved.yaml").write_text(moved)
    for file in ("widgets.yaml", "moved.yaml"):
        result = run(project, "--fail-on", "warning", file=file)
        assert (result.exit_code, result.stdout) == (0, "")
        assert "1 CRD: 0 errors, 0 warnings, 3 in the baseline, 5 info hidden" in result.stderr


def test_what_is_new_fails(project: Path) -> None:
    (project / "widgets.yaml").write_text(CRD + MORE)
    result = run(project, "--fail-on", "warning")
    assert result.exit_code == 1
    assert result.stdout.count("warning[") == 1
    assert "warning[duration-text]: v1:.spec.dryTimeout: " in result.stdout


def test_an_error_may_be_known_too(project: Path) -> None:
    (project / "widgets.yaml").write_text(BAD)
    assert run(project).exit_code == 1
    lint("--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
    assert run(project).exit_code == 0


def test_what_is_gone_is_stale(project: Path) -> None:
    (project / "widgets.yaml").write_text(CRD.replace("zoneName:", "areaName:"))
    result = run(project)
    assert result.exit_code == 0
    assert "stale in the baseline: widgets.example.com: pattern-anchors: .spec.zoneName\n" in result.stderr
    assert document(project)["baseline"]["stale"] == [
        {"definition": "widgets.example.com", "id": "pattern-anchors", "field": ".spec.zoneName"}
    ]
    lint("--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
    assert "stale" not in run(project).stderr


def test_what_is_hidden_ignored_or_not_looked_at_is_not_stale(project: Path) -> None:
    lint("--all", "--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
    for arguments in ((), ("--all",), ("--rules", "server")):
        assert document(project, *arguments)["baseline"]["stale"] == []
    ignored = CRD.replace(" timeout:\n", " timeout: # crdkeeper:ignore=duration-text Ours.\n")
    (project / "widgets.yaml").write_text(ignored)
    assert document(project)["baseline"]["stale"] == []
    (project / "widgets.yaml").write_text(GOOD.replace("widgets", "gadgets").replace("widget", "gadget"))
    assert document(project)["baseline"]["stale"] == []


def test_a_type_at_one_more_field_is_new_there_alone(project: Path) -> None:
    (project / "widgets.yaml").write_text(GOOD + WAIT.format("one") + WAIT.format("two"))
    lint("--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
    more = "".join(map(WAIT.format, ("one", "two", "three", "four")))
    (project / "widgets.yaml").write_text(GOOD + more)
    found = document(project)
    (new,) = found["findings"]
    assert (new["field"], new["fields"]) == (
        "v1:.spec.three.timeout",
        [".spec.three.timeout", ".spec.four.timeout"],
    )
    assert [each["fields"] for each in found["baseline"]["known"]] == [
        [".spec.one.timeout", ".spec.two.timeout"]
    ]
    (project / "widgets.yaml").write_text(GOOD + WAIT.format("two"))
    found = document(project)
    assert found["findings"] == []
    assert [each["field"] for each in found["baseline"]["stale"]] == [".spec.one.timeout"]


def test_a_second_finding_of_one_field_is_new(project: Path) -> None:
    rule = "                - rule: self != '{}'\n"
    start = "                type: string\n                x-kubernetes-validations:\n"
    one = GOOD.replace("                type: string\n", start + rule.format("a"))
    two = one.replace(rule.format("a"), rule.format("a") + rule.format("b"))
    for before, after, new in ((one, one, 0), (one, two, 1), (two, two, 0), (two, one, 0)):
        (project / "widgets.yaml").write_text(before)
        lint("--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
        (project / "widgets.yaml").write_text(after)
        assert [each["id"] for each in document(project)["findings"]] == ["rule-message"] * new


SIZE = "                type: string\n"
UNKNOWN = GOOD.replace(SIZE, f"{SIZE}                maxLenght: 3\n")


def with_another(text: str, old: str = "", new: str = "") -> str:
    """The CRD with a copy of its version before it, which has something else there."""
    head, versions, one = text.partition("  versions:\n")
    another = one.replace("name: v1", "name: v2").replace("storage: true", "storage: false")
    return f"{head}{versions}{another.replace(old, new) if old else another}{one}"


@pytest.mark.parametrize(
    ("before", "after", "id", "fields"),
    [
        (UNKNOWN, with_another(UNKNOWN), "unknown-field", 2),
        (with_another(UNKNOWN), UNKNOWN, "unknown-field", 1),
        (BAD, with_another(BAD), "type", 1),
        (BAD, with_another(BAD, "maxLength: 3", "maxLength: 4"), "type", 2),
        (with_another(BAD, "maxLength: 3", "maxLength: 4"), BAD, "type", 1),
    ],
)
def test_the_servers_findings_remain_known_with_another_version(
    project: Path, before: str, after: str, id: str, fields: int
) -> None:
    (project / "widgets.yaml").write_text(before)
    lint("--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
    (entry,) = json.loads((project / "known.json").read_text())["findings"]
    assert (entry["id"], entry.get("count", 1)) == (id, 1)
    assert entry["field"].startswith("spec.versions[*].schema.openAPIV3Schema.")
    (project / "widgets.yaml").write_text(after)
    assert run(project, "--fail-on", "warning").exit_code == 0
    found = document(project)
    assert (found["findings"], found["baseline"]["stale"]) == ([], [])
    assert len({each["field"] for each in found["baseline"]["known"]}) == fields


@pytest.mark.parametrize(
    ("text", "of_versions"),
    [
        (UNKNOWN, ["spec.versions[0].schema"]),
        (with_another(UNKNOWN), ["spec.versions[0].schema", "spec.versions[1].schema"]),
        (BAD, ["spec.validation"]),
    ],
)
def test_a_baseline_with_the_servers_paths_is_read(project: Path, text: str, of_versions: list[str]) -> None:
    known = project / "known.json"
    (project / "widgets.yaml").write_text(text)
    lint("--write-baseline", str(known), str(project / "widgets.yaml"))
    written = json.loads(known.read_text())
    (entry,) = written["findings"]
    written["findings"] = [
        {**entry, "field": entry["field"].replace("spec.versions[*].schema", each)} for each in of_versions
    ]
    known.write_text(json.dumps(written))
    found = document(project)
    assert (found["findings"], found["baseline"]["stale"]) == ([], [])


def test_a_second_finding_in_one_of_two_versions_is_new(project: Path) -> None:
    first, second = (f"                - rule: self != '{each}'\n" for each in ("a", "b"))
    once = GOOD.replace(SIZE, f"{SIZE}                x-kubernetes-validations:\n{first}")
    twice = once.replace(first, first + second)
    both_once, both_twice, one_twice = with_another(once), with_another(twice), with_another(twice, second)
    for before, after, new in (
        (both_once, both_once, 0),
        (both_once, one_twice, 1),
        (one_twice, one_twice, 0),
        (one_twice, both_twice, 0),
        (both_twice, one_twice, 0),
    ):
        (project / "widgets.yaml").write_text(before)
        lint("--write-baseline", str(project / "known.json"), str(project / "widgets.yaml"))
        (project / "widgets.yaml").write_text(after)
        assert [each["id"] for each in document(project)["findings"]] == ["rule-message"] * new


def test_a_field_that_differs_in_another_version_remains_known(project: Path) -> None:
    (project / "widgets.yaml").write_text(with_another(CRD, "[a-z]+", "[a-y]+"))
    found = document(project)
    assert (found["findings"], found["baseline"]["stale"]) == ([], [])


def test_a_crd_in_two_files_is_listed_once(project: Path) -> None:
    (project / "again.yaml").write_text(CRD)
    files = [str(project / each) for each in ("widgets.yaml", "again.yaml")]
    known = str(project / "known.json")
    assert "with 3 findings" in lint("--write-baseline", known, *files).stderr
    assert json.loads(lint("--baseline", known, "-o", "json", *files).stdout)["findings"] == []


def test_both_options_at_once_write_it_again(project: Path) -> None:
    (project / "widgets.yaml").write_text(CRD + MORE)
    result = run(project, "--write-baseline", str(project / "known.json"), "--fail-on", "warning")
    assert (result.exit_code, len(json.loads((project / "known.json").read_text())["findings"])) == (0, 4)


def test_both_options_at_once_keep_what_is_known_of_a_type(project: Path) -> None:
    known = project / "known.json"
    (project / "widgets.yaml").write_text(GOOD + WAIT.format("one"))
    lint("--write-baseline", str(known), str(project / "widgets.yaml"))
    (project / "widgets.yaml").write_text(GOOD + WAIT.format("one") + WAIT.format("two"))
    assert "with 2 findings" in run(project, "--write-baseline", str(known)).stderr
    assert {each["field"] for each in json.loads(known.read_text())["findings"]} == {
        ".spec.one.timeout",
        ".spec.two.timeout",
    }
    assert document(project)["findings"] == []


def test_what_cannot_be_read_writes_no_baseline(project: Path) -> None:
    (project / "broken.yaml").write_text("a: [\nkind: CustomResourceDefinition\n")
    known = project / "new.json"
    files = [str(project / each) for each in ("widgets.yaml", "broken.yaml")]
    assert lint("--write-baseline", str(known), *files).exit_code == 2
    assert not known.exists()


def test_sarif_says_what_is_known(project: Path) -> None:
    results = json.loads(run(project, "-o", "sarif").stdout)["runs"][0]["results"]
    assert {each["baselineState"] for each in results} == {"unchanged"}
    assert {each["suppressions"][0]["kind"] for each in results} == {"external"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON: "),
        ("[]", "not a baseline of version 1"),
        ('{"version": 2, "findings": []}', "not a baseline of version 1"),
        ('{"version": 1}', "findings must be a list"),
        ('{"version": 1, "findings": [3]}', "findings[0]: must have definition, id and field"),
        (
            '{"version": 1, "findings": [{"definition": "a", "id": "b", "field": 3}]}',
            "findings[0]: must have definition, id and field",
        ),
        (
            '{"version": 1, "findings": [{"definition": "a", "id": "b", "field": "c", "count": true}]}',
            "findings[0].count: must be a positive integer",
        ),
    ],
)
def test_a_bad_baseline_is_an_error(project: Path, text: str, said: str) -> None:
    (project / "known.json").write_text(text)
    result = run(project)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"Error: {project}/known.json: {said}" in result.stderr


def test_a_baseline_that_is_not_there_or_too_big(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crdkeeper.cli.lint.baseline.MAX_BYTES", 1 << 8)
    assert "known.json: bigger than 0 MiB" in run(project).stderr
    (project / "known.json").unlink()
    result = run(project)
    assert (result.exit_code, "known.json: No such file or directory" in result.stderr) == (2, True)
    nowhere = str(project / "no" / "known.json")
    result = lint("--write-baseline", nowhere, str(project / "widgets.yaml"))
    assert (result.exit_code, "No such file or directory" in result.stderr) == (2, True)
