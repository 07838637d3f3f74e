"""The images for nodes, as OCI archives: there is no registry.

The pause image, which every kubelet needs, is built here.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from image.build import build
from image.tools import BuildFailed as ImageFailed
from tests.controlplane.build import BuildFailed, cache_directory
from tests.node.configuration import PAUSE_IMAGE

IMAGE = "CRDKEEPER_IMAGE"
SOURCE = Path(__file__).with_name("pause.c")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_FORMAT = "1"  # of the archive: a change below requires another one


def crdkeeper() -> Path:
    """The archive with crdkeeper's image: the one in CRDKEEPER_IMAGE, or built now.

    Raises BuildFailed.
    """
    named = os.environ.get(IMAGE)
    if named:
        return Path(named)
    try:
        return build().archive
    except ImageFailed as error:
        raise BuildFailed(str(error)) from None


def pause() -> Path:
    """The OCI archive of the pause image, built now if the cache lacks it. Raises BuildFailed."""
    key = hashlib.sha256(SOURCE.read_bytes() + f"{platform.machine()} {_FORMAT}".encode()).hexdigest()[:16]
    target = cache_directory("node-pause") / f"{key}.tar"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        program, archive = Path(scratch) / "pause", Path(scratch) / "archive.tar"
        _compile(program)
        _write_archive(archive, PAUSE_IMAGE, program, entrypoint="/pause")
        archive.replace(target)
    return target


def _compile(program: Path) -> None:
    if shutil.which("gcc") is None:
        raise BuildFailed("the pause image is built with gcc. On Debian: apt-get install gcc libc6-dev")
    command = ["gcc", "-static", "-Os", "-s", "-o", str(program), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildFailed(f"gcc cannot build {SOURCE.name}: {done.stderr.strip()}")


def _write_archive(path: Path, name: str, program: Path, *, entrypoint: str) -> None:
    """An image of one layer that holds one program, as an OCI image layout in a tar file."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        entry = tarfile.TarInfo(entrypoint.lstrip("/"))
        entry.mode, entry.size = 0o755, program.stat().st_size
        with program.open("rb") as content:
            files.addfile(entry, content)
    with tarfile.open(path, "w") as archive:

        def add(file: str, content: bytes) -> None:
            entry = tarfile.TarInfo(file)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

        def blob(kind: str, content: bytes) -> dict[str, Any]:
            digest = hashlib.sha256(content).hexdigest()
            add(f"blobs/sha256/{digest}", content)
            return {
                "mediaType": f"application/vnd.oci.image.{kind}",
                "digest": f"sha256:{digest}",
                "size": len(content),
            }

        described = blob("layer.v1.tar", layer.getvalue())
        configuration = {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Entrypoint": [entrypoint], "User": "65535:65535"},
            "rootfs": {"type": "layers", "diff_ids": [described["digest"]]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": blob("config.v1+json", json.dumps(configuration).encode()),
            "layers": [described],
        }
        named = blob("manifest.v1+json", json.dumps(manifest).encode())
        named["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        add("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
