"""What failed beside other suites is run again alone, and fails the run if it fails again or is too much."""

import subprocess
import sys
from pathlib import Path

import pytest

from checks.again import MOST_TESTS, failed_tests, main

FLAKY = """
import pathlib

def test_once():
    seen = pathlib.Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError

def test_fine():
    pass
"""


def first_run(folder: Path, text: str) -> Path:
    """Runs a suite with these tests; returns the folder of the caches."""
    file = folder / "test_suite.py"
    file.write_text(text)
    (folder / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={folder / 'caches' / 'suite'}", str(file)]
    assert subprocess.run(command, cwd=folder, check=False, capture_output=True).returncode == 1
    return folder / "caches"


def test_what_passes_alone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    caches = first_run(tmp_path, FLAKY)
    assert failed_tests(caches) == {"suite": ["test_suite.py::test_once"]}
    monkeypatch.chdir(tmp_path)
    assert main(caches) == 0
    printed = capfd.readouterr().out
    assert "Passed alone" in printed
    assert "1 passed" in printed
    assert failed_tests(caches) == {}
    assert main(caches) == 0
    assert capfd.readouterr().out == "No test failed.\n"


def test_what_fails_again_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    caches = first_run(tmp_path, "def test_broken():\n    assert False\n")
    monkeypatch.chdir(tmp_path)
    assert main(caches) == 1
    printed = capfd.readouterr().out
    assert "1 failed beside" in printed
    assert "Passed alone" not in printed


def test_many_failures_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = "".join(f"def test_{at}():\n    assert False\n" for at in range(MOST_TESTS + 1))
    caches = first_run(tmp_path, broken)
    monkeypatch.chdir(tmp_path)
    assert main(caches) == 1
    printed = capfd.readouterr().out
    assert "are not run again" in printed
    assert "passed" not in printed
