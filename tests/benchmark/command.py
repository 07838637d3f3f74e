"""What the benchmarks have in common as commands: options, progress, figures, exit codes."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.benchmark.subject import WrongResult


def parser_of(module: str, description: str | None) -> argparse.ArgumentParser:
    """A parser for `python -m tests.benchmark.MODULE` that has `--json`; the description keeps its lines."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.benchmark.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures")
    return parser


def execute(run: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> int:
    """Run a benchmark and write the figures that it returns to the file of `--json`.

    Returns the exit code: 1 if an object was not rewritten that should have been, 130 after an interruption,
    else 0.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up, as after Ctrl-C
    try:
        figures = run(options)
    except KeyboardInterrupt:
        return 130
    except WrongResult as error:
        print(f"The benchmark failed: {error}", file=sys.stderr)
        return 1
    save(options, figures)
    return 0


def save(options: argparse.Namespace, figures: Any) -> None:
    """Write the figures to the file of `--json`, if there is one."""
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def show(lines: Sequence[str]) -> None:
    """Print a table and an empty line."""
    print(*lines, "", sep="\n", flush=True)


def tell(progress: str) -> None:
    """Print a line about progress, beside the tables."""
    print(progress, file=sys.stderr, flush=True)
