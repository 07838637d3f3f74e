"""Which `.crdkeeper.yaml` applies to a file."""

from pathlib import Path

import pytest

from crdkeeper.cli.input.configuration import NearestConfigurations


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Projects `mine` and `other`, each with a configuration, and the working directory in the first one.

    `mine/crds/vendor` is a symlink to `other/crds`.
    """
    for project in ("mine", "other"):
        (tmp_path / project / "crds").mkdir(parents=True)
        (tmp_path / project / ".crdkeeper.yaml").touch()
    (tmp_path / "mine" / "crds" / "vendor").symlink_to(tmp_path / "other" / "crds")
    (tmp_path / "mine" / "charts").mkdir()
    (tmp_path / "mine" / "charts" / ".crdkeeper.yaml").touch()
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path / "mine" / "charts")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "nearest"),
    [
        ("a.yaml", "mine/charts/.crdkeeper.yaml"),
        ("../a.yaml", "mine/.crdkeeper.yaml"),
        ("../crds/a.yaml", "mine/.crdkeeper.yaml"),
        ("../../none/a.yaml", None),
        ("../../other/crds/a.yaml", "other/.crdkeeper.yaml"),
        # A symlink stands where it is …
        ("../crds/vendor/a.yaml", "mine/.crdkeeper.yaml"),
        ("../crds/vendor/v1/../a.yaml", "mine/.crdkeeper.yaml"),
        # … but `..` after it is above what it leads to, where the file is read.
        ("../crds/vendor/../a.yaml", "other/.crdkeeper.yaml"),
        ("../crds/vendor/v1/../../../none/a.yaml", None),
    ],
)
def test_the_nearest_is_above_the_file_that_is_read(folder: Path, file: str, nearest: str | None) -> None:
    found = NearestConfigurations(None, lambda path: path).of(Path(file))
    assert found == (folder / nearest if nearest is not None else None)


def test_without_a_file_it_is_the_working_directorys(folder: Path) -> None:
    found = NearestConfigurations(None, lambda path: path).of(None)
    assert found == folder / "mine" / "charts" / ".crdkeeper.yaml"
