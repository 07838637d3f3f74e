"""The list of all conditions and reasons of composites: users read it in docs/composites.md."""

from pathlib import Path

import pytest

from crdkeeper.core.composites.reasons import PASSING, REASONS
from crdkeeper.core.diagnosis.verdict import Reason

PAGE = Path(__file__).parents[4] / "docs" / "composites.md"


@pytest.mark.parametrize("reason", REASONS, ids=lambda each: f"{each.condition}-{each.name}")
def test_a_reason_is_documented(reason: Reason) -> None:
    row = f"| {reason.condition} | {reason.status} | `{reason.name}` | {reason.meaning} {reason.remedy}"
    assert f"{row.strip()} |\n" in PAGE.read_text(encoding="utf-8")


def test_what_is_said_to_pass_exists() -> None:
    assert set(REASONS) >= PASSING
