"""The page about `crdkeeper diff` is up to date, and every kind is described somewhere."""

import re
from pathlib import Path

from crdkeeper.core.compatibility import definitionkinds, schemakinds
from crdkeeper.core.compatibility.change import ChangeKind
from generate.diff import page

ROOT = Path(__file__).parents[3]


def test_the_page_is_fresh() -> None:
    said = "run `python -m generate.diff > docs/diff.md`"
    assert (ROOT / "docs" / "diff.md").read_text(encoding="utf-8") == page(), said


def test_every_kind_is_told_somewhere() -> None:
    folder = ROOT / "operator" / "crdkeeper" / "core" / "compatibility"
    code = "".join(each.read_text(encoding="utf-8") for each in folder.glob("*.py"))
    reported = set(re.findall(r"\b(?:\w*kinds)\.([A-Z_]{2,})", code))
    declared = {
        name
        for module in (definitionkinds, schemakinds)
        for name, value in vars(module).items()
        if isinstance(value, ChangeKind)
    }
    assert declared == reported
