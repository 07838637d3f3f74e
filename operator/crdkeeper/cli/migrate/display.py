"""Shows a migration while it runs: a progress bar on a terminal, plain lines elsewhere; all on stderr."""

import time
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column

from crdkeeper.api.meta import Condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.migrate.narration import figures, news, phase, progress_line
from crdkeeper.cli.output.printing import console, line
from crdkeeper.core.text import visible

_LINE_SECONDS = 5.0


class Display(Protocol):
    """A context manager, so that the terminal is restored."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, migration: StorageMigration) -> None:
        """Show the migration's progress."""

    def say(self, text: str) -> None:
        """Print a permanent line."""


def display_on(stream: TextIO) -> Display:
    """The display for this stream."""
    return TerminalDisplay(stream) if stream.isatty() else PlainDisplay(stream)


class PlainDisplay:
    """One line per changed condition, and one for progress every few seconds: for pipes and logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._conditions: list[Condition] | None = None
        self._line_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def show(self, migration: StorageMigration) -> None:
        """Show the migration's progress."""
        if self._conditions is not None:
            for line in news(self._conditions, migration):
                self.say(line)
        self._conditions = list(migration.status.conditions)
        line = progress_line(migration)
        if line and time.monotonic() - self._line_at >= _LINE_SECONDS:
            self._line_at = time.monotonic()
            self.say(line)

    def say(self, text: str) -> None:
        """Print a permanent line."""
        line(text, file=self._stream)


class TerminalDisplay:
    """The changed conditions, and below them a bar for the migration's current phase."""

    def __init__(self, stream: TextIO) -> None:
        self._bar = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[detail]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            console=console(stream),
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task("Starting", total=None, detail="")
        self._conditions: list[Condition] | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, migration: StorageMigration) -> None:
        """Show the migration's progress."""
        if self._conditions is not None:
            for line in news(self._conditions, migration):
                self.say(line)
        self._conditions = list(migration.status.conditions)
        now = phase(migration)
        if now.total:
            detail = f"{now.done:,}/{now.total:,}, {figures(migration)}"
            self._bar.update(
                self._task, description=now.name, completed=now.done, total=now.total, detail=visible(detail)
            )
        else:
            self._bar.reset(self._task, description=now.name, total=None, detail=visible(now.message))

    def say(self, text: str) -> None:
        """Print a permanent line."""
        self._bar.console.print(visible(text), soft_wrap=True)
