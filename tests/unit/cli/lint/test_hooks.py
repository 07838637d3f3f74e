"""The hooks for pre-commit, run like pre-commit does: the entry, the arguments, then the changed files.

Those that were deleted are not among them, and without any, most hooks are not run.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.lint.test_lint import BAD, GOOD

ROOT = Path(__file__).parents[4]
HOOKS: dict[str, dict[str, Any]] = {
    each["id"]: each for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
}
IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.com")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with a CRD and other files."""
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "widgets.yaml").write_text(GOOD)
    (tmp_path / "values.yaml").write_text("a: 1\n")
    (tmp_path / "template.yaml").write_text("{{- if .Values.a }}\na: {{ b }\n")
    for command in (
        ("init", "--quiet"),
        ("add", "."),
        (*IDENTITY, "commit", "--quiet", "--message", "A CRD"),
    ):
        subprocess.run(("git", *command), cwd=tmp_path, check=True)
    return tmp_path


def run(
    id: str, repository: Path, *files: str, args: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """The hook in the root of the repository; a program of the environment that pre-commit has installed."""
    hook = HOOKS[id]
    assert files or hook.get("always_run", False), "the hook is skipped"
    program, *entry = shlex.split(hook["entry"])
    passed = files if hook.get("pass_filenames", True) else ()
    command = [str(Path(sys.executable).parent / program), *entry, *args, *passed]
    environment = {**os.environ, "PRE_COMMIT": "1", "KUBECONFIG": "/nowhere"}
    return subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_what_pre_commit_must_know() -> None:
    for hook in HOOKS.values():
        assert hook.keys() >= {"id", "name", "entry", "language"}
        # All files in one process: CRDs are compared with each other.
        assert hook["require_serial"] is True
        assert hook["language"] == "python"


def test_lint_passes_what_is_good(repository: Path) -> None:
    done = run("crdkeeper-lint", repository, "crds/widgets.yaml", "values.yaml", "template.yaml")
    assert (done.returncode, done.stdout) == (0, "")


def test_lint_passes_files_without_any_definition(repository: Path) -> None:
    assert run("crdkeeper-lint", repository, "values.yaml", "template.yaml").returncode == 0


def test_lint_fails_with_the_place(repository: Path) -> None:
    (repository / "crds" / "widgets.yaml").write_text(BAD)
    done = run("crdkeeper-lint", repository, "values.yaml", "crds/widgets.yaml")
    assert done.returncode == 1
    assert done.stdout.startswith("crds/widgets.yaml:22:15: error[type]")


def test_lint_takes_arguments(repository: Path) -> None:
    done = run("crdkeeper-lint", repository, "crds/widgets.yaml", args=("--fail-on", "info"))
    assert done.returncode == 1


def test_diff_passes_what_is_unchanged(repository: Path) -> None:
    done = run("crdkeeper-diff", repository, "values.yaml", args=("crds",))
    assert (done.returncode, done.stdout[:15]) == (0, "1 CRD compared."), done.stderr


def test_diff_fails_on_a_breaking_change(repository: Path) -> None:
    path = repository / "crds" / "widgets.yaml"
    path.write_text(GOOD.replace("type: string", "type: integer"))
    done = run("crdkeeper-diff", repository, "crds/widgets.yaml", args=("crds",))
    assert done.returncode == 1, done.stderr
    assert "breaking" in done.stdout


def test_diff_fails_on_a_breaking_change_in_a_renamed_file(repository: Path) -> None:
    (repository / "crds" / "widgets.yaml").unlink()
    (repository / "crds" / "renamed.yaml").write_text(GOOD.replace("type: string", "type: integer"))
    done = run("crdkeeper-diff", repository, "crds/renamed.yaml", args=("crds",))
    assert done.returncode == 1, done.stderr
    assert "breaking" in done.stdout


def test_diff_fails_on_a_deleted_file(repository: Path) -> None:
    (repository / "crds" / "other.yaml").write_text("a: 1\n")
    (repository / "crds" / "widgets.yaml").unlink()
    done = run("crdkeeper-diff", repository, args=("crds",))
    assert done.returncode == 1, done.stderr
    assert "breaking" in done.stdout


def test_diff_asks_for_a_folder(repository: Path) -> None:
    done = run("crdkeeper-diff", repository)
    assert done.returncode == 2
    assert "specify the files or folders" in done.stderr
