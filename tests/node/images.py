"""The images for nodes, as OCI archives: there is no registry.

The pause image, which every kubelet needs, is built here.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from image.build import build
from image.tools import BuildFailed as ImageFailed
from tests.controlplane.build import BuildFailed, cache_directory
from tests.node.archives import ARCHITECTURE, Archive, digest, layer
from tests.node.configuration import PAUSE_IMAGE

IMAGE = "CRDKEEPER_IMAGE"
SOURCE = Path(__file__).with_name("pause.c")
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
    """An image of one layer that holds one program."""
    content = layer({entrypoint.lstrip("/"): program.read_bytes()})
    configuration = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {"Entrypoint": [entrypoint], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [digest(content)]},
    }
    with Archive(path) as archive:
        archive.image(name, configuration, [archive.blob("layer.v1.tar", content)])
