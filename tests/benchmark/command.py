"""What the benchmarks have in common as commands: options, progress, figures, noise, exit codes."""

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmark.meter import machine_seconds
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
        with noise_shown():
            figures = run(options)
    except KeyboardInterrupt:
        return 130
    except WrongResult as error:
        print(f"The benchmark failed: {error}", file=sys.stderr)
        return 1
    save(options, figures)
    return 0


@contextmanager
def noise_shown() -> Iterator[None]:
    """Prints at the end how busy the machine was with other programs: all but this one and its descendants.

    Descendants count if their parents have waited for them, so all must have ended.
    """
    began, before = time.monotonic(), _seconds_of_others()
    yield
    busy = max(0.0, _seconds_of_others() - before) / (time.monotonic() - began)
    show([f"Over the whole run, other programs kept {busy:.1f} of {os.cpu_count()} cores busy."])


def _seconds_of_others() -> float:
    used = machine_seconds()
    for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        mine = resource.getrusage(whose)
        used -= mine.ru_utime + mine.ru_stime
    return used


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
