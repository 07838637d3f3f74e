"""Rules from files, while somebody writes the files in place, or a disk fails."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.webhook.rules.rulebook import RuleBook
from tests.unit.core.changes.builders import NAME
from tests.unit.webhook.rules.rulefiles import crd, look_until_settled, rules, scaled, started


@pytest.mark.parametrize("begun", ["", crd(), crd() + rules("v3")], ids=["empty", "only the CRD", "all"])
def test_rules_serve_while_their_file_is_being_written(file: Path, book: RuleBook, begun: str) -> None:
    before = book.conversions[NAME]
    file.write_text(begun)
    assert not book.refresh()
    file.write_text(crd() + rules("v4"))
    look_until_settled(book)
    assert (book.conversions, list(book.problems)) == ({NAME: before}, [NAME])


@pytest.mark.parametrize("end", ["complete", "does not compile"])
def test_a_part_of_a_file_that_is_valid_too_waits_for_a_second_look(file: Path, end: str) -> None:
    file.write_text(scaled())
    book = started((file.parent,))
    before = book.conversions[NAME].digest
    cut = scaled()[: scaled().index("    rules:")]
    file.write_text(cut)
    other = started((file.parent,))
    assert list(other.conversions) == [NAME]
    assert not book.refresh()
    assert book.conversions[NAME].digest == before
    change = (
        ("spoke: 1000", "spoke: 2000") if end == "complete" else ("spoke: spec.timeout", "spoke: spec.none")
    )
    file.write_text(scaled().replace(*change))
    assert not book.refresh()
    assert book.conversions[NAME].digest == before
    assert book.refresh()
    served = book.conversions[NAME].digest != before
    assert (served, list(book.problems)) == ((True, []) if end == "complete" else (False, [NAME]))


def test_each_beginning_of_a_file_waits_for_a_second_look(file: Path, book: RuleBook) -> None:
    whole = file.read_text()
    for begun in ("", whole, "", crd(), whole):
        file.write_text(begun)
        assert not book.refresh()
        assert list(book.conversions) == [NAME]
    assert not book.refresh()


def test_rules_serve_while_one_file_after_the_other_is_written(file: Path, book: RuleBook) -> None:
    file.write_text("")
    assert not book.refresh()
    (file.parent / "other.yaml").write_text("a: 1")
    assert not book.refresh()
    file.write_text(crd() + rules())
    look_until_settled(book)
    assert list(book.conversions) == [NAME]


def test_removed_rules_serve_for_one_more_look(file: Path, book: RuleBook) -> None:
    file.unlink()
    assert not book.refresh()
    assert list(book.conversions) == [NAME]
    assert book.refresh()
    assert book.conversions == {}
    assert not book.refresh()


def test_nothing_is_dropped_while_a_file_is_no_yaml(file: Path, book: RuleBook) -> None:
    file.write_text("{")
    look_until_settled(book)
    assert (list(book.conversions), list(book.problems)) == ([NAME], [str(file)])
    assert book.blocking == set()
    file.write_text("")
    look_until_settled(book)
    assert book.conversions == {}


@pytest.mark.parametrize("place", ["file", "folder"])
def test_what_can_no_longer_be_read_is_served_on(file: Path, book: RuleBook, place: str) -> None:
    path = file if place == "file" else file.parent
    kept = path.rename(path.with_name("kept"))
    path.symlink_to(path)  # an error also for root: too many levels of symbolic links
    for _ in range(4):
        assert not book.refresh()
    assert (list(book.conversions), book.problems) == ([NAME], {})
    path.unlink()
    kept.rename(path)
    assert not book.refresh()
    file.unlink()
    look_until_settled(book)
    assert book.conversions == {}


def test_rules_in_a_folder_that_can_no_longer_be_listed_are_served_on(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = file.parent / "sub"
    folder.mkdir()
    file.rename(folder / file.name)
    (file.parent / "lost+found").mkdir()
    scandir = os.scandir

    def denied(path: Any) -> Any:
        if Path(path) in closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    closed = [file.parent / "lost+found"]
    book = started((file.parent,))
    for each in (folder, file.parent):
        closed[:] = [each]
        for _ in range(3):
            assert not book.refresh()
        assert (list(book.conversions), book.problems) == ([NAME], {})


def test_an_error_in_the_middle_of_a_write_makes_no_part_of_the_file_serve(
    file: Path, book: RuleBook
) -> None:
    file.write_text("")
    assert not book.refresh()
    file.unlink()
    file.symlink_to(file)
    assert not book.refresh()
    assert not book.refresh()
    assert list(book.conversions) == [NAME]


def test_what_could_never_be_read_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.symlink_to(path)
    for given in (tmp_path, path):
        book = started((given,))
        assert book.problems == {str(path): os.strerror(errno.ELOOP)}
        assert book.blocking == {str(path)}
        assert not book.refresh()
    path.unlink()
    look_until_settled(book)
    assert book.problems == {}


def test_what_cannot_be_read_is_logged_when_it_is_new(
    file: Path, book: RuleBook, caplog: pytest.LogCaptureFixture
) -> None:
    def look() -> list[str]:
        caplog.clear()
        for _ in range(3):
            assert not book.refresh()
        return caplog.messages

    dangling = file.parent / "x.yaml"
    dangling.symlink_to("nothing")
    missing = f"{dangling}: {os.strerror(errno.ENOENT)}"
    assert look() == [missing]
    kept = file.rename(file.with_name("kept"))
    file.symlink_to(file)
    assert look() == [f"{file}: {os.strerror(errno.ELOOP)}. What was read before is still served."]
    file.unlink()
    kept.rename(file)
    dangling.unlink()
    assert look() == []
    dangling.symlink_to("nothing")
    assert look() == [missing]


def test_a_subfolder_that_cannot_be_listed_at_the_start_is_logged(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = file.parent / "sub"
    folder.mkdir()
    scandir = os.scandir

    def denied(path: Any) -> Any:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    book = RuleBook((file.parent,))
    for _ in range(3):
        book.refresh()
    text = f"{folder}: {os.strerror(errno.EACCES)}. Rules in this directory are not served."
    assert [each for each in caplog.messages if str(folder) in each] == [text]
    assert (list(book.conversions), book.problems) == ([NAME], {})


def test_a_file_that_is_added_and_cannot_be_read_takes_no_replica_out_of_the_service(
    file: Path, book: RuleBook, caplog: pytest.LogCaptureFixture
) -> None:
    added = file.with_name("b.yaml")
    added.symlink_to(added)
    look_until_settled(book)
    problems = {str(added): os.strerror(errno.ELOOP)}
    assert (list(book.conversions), book.problems, book.blocking) == ([NAME], problems, set())
    text = f"{added}: {os.strerror(errno.ELOOP)}"
    assert caplog.messages.count(text) == 1
    file.unlink()
    look_until_settled(book)
    assert (list(book.conversions), book.problems) == ([NAME], problems)  # it may have the rules now
    assert book.blocking == set()
    added.unlink()
    look_until_settled(book)
    assert book.conversions == {}


def test_files_that_change_all_the_time_are_named_once(
    file: Path, book: RuleBook, caplog: pytest.LogCaptureFixture
) -> None:
    before = book.conversions[NAME].digest
    file.write_text(scaled())
    beat = file.with_name("heartbeat.json")
    for look in range(29):
        beat.write_text(str(look))
        assert not book.refresh()
    assert "all the time" not in caplog.text
    for look in range(40):
        beat.write_text(f"-{look}")
        assert not book.refresh()
    text = f"No change of the rules is served, as files change all the time: {beat}."
    assert [each for each in caplog.messages if "all the time" in each] == [text]
    assert book.conversions[NAME].digest == before
    assert book.refresh()
    assert book.conversions[NAME].digest != before
    for look in range(30):
        beat.write_text(f"--- {look}")
        assert not book.refresh()
    assert caplog.messages.count(text) == 2


def test_a_file_that_is_being_written_at_the_start_serves_once_it_is_complete(file: Path) -> None:
    file.write_text(scaled()[: scaled().index("    rules:")])
    book = RuleBook((file.parent,))
    assert not book.refresh()
    file.write_text(scaled())
    assert not book.refresh()
    assert book.conversions == {}
    assert book.refresh()
    assert book.conversions[NAME].digest == started((file,)).conversions[NAME].digest


def test_a_file_that_changes_all_the_time_keeps_no_pod_from_starting(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = RuleBook((file.parent,))
    beat = file.with_name("heartbeat.json")
    for look in range(9):
        beat.write_text(str(look))
        assert not book.refresh()
    beat.write_text("{}")
    assert book.refresh()
    assert list(book.conversions) == [NAME]
    assert f"although files change all the time: {beat}." in caplog.text


async def test_the_start_waits_for_two_looks(file: Path) -> None:
    book = RuleBook((file,))
    loaded = asyncio.Event()
    task = asyncio.create_task(book.run(loaded.set))
    try:
        await asyncio.wait_for(loaded.wait(), 30)
        assert list(book.conversions) == [NAME]
    finally:
        task.cancel()
