"""Images in the OCI layout: written as one tar with the same bytes each time, and read layer by layer."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"


def pack(layout: Path, archive: Path, *, name: str, epoch: int) -> None:
    """Writes a layout directory with one image as a tar.

    The index names the image in both ways that are in use: `org.opencontainers.image.ref.name` of the OCI
    and `io.containerd.image.name`, without which `ctr images import` gives it a name of its own.

    Args:
        layout: what `buildah push oci:…` wrote.
        archive: the file to write, replaced at the end.
        name: repository and tag.
        epoch: the time of all entries, in seconds since 1970.
    """
    index = json.loads((layout / "index.json").read_bytes())
    (manifest,) = index["manifests"]
    manifest["annotations"] = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    }
    unfinished = archive.with_name(archive.name + ".unfinished")
    with tarfile.open(unfinished, "w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in layout.rglob("*") if path.is_file()):
            data = path.read_bytes()
            if path == layout / "index.json":
                data = json.dumps(index, sort_keys=True, separators=(",", ":")).encode()
            entry = tarfile.TarInfo(path.relative_to(layout).as_posix())
            entry.size, entry.mtime, entry.mode = len(data), epoch, 0o644
            tar.addfile(entry, io.BytesIO(data))
    unfinished.rename(archive)


@dataclass(frozen=True)
class Image:
    """What an archive holds: one image and some of its files."""

    name: str
    digest: str
    """Of the manifest, as registries and `image@sha256:…` have it."""
    config: dict[str, Any]
    files: dict[str, bytes]
    """By path without the leading slash, as they are after all layers."""


def read(archive: Path, wanted: Callable[[str], bool]) -> Image:
    """Reads an archive that holds one image.

    Args:
        archive: a tar in the OCI layout, as `pack` or `docker buildx build --output type=oci` write it.
        wanted: says by its path whether a file is to be read.
    """
    with tarfile.open(archive) as tar:
        (entry,) = json.loads(_member(tar, "index.json"))["manifests"]
        manifest = json.loads(_blob(tar, entry["digest"]))
        files: dict[str, bytes] = {}
        for layer in manifest["layers"]:
            _apply(_blob(tar, layer["digest"]), files, wanted)
        return Image(
            name=entry["annotations"]["io.containerd.image.name"],
            digest=entry["digest"],
            config=json.loads(_blob(tar, manifest["config"]["digest"])),
            files=files,
        )


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file in {tar.name!r}")
    return file.read()


def _blob(tar: tarfile.TarFile, digest: str) -> bytes:
    algorithm, _, value = digest.partition(":")
    data = _member(tar, f"blobs/{algorithm}/{value}")
    if hashlib.new(algorithm, data).hexdigest() != value:
        raise ValueError(f"the blob {digest} of {tar.name!r} is damaged")
    return data


def _apply(layer: bytes, files: dict[str, bytes], wanted: Callable[[str], bool]) -> None:
    """Lays one layer over the files: https://github.com/opencontainers/image-spec/blob/main/layer.md."""
    added: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        for entry in tar:
            path = PurePosixPath(entry.name)
            if path.name == _OPAQUE:
                _remove(files, f"{path.parent}/")
            elif path.name.startswith(_WHITEOUT):
                gone = str(path.with_name(path.name.removeprefix(_WHITEOUT)))
                files.pop(gone, None)
                _remove(files, f"{gone}/")
            elif entry.isfile() and wanted(str(path)) and (file := tar.extractfile(entry)):
                added[str(path)] = file.read()
    files.update(added)


def _remove(files: dict[str, bytes], prefix: str) -> None:
    for path in [path for path in files if path.startswith(prefix)]:
        del files[path]
