"""Archives of images: the same bytes each time, and the files after all layers."""

import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from image import archive
from tests.unit.image import layouts

NAME = "registry.example/some/program:1.2"


def packed(directory: Path, *layers: Mapping[str, bytes]) -> Path:
    layout = directory / "layout"
    layouts.write(layout, layers)
    target = directory / "image.tar"
    archive.pack(layout, target, name=NAME, epoch=1_600_000_000)
    return target


def test_times_owners_and_modes_of_files_leave_no_trace(tmp_path: Path) -> None:
    first = packed(tmp_path, {"etc/motd": b"hello"}).read_bytes()
    for path in (tmp_path / "layout").rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    archive.pack(tmp_path / "layout", tmp_path / "image.tar", name=NAME, epoch=1_600_000_000)
    assert (tmp_path / "image.tar").read_bytes() == first
    with tarfile.open(tmp_path / "image.tar") as tar:
        assert {(entry.mtime, entry.uid, entry.mode) for entry in tar} == {(1_600_000_000, 0, 0o644)}


@pytest.mark.parametrize(
    ("later", "left"),
    [
        ({"etc/motd": b"changed"}, {"etc/motd": b"changed", "etc/a/b": b"b", "etc/a/c": b"c"}),
        ({"etc/.wh.motd": b""}, {"etc/a/b": b"b", "etc/a/c": b"c"}),
        ({"etc/.wh.a": b""}, {"etc/motd": b"hello"}),
        ({"etc/a/.wh..wh..opq": b"", "etc/a/d": b"d"}, {"etc/motd": b"hello", "etc/a/d": b"d"}),
        ({"etc/a/d": b"d", "etc/a/.wh..wh..opq": b""}, {"etc/motd": b"hello", "etc/a/d": b"d"}),
    ],
    ids=["changed", "removed", "folder removed", "folder replaced", "folder replaced, told later"],
)
def test_a_later_layer_wins(later: dict[str, bytes], left: dict[str, bytes], tmp_path: Path) -> None:
    image = packed(tmp_path, {"etc/motd": b"hello", "etc/a/b": b"b", "etc/a/c": b"c"}, later)
    assert archive.read(image, lambda path: True).files == left


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    image = packed(tmp_path, {"etc/motd": b"hello", "etc/passwd": b"root"})
    assert archive.read(image, lambda path: path == "etc/motd").files == {"etc/motd": b"hello"}


def test_a_damaged_blob_is_noticed(tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    layouts.write(layout, [{"etc/motd": b"hello"}])
    for blob in (layout / "blobs/sha256").iterdir():
        blob.write_bytes(blob.read_bytes() + b" ")
    archive.pack(layout, tmp_path / "image.tar", name=NAME, epoch=0)
    with pytest.raises(ValueError, match="is damaged"):
        archive.read(tmp_path / "image.tar", lambda path: True)
