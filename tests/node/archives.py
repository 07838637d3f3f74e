"""Images written as OCI archives, for `ctr images import`."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())

Json = dict[str, Any]


def layer(files: Mapping[str, bytes]) -> bytes:
    """A layer with these programs, by path without the leading slash."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, program in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o755, len(program)
            tar.addfile(entry, io.BytesIO(program))
    return content.getvalue()


def digest(content: bytes) -> str:
    """How an image names content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Archive:
    """An OCI image layout in a tar file, complete when it is closed."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path, "w")  # noqa: SIM115 - closed by __exit__
        self._images: list[Json] = []
        self._written: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._add("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        self._add("index.json", json.dumps({"schemaVersion": 2, "manifests": self._images}).encode())
        self._tar.close()

    def blob(self, kind: str, content: bytes) -> Json:
        """Adds content; returns what other parts call it by."""
        name = digest(content)
        if name not in self._written:
            self._written.add(name)
            self._add(f"blobs/{name.replace(':', '/')}", content)
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": name,
            "size": len(content),
        }

    def image(self, name: str, configuration: Json, layers: Sequence[Json]) -> None:
        """Adds an image of layers, which are in this archive, or in one that was imported before."""
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.blob("config.v1+json", json.dumps(configuration).encode()),
            "layers": layers,
        }
        described = self.blob("manifest.v1+json", json.dumps(manifest).encode())
        named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        self._images.append({**described, "annotations": named})

    def _add(self, file: str, content: bytes) -> None:
        entry = tarfile.TarInfo(file)
        entry.size = len(content)
        self._tar.addfile(entry, io.BytesIO(content))
