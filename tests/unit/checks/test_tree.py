"""The checks of the tree find what they are for."""

from pathlib import Path

import pytest

from checks.tree import (
    MOST_LINES,
    PACKAGES,
    SOURCES,
    UNIT_TESTS,
    ambiguous_names,
    long_files,
    silent_packages,
    stray_tests,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one package, of which nothing is to be said."""
    for each in SOURCES:
        (tmp_path / each).mkdir()
    write(tmp_path, f"{PACKAGES}/__init__.py", '"""What lives here."""\n')
    return tmp_path


def write(tree: Path, path: str, text: str) -> None:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [None, "", '"""No end"""', f'"""{"Too long " * 30}."""', "# A comment.\n"],
    ids=["none", "empty", "no sentence", "too long", "no docstring"],
)
def test_a_package_says_what_lives_in_it(tree: Path, text: str | None) -> None:
    assert list(silent_packages(tree)) == []
    write(tree, f"{PACKAGES}/core/decision.py", '"""A decision."""\n')
    if text is not None:
        write(tree, f"{PACKAGES}/core/__init__.py", text)
    (said,) = silent_packages(tree)
    assert said.startswith(f"{PACKAGES}/core")
    write(tree, f"{PACKAGES}/core/__init__.py", '"""Decisions, which are\npure.\n\nMore about them"""\n')
    assert list(silent_packages(tree)) == []


@pytest.mark.parametrize("source", SOURCES)
def test_a_long_file_has_a_reason(tree: Path, source: str) -> None:
    write(tree, f"{source}/table.py", "x = 1\n" * MOST_LINES)
    assert list(long_files(tree)) == []
    write(tree, f"{source}/table.py", "x = 1\n" * (MOST_LINES + 1))
    assert list(long_files(tree)) == [f"{source}/table.py: {MOST_LINES + 1} lines, and no reason for it"]
    write(tree, f"{source}/table.py", "# Long because it is a table.\n" + "x = 1\n" * MOST_LINES)
    assert list(long_files(tree)) == []


def test_a_class_has_a_name_of_its_own(tree: Path) -> None:
    write(tree, f"{PACKAGES}/core/one.py", "class Verdict: ...\nclass _Private: ...\n")
    write(tree, f"{PACKAGES}/scripting/kinds.py", "class Verdict: ...\n")
    write(tree, f"{PACKAGES}/core/other.py", "class _Private: ...\nclass Answer:\n    class Verdict: ...\n")
    assert list(ambiguous_names(tree)) == []
    write(tree, f"{PACKAGES}/core/third.py", "class Verdict: ...\n")
    assert list(ambiguous_names(tree)) == ["Verdict: means one thing in each of core/one.py, core/third.py"]


def test_tests_mirror_the_packages(tree: Path) -> None:
    (tree / PACKAGES / "core/lint").mkdir(parents=True)
    for place in ("test_tour.py", "core/lint/test_fields.py", "image/test_sbom.py"):
        write(tree, f"{UNIT_TESTS}/{place}", "")
    assert list(stray_tests(tree)) == []
    write(tree, f"{UNIT_TESTS}/core/linter/test_fields.py", "")
    assert list(stray_tests(tree)) == [f"{UNIT_TESTS}/core/linter: there is no {PACKAGES}/core/linter"]
