"""The page about `crdkeeper lint` is the one that the rules make, and every rule is used."""

import re
from pathlib import Path

from crdkeeper.cli.lintdocs import page
from crdkeeper.core.schema import rules

ROOT = Path(__file__).parents[3]


def test_the_page_is_fresh() -> None:
    said = "run `python -m crdkeeper.cli.lintdocs > docs/lint.md`"
    assert (ROOT / "docs" / "lint.md").read_text(encoding="utf-8") == page(), said


def test_every_rule_is_raised_somewhere() -> None:
    code = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "operator").rglob("*.py"))
    raised = set(re.findall(r"\brules\.([A-Z_]{2,})", code))
    assert {name for name in vars(rules) if name.isupper() and not name.startswith("_")} == raised
