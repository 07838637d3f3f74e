"""Rules from files, while somebody writes the files in place."""

import json
from pathlib import Path

import pytest

from crdkeeper.webhook.rules.rulebook import RuleBook
from tests.unit.core.changes.builders import GROUP, NAME, definition

KIND = {"apiVersion": "crdkeeper.dev/v1alpha1", "kind": "VersionConversion", "metadata": {"name": NAME}}


def crd() -> str:
    found = definition()
    found["spec"]["versions"].append({**found["spec"]["versions"][0], "name": "v2", "storage": False})
    return f"{json.dumps(found)}\n---\n"


def rules(spoke: str = "v2") -> str:
    resource = {"group": GROUP, "resource": "widgets"}
    return json.dumps({**KIND, "spec": {"resource": resource, "hub": "v1", "spokes": [{"version": spoke}]}})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rules.yaml"
    file.write_text(crd() + rules())
    return file


@pytest.fixture
def book(file: Path) -> RuleBook:
    book = RuleBook((file.parent,))
    assert book.refresh()
    assert list(book.conversions) == [NAME]
    return book


@pytest.mark.parametrize("begun", ["", crd()], ids=["empty", "only the CRD"])
def test_rules_serve_while_their_file_is_being_written(file: Path, book: RuleBook, begun: str) -> None:
    before = book.conversions[NAME]
    file.write_text(begun)
    assert book.refresh()
    assert book.conversions == {NAME: before}
    file.write_text(crd() + rules("v3"))
    assert book.refresh()
    assert not book.refresh()
    assert (book.conversions, list(book.problems)) == ({NAME: before}, [NAME])


def test_rules_serve_while_one_file_after_the_other_is_written(file: Path, book: RuleBook) -> None:
    file.write_text("")
    assert book.refresh()
    (file.parent / "other.yaml").write_text("a: 1")
    assert book.refresh()
    assert list(book.conversions) == [NAME]
    file.write_text(crd() + rules())
    assert book.refresh()
    assert not book.refresh()
    assert list(book.conversions) == [NAME]


def test_removed_rules_serve_for_one_more_look(file: Path, book: RuleBook) -> None:
    file.unlink()
    assert book.refresh()
    assert list(book.conversions) == [NAME]
    assert book.refresh()
    assert book.conversions == {}
    assert not book.refresh()


def test_nothing_is_dropped_while_a_file_is_unreadable(file: Path, book: RuleBook) -> None:
    file.write_text("{")
    assert book.refresh()
    assert not book.refresh()
    assert list(book.conversions) == [NAME]
    file.write_text("")
    assert book.refresh()
    assert book.refresh()
    assert book.conversions == {}
