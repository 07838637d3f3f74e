"""The list of all conditions and reasons of Compositions: users read it in docs/composites.md."""

from pathlib import Path

import pytest

from crdkeeper.core.diagnosis.verdict import Reason
from crdkeeper.core.revisions.reasons import PASSING, REASONS

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "composites.md"


@pytest.mark.parametrize("reason", REASONS, ids=lambda each: f"{each.condition}-{each.name}")
def test_a_reason_is_documented(reason: Reason) -> None:
    row = f"| {reason.condition} | {reason.status} | `{reason.name}` | {reason.meaning} {reason.remedy}"
    assert f"{row.strip()} |\n" in PAGE.read_text(encoding="utf-8")


def test_no_reason_is_there_twice() -> None:
    names = [(each.condition, each.name) for each in REASONS]
    assert len(set(names)) == len(names)


def test_what_is_said_to_pass_exists() -> None:
    assert set(REASONS) >= PASSING
