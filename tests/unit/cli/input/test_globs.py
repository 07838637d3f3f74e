"""Globs of a configuration: what they are about, and that hostile ones cost no more than others."""

from pathlib import PurePosixPath

import pytest

from crdkeeper.cli.input import globs
from crdkeeper.cli.input.globs import MAX_GLOBS, MAX_LENGTH, Globs, TooManyGlobs


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("vendor", "vendor/a/b.yaml", True),
        ("vendor/", "vendor/b.yaml", True),
        ("vendor/**", "vendor/a/b.yaml", True),
        ("vendor/*.yaml", "vendor/a/b.yaml", False),
        ("**/b.yaml", "b.yaml", True),
        ("**/b.yaml", "a/c/b.yaml", True),
        ("**/b.yaml", "a/xb.yaml", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a.c", "abc", False),
        ("[a]", "[a]", True),
        ("ü*", "üb", True),
        ("a*", "a\nb", True),
    ],
)
def test_matches(glob: str, path: str, matches: bool) -> None:
    assert Globs([glob]).match(PurePosixPath(path)) is matches
    assert Globs(["nothing", glob]).match(PurePosixPath(path)) is matches


def test_a_path_that_is_no_text() -> None:
    assert Globs(["*.yaml"]).match(PurePosixPath("\udcff.yaml"))


def test_hostile_globs_are_matched_in_linear_time() -> None:
    # By Python's own expressions each of them takes longer than the universe has existed.
    path = PurePosixPath("/".join(["a"] * 500))
    assert not Globs(["**/" * 300 + "b", "*a" * 400 + "b", "**a" * 300 + "b"]).match(path)


def test_the_work_for_many_files_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globs, "STEPS", 100_000_000)
    monkeypatch.setattr(globs, "SHARE", 100_000)
    slow = Globs(["**a" + "?" * 900] * 10)
    path = PurePosixPath("/".join(["a" * 100] * 30))
    for _ in range(100_000_000 // (3_029 * 9_030 - 100_000)):
        slow.match(path)
    with pytest.raises(TooManyGlobs, match="all globs with all files"):
        slow.match(path)
    fine = Globs(["vendor/**", "**/testdata/**"] * 50)
    for i in range(2_000):
        assert not fine.match(PurePosixPath(f"charts/widgets/templates/widget-{i}.yaml"))


def test_too_many_are_refused() -> None:
    with pytest.raises(TooManyGlobs):
        Globs(["a"] * (MAX_GLOBS + 1))
    with pytest.raises(TooManyGlobs):
        Globs(["a" * (MAX_LENGTH + 1)])
