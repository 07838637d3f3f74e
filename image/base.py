"""A base image of Debian's packages, for machines without access to a registry of images.

It has what the Dockerfile requires of its base: `python` with `venv`. It is built once and kept in the cache
outside the tree, next to the control plane's programs; the key consists of everything that determines the
result.
"""

import fcntl
import hashlib
import platform
import shutil
import tempfile
from pathlib import Path

from image.tools import Tools
from tests.controlplane.build import cache_directory

SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python-is-python3", "python3-venv")
# Nothing in the image depends on it; the files of one package version get the same times on each machine.
EPOCH = 1_700_000_000
REMOVED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
KEPT = ("/usr/share/doc/*/copyright",)  # licences require it
OF_THIS_MACHINE = ("etc/hostname", "etc/resolv.conf")
LOGS = ("var/cache/ldconfig/aux-cache", "var/log/alternatives.log", "var/log/apt", "var/log/dpkg.log")


def image() -> Path:
    """The base as an OCI archive, built now if it is not in the cache.

    Raises:
        BuildFailed: a tool is missing or failed; the message says what to do.
    """
    cache = cache_directory("image")
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / f"base-{_key()}.tar"
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_file():
            _make(target)
    return target


def _key() -> str:
    parts = (platform.machine(), *_bootstrap(Path("FILES")), str(EPOCH))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _bootstrap(files: Path) -> list[str]:
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in REMOVED]
    options += [f"--dpkgopt=path-include={pattern}" for pattern in KEPT]
    options.append('--customize-hook=cd "$1" && rm -rf ' + " ".join((*OF_THIS_MACHINE, *LOGS)))
    include = "--include=" + ",".join(PACKAGES)
    # Without a mirror, mmdebstrap gets the suite with its updates from Debian itself.
    return ["mmdebstrap", "--quiet", "--variant=minbase", include, *options, SUITE, str(files)]


def _make(target: Path) -> None:
    """Builds the base next to the target and renames it at the end: the cache contains only complete ones."""
    scratch = Path(tempfile.mkdtemp(prefix=".base-", dir=target.parent))
    try:
        with Tools(scratch / "storage") as tools:
            context = scratch / "context"
            context.mkdir()
            tools.run(_bootstrap(context / "files.tar"), SOURCE_DATE_EPOCH=str(EPOCH))
            (context / "Dockerfile").write_text("FROM scratch\nADD files.tar /\n", encoding="utf-8")
            layout = f"oci-archive:{scratch / 'base.tar'}"
            tools.buildah("build", f"--timestamp={EPOCH}", "--tag=base", str(context))
            tools.buildah("push", "base", layout)
        (scratch / "base.tar").rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
