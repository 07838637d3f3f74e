"""What `crdkeeper migrate` shows of several resources."""

import re
from io import StringIO

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.migrate.display import PlainDisplay, TerminalDisplay
from crdkeeper.cli.migrate.narration import refused_table
from crdkeeper.cli.migrate.total import Total, total_line
from tests.unit.cli.migrate.migrations import refused, rewriting, with_condition
from tests.unit.cli.migrate.terminal import Terminal, screen, small

__all__ = ["small"]

NAMES = [f"{each}.example.com" for each in ("a", "b", "c")]


def of(plural: str, done: int, total: int = 1000) -> StorageMigration:
    made = rewriting(done, total)
    made.spec.resource.resource = plural
    return made


def test_the_sum_counts_each_resource_the_same_and_all_objects() -> None:
    total = Total(NAMES)
    assert total_line(total) == "0 of 3 resources done (0%), 0 objects, 0/s, 0 refused"
    total.saw(of("a", 100))
    total.saw(of("b", 500))
    assert total_line(total) == "0 of 3 resources done (20%), 600 objects, 602/s, 0 refused"
    seen = of("a", 1000)
    seen.status.progress.objects_per_second, seen.status.progress.quarantined = 0, 2
    total.saw(seen)
    total.ended("a.example.com", failed=True)
    assert total_line(total) == "1 of 3 resources done, 1 failed (50%), 1,500 objects, 301/s, 2 refused"
    total.ended("b.example.com", failed=False)
    total.ended("c.example.com", failed=False)
    assert total_line(total) == "3 of 3 resources done, 1 failed (100%), 1,500 objects, 0/s, 2 refused"


def test_each_line_in_a_pipe_begins_with_its_resource() -> None:
    stream = StringIO()
    with PlainDisplay(stream, NAMES) as display:
        display.say("Created StorageMigration a.", "a.example.com")
        display.show(of("a", 10))
        display.show(of("b", 20))
        display.show(with_condition(of("b", 30), "Rewritten", "True", "AllWritten", "All written."))
        display.over("b.example.com", failed=False)
    assert stream.getvalue().splitlines() == [
        "a.example.com: Created StorageMigration a.",
        "a.example.com: Rewriting: 10 of 1,000 (1%), 301/s, 16 in flight, 0 refused, 3s left",
        "0 of 3 resources done (0%), 10 objects, 301/s, 0 refused",
        "b.example.com: Rewritten=True AllWritten: All written.",
        "1 of 3 resources done (33%), 40 objects, 301/s, 0 refused",
    ]


@pytest.mark.usefixtures("small")
def test_a_terminal_has_the_sum_and_a_bar_each_as_far_as_there_is_room() -> None:
    display = TerminalDisplay(Terminal(), NAMES)
    for each in ("a", "b", "c"):
        display.show(of(each, 250))

    total, *bars = screen(display)

    assert re.fullmatch(r"\S 0 of 3 resources done +[━╸╺]+ +750 objects, 903/s, 0 refused", total)
    assert [each.split()[1:3] for each in bars] == [
        ["Rewriting", "a.example.com"],
        ["Rewriting", "b.example.com"],
    ]
    assert all("250/1,000, 301/s" in each for each in bars)

    display.over("a.example.com", failed=True)
    display.show(of("c", 500))

    total, *bars = screen(display)
    assert "1 of 3 resources done, 1 failed" in total
    assert [each.split()[2] for each in bars] == ["b.example.com", "c.example.com"]


@pytest.mark.usefixtures("small")
def test_a_long_name_leaves_room_for_the_figures() -> None:
    display = TerminalDisplay(Terminal(), NAMES)
    made = of("a", 250)
    made.spec.resource.group = ".".join(["a" * 60] * 4)
    display.show(made)
    _, bar = screen(display)
    assert "250/1,000, 301/s" in bar


def test_refused_objects_of_several_resources_are_one_table() -> None:
    objects = [("a.example.com", refused("w1")), ("b.example.com", refused("w2"))]
    assert [line.split()[:2] for line in refused_table(objects, 3, with_resource=True)] == [
        ["RESOURCE", "OBJECT"],
        ["a.example.com", "default/w1"],
        ["b.example.com", "default/w2"],
        ["…", "and"],
    ]
