"""Builds the Go programs of the conversion benchmark into a cache outside the tree, once per source."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.controlplane.build import BuildFailed, cache_directory

MODULE: Final = Path(__file__).parent / "gowebhook"
PROGRAMS: Final = ("webhook", "load")


def build() -> Path:
    """The directory with the programs. Raises BuildFailed, also if there is no Go."""
    target = cache_directory("gowebhook") / _key()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        packages = [f"./{name}" for name in PROGRAMS]
        command = ["go", "build", "-trimpath", "-o", f"{scratch / 'programs'}/", *packages]
        (scratch / "programs").mkdir()
        done = subprocess.run(
            command,
            cwd=MODULE,
            env={**os.environ, "GOWORK": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildFailed(f"go build failed: {done.stderr.strip()}")
        if not target.is_dir():  # another process may have been faster
            (scratch / "programs").rename(target)
    except FileNotFoundError:
        raise BuildFailed("the Go webhook is built from source, but there is no `go` in PATH") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _key() -> str:
    digest = hashlib.sha256(f"{platform.system()}/{platform.machine()}".encode())
    for file in sorted([MODULE / "go.mod", *MODULE.rglob("*.go")]):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
