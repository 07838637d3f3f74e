"""Small images in the OCI layout, for tests."""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write(layout: Path, layers: Iterable[Mapping[str, bytes]], *, environment: Iterable[str] = ()) -> None:
    """Writes a layout with one image of these layers, as `buildah push oci:…` does."""
    config = add(layout, json.dumps({"config": {"Env": list(environment)}}).encode())
    stored = [add(layout, tar(layer)) for layer in layers]
    manifest = add(layout, json.dumps({"config": config, "layers": stored}).encode())
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


def add(layout: Path, data: bytes) -> dict[str, Any]:
    """Stores a blob; returns its descriptor."""
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def tar(files: Mapping[str, bytes]) -> bytes:
    """A layer with these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as layer:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            layer.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
