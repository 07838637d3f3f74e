"""Builds the control plane's programs from Go modules into a cache outside the tree, once per version.

The Go module in `module/` names the versions and nothing else does: the version that the programs
report is taken from there, and a change there makes a new cache entry.
"""

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).parent / "module"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
PROGRESS_EVERY = 10.0

# Without the stamp a server calls itself v0.0.0-master. The module proxy doesn't know the git commit.
FLAGS = ("-trimpath", "-mod=readonly")
LDFLAGS = "-s -w " + " ".join(
    f"-X k8s.io/component-base/version.{name}"
    for name in (
        "gitVersion={version}",
        "gitMajor={major}",
        "gitMinor={minor}",
        "gitCommit=",
        "gitTreeState=archive",
        "buildDate={date}",
    )
)


class BuildFailed(RuntimeError):
    """The programs cannot be built; the message says what to do about it."""


def build() -> Path:
    """The directory with all programs of the current `module/`, built now if it is not in the cache."""
    cache = cache_directory()
    target = cache / _key()
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / ".lock"):
        if not target.is_dir():  # another process may have built it while we waited for the lock
            _build_into(target)
    return target


def cache_directory() -> Path:
    """Where builds are kept: CRDKEEPER_CACHE, else the user's cache directory."""
    named = os.environ.get("CRDKEEPER_CACHE")
    root = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "crdkeeper"
    return root.expanduser().absolute() / "controlplane"


def _key() -> str:
    """Names a build by all that goes into it, without asking Go: a cached build needs no Go at all."""
    digest = hashlib.sha256()
    for part in (
        (MODULE / "go.mod").read_bytes(),
        (MODULE / "go.sum").read_bytes(),
        f"{platform.system()}/{platform.machine()}".encode(),
        " ".join((*FLAGS, LDFLAGS, *PROGRAMS)).encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("control plane: waiting for another process that builds", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(target: Path) -> None:
    """Builds beside the target and renames at the end: a directory in the cache is always complete."""
    _check_go()
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        programs = scratch / "programs"
        programs.mkdir()
        _run_build(["go", "build", *FLAGS, "-ldflags", _ldflags(), "-o", f"{programs}/", "tool"], scratch)
        (programs / "server").rename(programs / "etcd")  # Go names it by the last part of its package
        missing = [name for name in PROGRAMS if not (programs / name).is_file()]
        if missing:
            raise BuildFailed(
                f"the build made no {', '.join(missing)}: see the tool lines in {MODULE}/go.mod"
            )
        programs.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_build(command: list[str], scratch: Path) -> None:
    output = scratch / "output.log"
    with output.open("wb") as log:
        process = subprocess.Popen(command, cwd=MODULE, env=_environment(), stdout=log, stderr=log)
        try:
            _report_until_done(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)  # the one signal on which Go also ends its compilers
                process.wait()
    if process.returncode:
        lines = output.read_text(errors="replace").splitlines()[-20:]
        raise BuildFailed("go build failed; its last words:\n  " + "\n  ".join(lines))


def _report_until_done(process: subprocess.Popen[bytes]) -> None:
    started = time.monotonic()
    terminal = sys.stderr.isatty()
    start, end = ("\r", "") if terminal else ("", "\n")
    print("control plane: building from source (once; some minutes if Go's cache is cold)", file=sys.stderr)
    while process.poll() is None:
        try:
            process.wait(1.0 if terminal else PROGRESS_EVERY)
        except subprocess.TimeoutExpired:
            elapsed = f"{time.monotonic() - started:.0f}"
            print(f"{start}control plane: building, {elapsed} s", end=end, file=sys.stderr, flush=True)
    print(f"{start}control plane: build ended after {time.monotonic() - started:.0f} s", file=sys.stderr)


def _check_go() -> None:
    """Says what to do if Go is missing or too old, where `go build` would fail with a parse error."""
    match = re.search(r"^go (\d+)\.(\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildFailed(f"{MODULE}/go.mod has no go line")
    needed = (int(match[1]), int(match[2]))
    advice = (
        f"Install Go {needed[0]}.{needed[1]} or newer (any Go from 1.21 on fetches it by itself unless "
        "GOTOOLCHAIN=local), or set KUBEBUILDER_ASSETS to a directory with envtest's programs."
    )
    try:
        found = _go("version")
    except FileNotFoundError:
        raise BuildFailed(
            f"the control plane is built from source, but there is no `go` in PATH. {advice}"
        ) from None
    version = re.search(r"\bgo(\d+)\.(\d+)", found)
    if version is None or (int(version[1]), int(version[2])) < needed:
        raise BuildFailed(f"this Go is too old to build the control plane: {found.strip()}. {advice}")


def _ldflags() -> str:
    module = json.loads(_go("list", "-mod=readonly", "-m", "-json", "k8s.io/kubernetes"))
    version: str = module["Version"]
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return LDFLAGS.format(version=version, major=major, minor=minor, date=module["Time"])


def _go(*arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        check=False,
        cwd=MODULE,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BuildFailed(f"`go {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout


def _environment() -> dict[str, str]:
    # A workspace file somewhere above would change which versions are built.
    return {**os.environ, "GOWORK": "off"}
