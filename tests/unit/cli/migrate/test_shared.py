"""What one of several processes shows of the migration that they share."""

from io import StringIO

import pytest

from crdkeeper.api.storagemigration import MigrationClaim, MigrationPart, MigrationShards, StorageMigration
from crdkeeper.cli.migrate.display import PlainDisplay, TerminalDisplay, display_on
from crdkeeper.cli.migrate.shared import shared_line
from crdkeeper.core.migration.sharding import name_of_pass
from tests.unit.cli.migrate.migrations import rewriting, with_condition
from tests.unit.cli.migrate.terminal import Terminal, screen, small

__all__ = ["small"]


def parted(coordinator: str = "b", mine: str = "a") -> StorageMigration:
    """One of 1,000 objects in three parts: one done, one of `mine`, and one that nobody has."""
    made = rewriting(400, 1000)
    work = name_of_pass(made.status)
    parts = [
        MigrationPart(sweep=work, done=True, scanned=330, rewritten=330),
        MigrationPart(sweep=work, holder=mine, scanned=50, rewritten=69, gone=1),
        MigrationPart(sweep="of before", holder="", done=True, scanned=300),
    ]
    made.status.shards = MigrationShards(coordinator=MigrationClaim(holder=coordinator), parts=parts)
    return made


def verifying(coordinator: str) -> StorageMigration:
    made = with_condition(parted(coordinator), "Succeeded", "Unknown", "Verifying")
    assert made.status.sweep is not None
    made.status.sweep.type = "Verify"
    return made


def ended_pass() -> StorageMigration:
    made = parted()
    assert made.status.sweep is not None
    made.status.sweep.done = True
    return made


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            parted(),
            "here part 1 of 3: 70 of about 333; 1 of 3 parts done, 1 at work; coordinated by b",
        ),
        (parted(mine="c"), "1 of 3 parts done, 1 at work; coordinated by b"),
        (
            parted(coordinator="a"),
            "here part 1 of 3: 70 of about 333; 1 of 3 parts done, 1 at work; coordinated by this process",
        ),
        (parted("", mine=""), "1 of 3 parts done, 0 at work; coordinated by nobody now"),
        (verifying("b"), "verified by b"),
        (verifying("a"), "verified by this process"),
        (ended_pass(), ""),
        (rewriting(), ""),
    ],
)
def test_a_line_says_what_is_done_here_and_elsewhere(made: StorageMigration, line: str) -> None:
    assert shared_line(made, "a") == line


def test_who_shares_nothing_says_nothing_of_parts() -> None:
    assert shared_line(parted(mine="", coordinator=""), "") == ""


def test_a_log_has_it_behind_the_progress_of_the_whole() -> None:
    stream = StringIO()
    with display_on(stream, sharer="a") as display:
        assert isinstance(display, PlainDisplay)
        display.show(parted("evil\x1b[2J\n::error::"))
    (line,) = stream.getvalue().splitlines()
    whole, _, rest = line.partition("; ")
    assert whole == "Rewriting: 400 of 1,000 (40%), 301/s, 16 in flight, 0 refused, 3s left"
    assert rest.startswith(
        "here part 1 of 3: 70 of about 333; 1 of 3 parts done, 1 at work; coordinated by evil"
    )
    assert "\x1b" not in line


@pytest.mark.usefixtures("small")
def test_a_terminal_has_a_bar_for_the_own_part() -> None:
    display = display_on(Terminal(), sharer="a")
    assert isinstance(display, TerminalDisplay)
    assert len(screen(display)) == 1

    display.show(parted())
    whole, own = screen(display)
    assert "Rewriting" in whole and "400/1,000, 301/s" in whole
    assert "Part 1 of 3, here" in own
    assert "70 of about 333; 1 of 3 parts done, 1 at work; coordinated by b" in own

    display.show(parted("\x1b[2J", mine="c"))
    _, own = screen(display)
    assert "No part here" in own and "1 of 3 parts done" in own
    with display._bars.console.capture() as raw:
        display._bars.console.print(display._bars.get_renderable())
    assert "\x1b[2J" not in raw.get()

    display.show(verifying("b"))
    _, own = screen(display)
    assert "verified by b" in own

    display.show(ended_pass())
    assert len(screen(display)) == 1


@pytest.mark.usefixtures("small")
def test_a_terminal_of_one_process_has_no_second_bar() -> None:
    display = TerminalDisplay(Terminal())
    display.show(parted())
    assert len(screen(display)) == 1
