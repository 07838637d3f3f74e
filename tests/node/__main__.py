"""A persistent cluster with nodes: `python -m tests.node build|up|down`."""

import argparse
import os
import shlex
import sys
import time
from pathlib import Path

from tests.controlplane.build import BuildFailed
from tests.controlplane.processes import ProcessFailed
from tests.node import images, leftovers, programs, requirements
from tests.node.cluster import NodeCluster

DIRECTORY = Path(__file__).parents[2] / ".run" / "node"


def main(arguments: list[str] | None = None, *, directory: Path = DIRECTORY) -> int:
    """Runs one command; returns its exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "down" and not leftovers.RECORDS.exists():
        return 0  # there is nothing here, without root or without a cluster
    reason = requirements.lacking()
    if reason:
        print(f"This cannot be done here: {reason}.", file=sys.stderr)
        return 0 if options.command == "build" else 1  # the tests are skipped, and `make e2e` says why
    try:
        match options.command:
            case "build":
                programs.find()
                images.pause()
            case "up":
                up(directory, nodes=options.nodes)
            case _:
                down(directory)
    except (BuildFailed, ProcessFailed, leftovers.LeftBehind) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def up(directory: Path, *, nodes: int) -> None:
    """Starts a cluster that remains after this command has ended, with crdkeeper's image on its nodes."""
    kubectl = directory / "kubectl"
    if kubectl.exists() and leftovers.of(directory):
        print("The cluster is already up.", file=sys.stderr)
    else:
        down(directory)  # the remains of a crash or a reboot
        started = time.monotonic()
        archive = images.crdkeeper()
        cluster = NodeCluster(directory, nodes=nodes, archives=(archive,), detached=True).start()
        kubectl.write_text(cluster.kubectl_script())
        kubectl.chmod(0o755)
        print(f"The cluster is up, after {time.monotonic() - started:.1f} s.", file=sys.stderr)
    print(f"alias kubectl={shlex.quote(str(kubectl))}")
    print("Only that kubectl reaches it. End it with `make cluster-down`.", file=sys.stderr)


def down(directory: Path) -> None:
    """Ends the cluster and removes its data, and the remains of others that were killed."""
    record = leftovers.of(directory)
    if record:
        leftovers.remove(record)
        print("The cluster is down.", file=sys.stderr)
    leftovers.sweep()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.node", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs that are not in the cache")
    start = commands.add_parser("up", help="start a cluster and leave it running")
    start.add_argument("--nodes", type=int, default=1, metavar="N")
    commands.add_parser("down", help="end it and remove its data")
    return parser


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
