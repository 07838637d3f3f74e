"""What cannot be looked into ends each command with 2, and with a line that names it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.input.test_files import NEW, OBJECT, run

LONG = "x" * 300
LOOP = "loop"
EXCLUDE = "lint: {exclude: [private]}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: `crds` has a CRD, a symlink that leads to itself, and one that leads nowhere."""
    (tmp_path / "crds" / "private").mkdir(parents=True)
    (tmp_path / "crds" / "crd.yaml").write_text(NEW)
    (tmp_path / "crds" / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "crds" / "nothing.yaml").symlink_to("none.yaml")
    (tmp_path / LOOP).symlink_to(LOOP)
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "object.yaml").write_text(OBJECT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Forbid what is in a folder, as the kernel does to all but root."""

    def without(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            if not isinstance(path, int):
                absolute = Path(os.path.abspath(path))  # noqa: PTH100 - it calls nothing that is forbidden
                inside = folder in absolute.parents
                if inside or (absolute == folder and function is scandir):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *arguments, **options)

        return call

    scandir = os.scandir
    for of, name in ((os, "scandir"), (os, "stat"), (os, "lstat"), (Path, "open")):
        monkeypatch.setattr(of, name, without(getattr(of, name)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "crds"],
        ["lint", "--allow-none", "crds"],
        ["lint", "--allow-none", "crds/private"],
        ["diff", "crds/crd.yaml", "crds"],
        ["rehearse", "-f", "crds", "--objects", "objects"],
        ["rehearse", "-f", "crds/crd.yaml", "--objects", "crds"],
        ["upgrade-manifest", "crds"],
    ],
)
def test_a_folder_in_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    forbid(monkeypatch, folder / "crds" / "private")
    result = run(*arguments)
    (said,) = [each for each in result.stderr.splitlines() if "crds/private" in each]
    assert (result.exit_code, said.endswith("Permission denied")) == (2, True), result.output


def test_a_folder_that_is_excluded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "crds" / ".crdkeeper.yaml").write_text(EXCLUDE)
    forbid(monkeypatch, folder / "crds" / "private")
    assert run("lint", "crds").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "crds"],
        ["lint", "crds/crd.yaml"],
        ["diff", "objects/../crds/crd.yaml", "crds/crd.yaml"],
        ["diff", "--against", "HEAD", "crds/crd.yaml"],
        ["rehearse", "-f", "crds/crd.yaml", "--objects", "objects"],
        ["rehearse", "-f", "crds", "--objects", "crds/crd.yaml"],
    ],
)
def test_what_is_in_a_folder_that_cannot_be_searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    forbid(monkeypatch, folder / "crds")
    result = run(*arguments)
    said = [each for each in result.stderr.splitlines() if "crds" in each]
    assert (result.exit_code, any("Permission denied" in each for each in said)) == (2, True), result.output


@pytest.mark.parametrize("name", [f"{LONG}.yaml", f"{LONG}/crd.yaml", f"{LOOP}/crd.yaml", "crds/loop.yaml"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["lint"],
        ["diff", "crds/crd.yaml"],
        ["diff", "--against", "HEAD"],
        ["rehearse", "--objects", "objects", "-f"],
        ["rehearse", "-f", "crds/crd.yaml", "--objects"],
        ["upgrade-manifest"],
    ],
)
def test_a_name_that_no_file_has(folder: Path, arguments: list[str], name: str) -> None:
    (folder / ".crdkeeper.yaml").write_text(EXCLUDE)
    result = run(*arguments, name)
    said = [each for each in result.stderr.splitlines() if name in each]
    assert result.exit_code == 2, result.output
    assert any("File name too long" in each or "Too many levels" in each for each in said), result.output


def test_symlinks_in_a_folder_that_lead_to_no_file_are_no_files(folder: Path) -> None:
    (folder / "crds" / "objects.yaml").symlink_to("../objects")
    result = run("lint", "crds")
    assert (result.exit_code, "1 CRD: 0 errors" in result.stderr) == (0, True), result.output


def test_a_long_argument_that_may_be_a_revision(folder: Path) -> None:
    result = run("diff", f"HEAD:{LONG}", "crds/crd.yaml")
    assert (result.exit_code, f"HEAD:{LONG}" in result.stderr) == (2, True), result.output


def test_a_long_argument_that_may_be_the_name_of_a_crd(folder: Path) -> None:
    result = run("lint", LONG)
    assert (result.exit_code, "No cluster configured" in result.stderr) == (2, True), result.output
