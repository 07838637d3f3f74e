"""Builds Go programs of the benchmarks into a cache outside the tree, once per source."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.controlplane.build import BuildFailed, cache_directory

PROGRAMS: Final = {"gowebhook": ("webhook", "load"), "godelay": ("delay",)}
"""Of each module beside this file."""


def build(module: str = "gowebhook") -> Path:
    """The directory with the programs of a module. Raises BuildFailed, also if there is no Go."""
    source = Path(__file__).parent / module
    target = cache_directory(module) / _key(source)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        packages = [f"./{name}" for name in PROGRAMS[module]]
        command = ["go", "build", "-trimpath", "-o", f"{scratch / 'programs'}/", *packages]
        (scratch / "programs").mkdir()
        done = subprocess.run(
            command,
            cwd=source,
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
        raise BuildFailed(f"{module} is built from source, but there is no `go` in PATH") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _key(source: Path) -> str:
    digest = hashlib.sha256(f"{platform.system()}/{platform.machine()}".encode())
    for file in sorted([source / "go.mod", *source.rglob("*.go")]):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
