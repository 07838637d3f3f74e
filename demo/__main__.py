"""`python -m demo [conversion | composites | retirement]`: plays a story, and cleans up."""

import signal
import sys
import time

from crdkeeper.scripting import ConnectError, WaitError
from demo import compositestory, conversionstory, retirementstory, story
from demo.stage import KUBECONFIG, Occupied, Stage, stage
from demo.terminal import CommandFailed
from tests.controlplane.binaries import BinariesMissing
from tests.controlplane.build import BuildFailed
from tests.controlplane.kubectl import KubectlError
from tests.controlplane.processes import ProcessFailed

_LOG_LINES = 20


def main() -> int:
    """Returns the exit status: 0 if everything went as in the story."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up as Ctrl-C does
    started = time.monotonic()
    chosen = {
        "conversion": conversionstory.play,
        "composites": compositestory.play,
        "retirement": retirementstory.play,
    }.get(" ".join(sys.argv[1:]))
    try:
        # The webhook runs on this machine, which the API servers of other clusters cannot reach.
        with stage(own=chosen is not None) as set_up:
            _introduce(set_up, time.monotonic() - started)
            try:
                if chosen is not None:
                    chosen(set_up)
                else:
                    set_up.terminal.comment(f"{story.OBJECTS:,} objects will be migrated.")
                    story.play(set_up)
            except BaseException:
                _last_words(set_up)
                raise
    except KeyboardInterrupt:
        print("\nInterrupted; all is cleaned up.", file=sys.stderr)
        return 130
    except (
        BinariesMissing,
        BuildFailed,
        CommandFailed,
        ConnectError,
        KubectlError,
        Occupied,
        ProcessFailed,
        WaitError,
    ) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    print(f"\nAll done and cleaned up after {time.monotonic() - started:.0f} s.")
    return 0


def _introduce(stage: Stage, seconds: float) -> None:
    terminal = stage.terminal
    if stage.plane is None:
        terminal.comment(f"On the cluster of {KUBECONFIG}.")
    else:
        terminal.comment(
            f"A real control plane (etcd, kube-apiserver, kube-controller-manager), up in {seconds:.1f} s."
        )
    terminal.run("kubectl version")


def _last_words(stage: Stage) -> None:
    for name, process in (("operator", stage.operator), ("composer", stage.composer)):
        if process is not None:
            state = "runs" if process.running else f"has ended with status {process.exit_status}"
            lines = process.log_since().splitlines()[-_LOG_LINES:]
            print(f"\nThe {name} {state}; the end of its log:", *lines, sep="\n  ", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
