"""`crdkeeper diff --allow-none`: what counts as input without any CRD."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main

TEMPLATE = "{{- if .Values.a }}\na: {{ b }"
OF_A_CRD = "{{- if .Values.a }}\nkind: CustomResourceDefinition {{ b }"
NOTHING = "0 CRDs compared. Changes: 0 breaking, 0 risky, 0 safe."


def diff(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["diff", *arguments], input=stdin)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory: files and folders without a CRD."""
    for name in ("empty", "docs", "charts"):
        (tmp_path / name).mkdir()
    (tmp_path / "none.yaml").write_text("kind: ConfigMap\n")
    (tmp_path / "docs" / "readme.txt").write_text("Nothing.\n")
    (tmp_path / "charts" / "template.yaml").write_text(TEMPLATE)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it in a git repository."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    for arguments in (
        ("init", "--quiet"),
        ("add", "."),
        (*identity, "commit", "--quiet", "--message", "Add nothing"),
    ):
        subprocess.run(["git", *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("path", ["none.yaml", "empty", "docs", "charts", "charts/template.yaml"])
def test_input_without_a_crd(path: str) -> None:
    assert diff(path, path).exit_code == 2
    result = diff("--allow-none", path, path)
    assert (result.exit_code, result.stderr, result.stdout.splitlines()[0]) == (0, "", NOTHING)


@pytest.mark.usefixtures("_committed")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--against", "HEAD", "charts"),
        ("--against", "HEAD", "docs"),
        ("--against", "HEAD", "empty"),
        ("HEAD:charts", "charts"),
        ("HEAD:docs", "docs"),
    ],
)
def test_a_revision_without_a_crd(arguments: tuple[str, ...]) -> None:
    assert diff(*arguments).exit_code == 2
    result = diff("--allow-none", *arguments)
    assert (result.exit_code, result.stderr, result.stdout.splitlines()[0]) == (0, "", NOTHING)


@pytest.mark.usefixtures("_committed")
def test_what_a_revision_lacks_is_told_from_a_folder_without_manifests() -> None:
    said = "HEAD:docs:1:1: unreadable: the folder has no YAML or JSON file"
    assert said in diff("HEAD:docs", "docs").stderr
    result = diff("--allow-none", "HEAD:typo", "docs")
    assert (result.exit_code, "there is no 'typo' in HEAD" in result.stderr) == (2, True)


def test_what_may_have_a_crd_must_be_readable() -> None:
    Path("charts/template.yaml").write_text(OF_A_CRD)
    assert diff("--allow-none", "charts", "charts").exit_code == 2
    assert diff("--allow-none", "none.yaml", "-", stdin=TEMPLATE).exit_code == 2
