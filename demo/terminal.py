"""The demo's output: numbered headings, comments, and commands with their output."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_TIMEOUT = 240.0
_LAST_WORDS = 1.0
_COLOURS = {"heading": "\033[1;36m", "command": "\033[1m", "comment": "\033[2m"}


class CommandFailed(Exception):
    """A command of the demo failed."""


class Terminal:
    """Runs commands in a shell, in the project's root directory, and shows them as if typed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**os.environ, **environment}
        self._chapter = 0

    def heading(self, text: str) -> None:
        """A new chapter."""
        self._chapter += 1
        self._print(f"\n== {self._chapter}. {text}", "heading")

    def comment(self, text: str) -> None:
        """What a person would say at this point; may have several lines."""
        for line in text.splitlines():
            self._print(f"# {line}", "comment")

    def show(self, text: str) -> None:
        """Plain output."""
        self._print(text)

    def typed(self, command: str) -> None:
        """Shows a command without running it."""
        self._print(f"$ {command}", "command")

    def run(self, command: str, *, fails: bool = False) -> str:
        """Runs a command; shows it and its output, and returns the output.

        Raises CommandFailed unless its status is zero, or with `fails` if it is.
        """
        self.typed(command)
        process = self._start(command)
        try:
            output, _ = process.communicate(timeout=_TIMEOUT)
        except BaseException:
            _end(process)
            raise
        self.show(output.rstrip("\n"))
        if (process.returncode != 0) is not fails:
            raise CommandFailed(f"status {process.returncode} of: {command}")
        return output

    def watch(self, command: str, until: Callable[[], None]) -> None:
        """Runs a command that does not end, and shows its output until `until` returns.

        Then waits until the command has printed the rest.
        """
        self.typed(command)
        process = self._start(command)
        said = threading.Event()

        def show() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self.show(line.rstrip("\n"))
                said.set()

        reader = threading.Thread(target=show)
        reader.start()
        try:
            until()
            while said.wait(_LAST_WORDS):
                said.clear()
        finally:
            _end(process)
            reader.join()

    def _start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", command],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # its own group, so that all of a pipe can be ended
        )

    def _print(self, text: str, style: str = "") -> None:
        if sys.stdout.isatty() and style:
            text = f"{_COLOURS[style]}{text}\033[0m"
        print(text, flush=True)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def eventually(holds: Callable[[], bool], what: str, timeout: float = 120.0) -> None:
    """Waits until something is true; raises CommandFailed if that takes too long."""
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise CommandFailed(f"after {timeout:.0f} s not so: {what}")
        time.sleep(0.1)
