"""A persistent control plane: `python -m tests.controlplane build|up|down|kubeconfig`."""

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.controlplane import binaries, pids
from tests.controlplane.build import BuildFailed
from tests.controlplane.pids import ProcessId
from tests.controlplane.plane import ControlPlane
from tests.controlplane.processes import ProcessFailed

DIRECTORY = Path(__file__).parents[2] / ".run" / "cluster"


def main(arguments: list[str] | None = None, *, directory: Path = DIRECTORY) -> int:
    """Runs one command; returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "build":
                print(binaries.find().kube_apiserver.parent)
            case "up":
                return up(
                    directory, api_servers=options.api_servers, emulated_version=options.emulated_version
                )
            case "down":
                return down(directory)
            case _:
                return show_kubeconfig(directory)
    except (binaries.BinariesMissing, BuildFailed, ProcessFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def up(directory: Path, *, api_servers: int = 1, emulated_version: str | None = None) -> int:
    """Starts a control plane that remains after this command has ended."""
    if _running(directory):
        print("The control plane is already up.", file=sys.stderr)
    else:
        _remove(directory)  # the remains of a crash or a reboot
        started = time.monotonic()
        plane = ControlPlane(
            directory, api_servers=api_servers, emulated_version=emulated_version, detached=True
        )
        plane.start()
        print(f"The control plane is up, after {time.monotonic() - started:.1f} s.", file=sys.stderr)
    print(f"export KUBECONFIG={_kubeconfig(directory)}")
    print("End it with `python -m tests.controlplane down`.", file=sys.stderr)
    return 0


def down(directory: Path) -> int:
    """Ends the control plane and removes its data."""
    was_there = directory.exists()
    _remove(directory)
    print("The control plane is down." if was_there else "There is no control plane.", file=sys.stderr)
    return 0


def show_kubeconfig(directory: Path) -> int:
    """Prints the path of the admin's kubeconfig."""
    if not _running(directory):
        print("The control plane is not up: `python -m tests.controlplane up`.", file=sys.stderr)
        return 1
    print(_kubeconfig(directory))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs if they are not in the cache; print where they are")
    start = commands.add_parser("up", help="start a control plane and leave it running")
    start.add_argument("--api-servers", type=int, default=1, metavar="N")
    start.add_argument(
        "--emulated-version", metavar="MINOR", help="behave as this Kubernetes version, e.g. 1.34"
    )
    commands.add_parser("down", help="end it and remove its data")
    commands.add_parser("kubeconfig", help="print the path of its kubeconfig")
    return parser


def _running(directory: Path) -> bool:
    """Whether all programs that were started are running; a control plane without one of them is useless."""
    processes = {path.stem: ProcessId.read(path) for path in (directory / "pids").glob("*.json")}
    return "kube-apiserver-0" in processes and all(process.alive for process in processes.values())


def _remove(directory: Path) -> None:
    pids.kill_all(directory / "pids")  # without a clean shutdown: the data is deleted, too
    if directory.exists():
        shutil.rmtree(directory)


def _kubeconfig(directory: Path) -> Path:
    return directory / "kubeconfigs" / "kube-apiserver-0.kubeconfig"


if __name__ == "__main__":
    sys.exit(main())
