"""The process `crdkeeper`: `python -m crdkeeper` is the same."""

from crdkeeper.cli import main
from crdkeeper.cli.unusedclients import leave_out_unused_clients


def run() -> None:
    """Run the command line, in a process of its own."""
    leave_out_unused_clients()
    main()


if __name__ == "__main__":
    run()
