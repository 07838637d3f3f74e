"""Signals end a command cleanly, however many there are."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

COMMAND = """
import asyncio
import sys

from crdkeeper.cli import signals
from crdkeeper.cli.input.options import run_async

signals.SAME_SECONDS = float(sys.argv[1])


def until_told(what):
    print(what, flush=True)
    sys.stdin.readline()


async def work():
    try:
        print("working", flush=True)
        await asyncio.Event().wait()
    finally:
        print("saving", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print("saved", flush=True)


try:
    run_async(signals.until_signal(work()))
except signals.Signalled as signalled:
    until_told("Interrupted.")
    sys.exit(signalled.exit_code)
"""
"""It saves its state, and ends, when it gets a line."""
LATE = """
import os
import sys


class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=int(sys.argv[2])):
        kill(process, number)


late = Late()
"""
"""It gets another signal when the interpreter has given up its handlers."""
LONG, NEVER = "600", "0"
"""For how long signals are taken to be the first one."""

signals = pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@contextmanager
def command(same_seconds: str, *late: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", LATE + COMMAND if late else COMMAND, same_seconds, *map(str, late)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            until(process, "working")
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], what: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{what}\n"


@signals
def test_a_signal_sent_twice_is_one(number: signal.Signals, exit_code: int) -> None:
    with command(LONG) as process:
        process.send_signal(number)
        until(process, "saving")
        process.send_signal(number)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        until(process, "saved")
        until(process, "Interrupted.")
        process.send_signal(number)

        assert process.communicate("\n") == ("", "")
        assert process.returncode == exit_code


@signals
def test_another_signal_ends_what_hangs(number: signal.Signals, exit_code: int) -> None:
    with command(NEVER) as process:
        process.send_signal(number)
        until(process, "saving")
        process.send_signal(number)

        # Whatever is open stays open: the end of its input would end it, too.
        process.wait(timeout=60)
        assert process.communicate() == ("", "")
        assert process.returncode == exit_code


@signals
def test_a_signal_at_the_very_end_changes_nothing(number: signal.Signals, exit_code: int) -> None:
    with command(LONG, number) as process:
        process.send_signal(number)
        until(process, "saving")

        assert process.communicate("\n\n") == ("saved\nInterrupted.\n", "")
        assert process.returncode == exit_code
