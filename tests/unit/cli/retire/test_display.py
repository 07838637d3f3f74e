"""What a terminal shows while `crdkeeper retire` runs."""

from io import StringIO

import pytest

from crdkeeper.cli.migrate.display import PlainDisplay, TerminalDisplay
from tests.unit.cli.migrate.migrations import migration, rewriting, with_condition
from tests.unit.cli.migrate.terminal import Terminal, screen, small

__all__ = ["small"]

QUIET = (
    "The quiet period of 168h ends at 2026-12-06T12:00:00Z, unless somebody uses v1 before. It was last used "
    "at 2026-11-28T12:00:00Z by admin in namespace default."
)


@pytest.mark.usefixtures("small")
def test_a_terminal_shows_what_is_waited_for_until_something_else_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    display = TerminalDisplay(terminal)

    display.go_on("Retiring", QUIET)

    assert terminal.getvalue() == f"{QUIET}\n"
    spinner, name, _, *words = " ".join(screen(display)).split()
    # All of it, in an ordinary terminal: the time is not among the first words.
    assert (len(spinner), name, " ".join(words)) == (1, "Retiring", QUIET)
    display.show(rewriting(40, 1000))
    line, *_ = screen(display)
    assert "Retiring" not in line


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("after", ["a wait", "a phase that counts nothing"])
def test_a_bar_pulses_again_after_one_that_counts(monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    monkeypatch.setenv("NO_COLOR", "1")  # then only the part that is done is drawn
    display = TerminalDisplay(Terminal())
    assert "━" in screen(display)[0]
    display.show(rewriting(0, 1000))
    assert "━" not in screen(display)[0]

    if after == "a wait":
        display.go_on("Retiring", QUIET)
    else:
        display.show(with_condition(migration(), "Succeeded", "Unknown", "Trimming"))

    assert "━" in screen(display)[0]
    display.show(rewriting(0, 1000))
    assert "━" not in screen(display)[0]


def test_a_pipe_gets_one_line() -> None:
    stream = StringIO()
    with PlainDisplay(stream) as display:
        display.go_on("Retiring", QUIET)
    assert stream.getvalue() == f"{QUIET}\n"
