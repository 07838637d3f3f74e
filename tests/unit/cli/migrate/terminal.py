"""A terminal, and what a display shows on it."""

import re
from io import StringIO

import pytest

from crdkeeper.cli.migrate.display import TerminalDisplay


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def screen(display: TerminalDisplay) -> list[str]:
    """What a terminal shows now, line by line."""
    with display._bars.console.capture() as shown:
        display._bars.console.print(display._bars.get_renderable())
    return [line.rstrip() for line in re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.get()).splitlines()]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("TERM", "xterm")
