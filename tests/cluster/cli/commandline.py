"""The command line as users run it: separate processes, with only an account's kubeconfig."""

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import IO

from tests.cluster.harness import eventually, preloaded
from tests.controlplane.processes import Running

TIMEOUT_SECONDS = 120.0
"""Only to end a test that hangs."""


Starter = Callable[[IO[bytes], IO[bytes] | int], Running]
"""Starts a program, with these for its output and its errors."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and all its output."""

    exit_code: int
    stdout: str
    stderr: str


class Command:
    """One process with its output in files."""

    def __init__(self, start: Starter, output: Path, *, terminal: int | None = None) -> None:
        self._output = output
        with (output / "stdout").open("wb") as stdout, (output / "stderr").open("wb") as stderr:
            self._process = start(stdout, stderr if terminal is None else terminal)

    @property
    def stdout(self) -> str:
        """Its standard output so far."""
        return (self._output / "stdout").read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        """Its standard error so far."""
        return (self._output / "stderr").read_text(encoding="utf-8")

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns when that is true; fails if the command ends first, or takes too long."""

        async def look() -> bool:
            # In this order: it may say so and end in between.
            ended = self._all_is_said()
            held = holds()
            assert held or not ended, f"it ended:\n{self.stdout}{self.stderr}"
            return held

        await eventually(look, seconds=TIMEOUT_SECONDS, otherwise=lambda: self.stderr)

    async def done(self, *, seconds: float = TIMEOUT_SECONDS) -> Done:
        """Returns when it has ended."""

        async def ended() -> bool:
            return self._process.poll() is not None

        await eventually(ended, seconds=seconds, otherwise=lambda: f"it runs on:\n{self.stderr}")
        return Done(self._process.wait(), self.stdout, self.stderr)

    def _all_is_said(self) -> bool:
        """Whether it has ended, and all its output can be read."""
        return self._process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal: SIGINT is what Ctrl-C does."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kills it; returns when it is gone. No error if it already is."""
        self._process.kill()
        self._process.wait()


class OnTerminal(Command):
    """One whose standard error is a terminal: `stderr` is all that was ever drawn on it."""

    def __init__(
        self,
        start: Starter,
        output: Path,
        screen: RawIOBase,
        terminal: int,
    ) -> None:
        try:
            super().__init__(start, output, terminal=terminal)
        finally:
            os.close(terminal)
        self._shown = bytearray()
        # A terminal that nobody reads stops its program.
        self._reading = threading.Thread(target=self._read, args=(screen,), name="terminal", daemon=True)
        self._reading.start()

    @property
    def stderr(self) -> str:
        return bytes(self._shown).decode(errors="replace")

    async def done(self, *, seconds: float = TIMEOUT_SECONDS) -> Done:
        ended = await super().done(seconds=seconds)
        self._reading.join()
        return Done(ended.exit_code, ended.stdout, self.stderr)

    def _all_is_said(self) -> bool:
        return super()._all_is_said() and not self._reading.is_alive()

    def _read(self, screen: RawIOBase) -> None:
        with screen:
            while piece := _read(screen):
                self._shown += piece


class CommandLine:
    """A shell of one user: all commands get this kubeconfig. Close it to end what is still running."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._kubeconfig = kubeconfig
        self._directory = directory
        self._commands: list[Command] = []

    def start(self, *args: str) -> Command:
        """Starts `crdkeeper ARGS` without waiting for it."""
        return self._begin(Command(self._crdkeeper(args, self._environment()), self._output()))

    def start_on_terminal(self, *args: str) -> Command:
        """Starts `crdkeeper ARGS` with stderr on its own terminal, without waiting for it."""
        ours, theirs = pty.openpty()
        environment = {**self._environment(), "TERM": "xterm", "COLUMNS": "160"}
        start = self._crdkeeper(args, environment)
        return self._begin(OnTerminal(start, self._output(), os.fdopen(ours, "rb", 0), theirs))

    @staticmethod
    def _crdkeeper(args: Sequence[str], environment: Mapping[str, str]) -> Starter:
        return lambda stdout, stderr: preloaded.start(
            args, stdout=stdout, stderr=stderr, environment=environment
        )

    def _begin(self, command: Command) -> Command:
        self._commands.append(command)
        return command

    def _environment(self, path: str | None = None) -> dict[str, str]:
        # As in a Job's pod: the user's terminal and language have no effect.
        return {
            "PATH": path or os.environ["PATH"],
            "KUBECONFIG": str(self._kubeconfig),
            "KUBERC": "off",
        }

    def start_program(self, program: str, *args: str, path: str | None = None) -> Command:
        """Starts another program, which may find others in `path`."""
        environment = self._environment(path)

        def start(stdout: IO[bytes], stderr: IO[bytes] | int) -> Running:
            return subprocess.Popen(
                [program, *args], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment
            )

        return self._begin(Command(start, self._output()))

    def _output(self) -> Path:
        output = self._directory / f"command-{len(self._commands)}"
        output.mkdir(parents=True)
        return output

    async def run(self, *args: str) -> Done:
        """Runs `crdkeeper ARGS` to its end."""
        return await self.start(*args).done()

    def close(self) -> None:
        """Kills what is still running."""
        for each in self._commands:
            each.kill()


def _read(screen: RawIOBase) -> bytes:
    try:
        return screen.read(65536) or b""
    except OSError:
        return b""  # the other side was closed
