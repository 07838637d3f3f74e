"""Runs the programs that make images, with storage of their own that goes when the work is done."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

NEEDED = ("buildah", "mmdebstrap")


class BuildFailed(RuntimeError):
    """The image cannot be built; the message says what to do about it."""


def missing() -> str | None:
    """What this machine lacks to build images, as a sentence; None if it has everything."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "Images are built here by root on Linux; `docker build .` needs neither."
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return (
            f"There is no {' and no '.join(absent)} in PATH: on Debian, `apt-get install {' '.join(absent)}`."
        )
    return None


class Tools:
    """The programs, with containers and layers below one directory that is removed at the end."""

    def __init__(self, storage: Path) -> None:
        self._storage = storage

    def __enter__(self) -> Self:
        lacking = missing()
        if lacking:
            raise BuildFailed(lacking)
        self._storage.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(BuildFailed):  # what holds on to a layer is not worth more than the error
            self.buildah("rm", "--all")
            self.buildah("rmi", "--all", "--force")
        # Overlays mount their storage's home on itself.
        subprocess.run(["umount", self._storage / "graph" / "overlay"], check=False, capture_output=True)
        shutil.rmtree(self._storage, ignore_errors=True)

    def buildah(self, *arguments: str) -> str:
        """Runs one command of buildah; returns what it printed."""
        root = ["--root", str(self._storage / "graph"), "--runroot", str(self._storage / "run")]
        # By chroot, as there need be neither cgroups to manage nor a runtime of containers.
        return self.run(["buildah", *root, *arguments], BUILDAH_ISOLATION="chroot")

    def run(self, command: list[str], **environment: str) -> str:
        """Runs a program; returns its standard output.

        Raises:
            BuildFailed: with the last lines of what it printed.
        """
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env={**os.environ, **environment}
        )
        if done.returncode:
            words = "\n  ".join((done.stdout + done.stderr).splitlines()[-30:])
            raise BuildFailed(
                f"`{command[0]}` failed with status {done.returncode}; its last words:\n  {words}"
            )
        return done.stdout
