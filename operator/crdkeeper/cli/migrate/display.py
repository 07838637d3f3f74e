"""Shows migrations while they run: a bar each on a terminal, plain lines elsewhere; all on stderr."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Column

from crdkeeper.api.meta import Condition
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.migrate.narration import figures, news, phase, progress_line
from crdkeeper.cli.migrate.shared import shared, shared_line
from crdkeeper.cli.migrate.total import Total, total_line
from crdkeeper.cli.output.printing import console, line
from crdkeeper.core.text import visible

_LINE_SECONDS = 5.0
_NAME_WIDTH = 48
"""Of a bar with its resource: the bar and the figures need the rest of the line."""
_OTHER_LINES = 3
"""Of a terminal, those that bars of resources leave free."""


class Display(Protocol):
    """A context manager, so that the terminal is restored."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, migration: StorageMigration) -> None:
        """Show the migration's progress."""

    def over(self, resource: str, *, failed: bool) -> None:
        """Show that nothing more happens to a resource."""

    def say(self, text: str, resource: str = "") -> None:
        """Print a permanent line, which may be about one resource."""

    def go_on(self, name: str, text: str) -> None:
        """Print a permanent line about what goes on from now on, with its name, beside migrations."""


def display_on(stream: TextIO, resources: Sequence[str] = (), sharer: str = "") -> Display:
    """The display for this stream: of one migration, or of those of several resources, with their sum.

    `sharer` is the identity of this process if it shares the migration with others.
    """
    make = TerminalDisplay if stream.isatty() else PlainDisplay
    return make(stream, resources, sharer)


class PlainDisplay:
    """One line per changed condition, and one for progress every few seconds: for pipes and logs."""

    def __init__(self, stream: TextIO, resources: Sequence[str] = (), sharer: str = "") -> None:
        self._stream = stream
        self._sharer = sharer
        self._total = Total(resources)
        self._conditions: dict[str, list[Condition]] = {}
        self._line_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def show(self, migration: StorageMigration) -> None:
        """Show the migration's progress."""
        self._total.saw(migration)
        resource = str(migration.spec.resource)
        for each in _changes(self._conditions, migration):
            self.say(each, resource)
        progress = progress_line(migration)
        if progress and time.monotonic() - self._line_at >= _LINE_SECONDS:
            self._line_at = time.monotonic()
            self.say("; ".join(filter(None, (progress, shared_line(migration, self._sharer)))), resource)
            if self._total.resources:
                self.say(total_line(self._total))

    def over(self, resource: str, *, failed: bool) -> None:
        """Show that nothing more happens to a resource."""
        self._total.ended(resource, failed=failed)
        if self._total.resources:
            self.say(total_line(self._total))

    def say(self, text: str, resource: str = "") -> None:
        """Print a permanent line, which may be about one resource."""
        line(_about(text, resource if self._total.resources else ""), file=self._stream)

    def go_on(self, _: str, text: str) -> None:
        """Print a permanent line about what goes on from now on."""
        self.say(text)


class TerminalDisplay:
    """The changed conditions, and below them a bar for the current phase of each migration.

    Of several, the first bar is their sum. Where the terminal has too few lines, bars make room for others
    when they end. Of a migration that several processes share, the second bar is the part of this one.
    """

    def __init__(self, stream: TextIO, resources: Sequence[str] = (), sharer: str = "") -> None:
        self._bars = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, max_width=_NAME_WIDTH) if resources else None,
            ),
            BarColumn(bar_width=24),
            # One bar may take several lines: it may say why nothing moves, and until when.
            TextColumn(
                "{task.fields[detail]}", markup=False, table_column=Column(ratio=1, no_wrap=bool(resources))
            ),
            console=console(stream),
            transient=True,
            expand=True,
        )
        self._total = Total(resources)
        self._sum = self._bars.add_task("Starting", total=None, detail="") if resources else None
        self._tasks: dict[str, TaskID] = {}
        if not resources:
            self._tasks[""] = self._bars.add_task("Starting", total=None, detail="")
        self._sharer = sharer
        self._own = self._bars.add_task("", total=1, detail="", visible=False) if sharer else None
        self._conditions: dict[str, list[Condition]] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def show(self, migration: StorageMigration) -> None:
        """Show the migration's progress."""
        self._total.saw(migration)
        resource = str(migration.spec.resource)
        for each in _changes(self._conditions, migration):
            self.say(each, resource)
        self._show_total()
        task = self._task(resource if self._total.resources else "")
        if task is None:
            return
        now = phase(migration)
        name = visible(f"{now.name} {resource}" if self._total.resources else now.name)
        if now.total:
            detail = f"{now.done:,}/{now.total:,}, {figures(migration)}"
            self._bars.update(
                task, description=name, completed=now.done, total=now.total, detail=visible(detail)
            )
        else:
            self._pulse(task, name, now.message)
        self._show_own(migration)

    def over(self, resource: str, *, failed: bool) -> None:
        """Show that nothing more happens to a resource."""
        self._total.ended(resource, failed=failed)
        task = self._tasks.pop(resource, None)
        if task is not None:
            self._bars.remove_task(task)
        self._show_total()

    def say(self, text: str, resource: str = "") -> None:
        """Print a permanent line, which may be about one resource."""
        about = resource if self._total.resources else ""
        self._bars.console.print(visible(_about(text, about)), soft_wrap=True)

    def go_on(self, name: str, text: str) -> None:
        """Print a permanent line about what goes on from now on, and show it until something else does."""
        self.say(text)
        task = self._task("")
        if task is not None:
            self._pulse(task, name, text)

    def _pulse(self, task: TaskID, name: str, detail: str) -> None:
        """Have a bar move that counts nothing."""
        bar = next(each for each in self._bars.tasks if each.id == task)
        bar.total = None  # which `reset` takes for the total that there is
        self._bars.reset(task, description=name, detail=visible(detail))

    def _task(self, resource: str) -> TaskID | None:
        """The bar of a resource; None if there is no room for it."""
        task = self._tasks.get(resource)
        if task is None and len(self._tasks) < max(1, self._bars.console.height - _OTHER_LINES):
            task = self._tasks[resource] = self._bars.add_task("Starting", total=None, detail="")
        return task

    def _show_own(self, migration: StorageMigration) -> None:
        if self._own is None:
            return
        now = shared(migration, self._sharer)
        if now is None:
            self._bars.update(self._own, visible=False)
            return
        name, done, total, detail = "No part here", 0, 1, now.others
        if now.own is not None:
            name, done, total = f"{now.own.name}, here", now.own.done, now.own.total
            detail = f"{done:,} of about {total:,}; {detail}"
        self._bars.update(
            self._own, description=name, completed=done, total=total, detail=visible(detail), visible=True
        )

    def _show_total(self) -> None:
        if self._sum is not None:
            total = self._total
            self._bars.update(
                self._sum,
                description=total.ends,
                completed=total.percent,
                total=100,
                detail=total.figures,
            )


def _changes(known: dict[str, list[Condition]], migration: StorageMigration) -> list[str]:
    """What is new since the migration was shown; from now on it is known."""
    resource = str(migration.spec.resource)
    before = known.get(resource)
    known[resource] = list(migration.status.conditions)
    return [] if before is None else news(before, migration)


def _about(text: str, resource: str) -> str:
    return f"{resource}: {text}" if resource else text
