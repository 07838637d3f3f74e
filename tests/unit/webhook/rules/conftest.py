"""Rules from a file."""

from pathlib import Path

import pytest

from crdkeeper.webhook.rules.rulebook import RuleBook
from tests.unit.core.changes.builders import NAME
from tests.unit.webhook.rules.rulefiles import crd, rules, started


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "rules" / "rules.yaml"
    file.parent.mkdir()
    file.write_text(crd() + rules())
    return file


@pytest.fixture
def book(file: Path) -> RuleBook:
    book = started((file.parent,))
    assert list(book.conversions) == [NAME]
    return book
