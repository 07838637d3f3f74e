"""The page about DefinitionReports is up to date, and complete."""

from pathlib import Path

import pytest

from crdkeeper.core.diagnosis.registry import REASONS
from generate import reports

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == reports.page(), "run: make generate"


@pytest.mark.parametrize("condition", REASONS)
def test_each_reason_is_there_with_its_remedy(condition: str) -> None:
    text = reports.page()
    assert f"\n## {condition}\n" in text
    for each in REASONS[condition]:
        heading = f"### {condition} {each.status}: {each.name}"
        section = text.partition(heading)[2].partition("\n#")[0]
        assert each.meaning in section, each.name
        assert each.remedy in section, each.name


def test_what_is_no_reason_has_no_section() -> None:
    headings = [line for line in reports.page().splitlines() if line.startswith("### ")]
    assert len(headings) == sum(map(len, REASONS.values()))
