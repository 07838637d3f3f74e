"""Builds programs from Go modules into a cache outside the tree, once per version.

A module's go.mod is the only place that names versions: the programs report the version from there, and a
change there creates a new cache entry.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROGRESS_EVERY = 10.0

FLAGS = ("-trimpath", "-mod=readonly")
LDFLAGS = "-s -w"
# Without the stamp, a server calls itself v0.0.0-master. The module proxy doesn't know the git commit.
KUBERNETES = "k8s.io/kubernetes"
KUBERNETES_STAMP = " " + " ".join(
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


@dataclass(frozen=True)
class Module:
    """A directory with a go.mod, whose `tool` lines are the programs to build."""

    name: str
    """For messages, and the name in the cache."""
    directory: Path
    programs: tuple[str, ...]
    """The programs that the build must produce, by their final file names."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Go names a program by the last part of its package; these files get a better name."""
    kubernetes: bool = False
    """Whether the programs report the version of the module k8s.io/kubernetes."""
    tags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    """C libraries, by their pkg-config names; a module with one needs a C compiler."""
    otherwise: str = ""
    """What a user without Go can do instead of installing it."""

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of `go build`, without the linker's."""
        return (*FLAGS, "-tags", ",".join(self.tags)) if self.tags else FLAGS

    @property
    def ldflags(self) -> str:
        """The linker's flags; the stamp has placeholders for the version."""
        return LDFLAGS + KUBERNETES_STAMP if self.kubernetes else LDFLAGS


def build(module: Module) -> Path:
    """The directory with all programs of the module, built now if it is not in the cache.

    Raises BuildFailed.
    """
    cache = cache_directory(module.name)
    target = cache / _key(module)
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / ".lock", module.name):
        if not target.is_dir():  # another process may have built it while we waited for the lock
            _build_into(module, target)
    return target


def cache_directory(name: str) -> Path:
    """Where builds with that name are kept: in CRDKEEPER_CACHE, else in the user's cache directory."""
    named = os.environ.get("CRDKEEPER_CACHE")
    root = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "crdkeeper"
    return root.expanduser().absolute() / name


def _key(module: Module) -> str:
    """Identifies a build by all its inputs, without running Go: a cached build needs no Go at all."""
    digest = hashlib.sha256()
    for part in (
        (module.directory / "go.mod").read_bytes(),
        (module.directory / "go.sum").read_bytes(),
        f"{platform.system()}/{platform.machine()}".encode(),
        " ".join((*module.flags, module.ldflags, *module.programs)).encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path, name: str) -> Iterator[None]:
    """Holds the lock of a directory in the cache; says so if another process holds it."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{name}: waiting for another process that builds", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(module: Module, target: Path) -> None:
    """Builds next to the target and renames at the end: a directory in the cache is always complete."""
    _check_go(module)
    _check_libraries(module)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        programs = scratch / "programs"
        programs.mkdir()
        command = ["go", "build", *module.flags, "-ldflags", _ldflags(module), "-o", f"{programs}/", "tool"]
        _run_build(module, command, scratch)
        for built, name in module.renamed.items():
            (programs / built).rename(programs / name)
        missing = [name for name in module.programs if not (programs / name).is_file()]
        if missing:
            raise BuildFailed(
                f"the build made no {', '.join(missing)}: see the tool lines in {module.directory}/go.mod"
            )
        programs.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_build(module: Module, command: list[str], scratch: Path) -> None:
    output = scratch / "output.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=module.directory, env=_environment(module), stdout=log, stderr=log
        )
        try:
            _report_until_done(module, process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)  # the one signal on which Go also ends its compilers
                process.wait()
    if process.returncode:
        lines = output.read_text(errors="replace").splitlines()[-20:]
        raise BuildFailed(f"go build of {module.name} failed; its last words:\n  " + "\n  ".join(lines))


def _report_until_done(module: Module, process: subprocess.Popen[bytes]) -> None:
    started = time.monotonic()
    terminal = sys.stderr.isatty()
    start, end = ("\r", "") if terminal else ("", "\n")
    print(f"{module.name}: building from source (once; some minutes if Go's cache is cold)", file=sys.stderr)
    while process.poll() is None:
        try:
            process.wait(1.0 if terminal else PROGRESS_EVERY)
        except subprocess.TimeoutExpired:
            elapsed = f"{time.monotonic() - started:.0f}"
            print(f"{start}{module.name}: building, {elapsed} s", end=end, file=sys.stderr, flush=True)
    print(f"{start}{module.name}: build ended after {time.monotonic() - started:.0f} s", file=sys.stderr)


def _check_go(module: Module) -> None:
    """Says what to do if Go is missing or too old, where `go build` would fail with a parse error."""
    match = re.search(r"^go (\d+)\.(\d+)", (module.directory / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise BuildFailed(f"{module.directory}/go.mod has no go line")
    needed = (int(match[1]), int(match[2]))
    advice = (
        f"Install Go {needed[0]}.{needed[1]} or newer (any Go from 1.21 on fetches it by itself unless "
        f"GOTOOLCHAIN=local){module.otherwise}."
    )
    try:
        found = _go(module, "version")
    except FileNotFoundError:
        raise BuildFailed(
            f"{module.name} is built from source, but there is no `go` in PATH. {advice}"
        ) from None
    version = re.search(r"\bgo(\d+)\.(\d+)", found)
    if version is None or (int(version[1]), int(version[2])) < needed:
        raise BuildFailed(f"this Go is too old to build {module.name}: {found.strip()}. {advice}")


def _check_libraries(module: Module) -> None:
    """Names the Debian package of a missing library; the compiler would name a header."""
    for library in module.libraries:
        try:
            found = subprocess.run(["pkg-config", "--exists", library], check=False).returncode == 0
        except FileNotFoundError:
            found = False
        if not found:
            raise BuildFailed(
                f"{module.name} is built with {library}, which pkg-config does not find. On Debian: "
                f"apt-get install gcc libc6-dev pkg-config {library}-dev"
            )


def _ldflags(module: Module) -> str:
    if not module.kubernetes:
        return module.ldflags
    found = json.loads(_go(module, "list", "-mod=readonly", "-m", "-json", KUBERNETES))
    version: str = found["Version"]
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return module.ldflags.format(version=version, major=major, minor=minor, date=found["Time"])


def _go(module: Module, *arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        check=False,
        cwd=module.directory,
        env=_environment(module),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BuildFailed(f"`go {' '.join(arguments)}` failed: {done.stderr.strip()}")
    return done.stdout


def _environment(module: Module) -> dict[str, str]:
    # A workspace file in a parent directory would change the versions that are built.
    return {**os.environ, "GOWORK": "off", **({"CGO_ENABLED": "1"} if module.libraries else {})}
