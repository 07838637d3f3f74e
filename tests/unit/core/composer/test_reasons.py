"""The list of all conditions and reasons: users read it in docs/composites.md."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from crdkeeper.core.composer.reasons import PASSING, REASONS
from crdkeeper.core.diagnosis.verdict import Reason

PAGE = Path(__file__).parents[4] / "docs" / "composites.md"
OBSERVED = Path(__file__).parents[3] / "cluster" / "composition"


@pytest.mark.parametrize("reason", REASONS, ids=lambda each: f"{each.condition}-{each.name}")
def test_a_reason_is_documented(reason: Reason) -> None:
    row = (
        f"| {reason.condition} | {reason.status} | `{reason.name}` | {reason.meaning} {reason.remedy}".strip()
    )
    assert f"{row} |\n" in PAGE.read_text(encoding="utf-8")


def test_no_reason_is_there_twice() -> None:
    names = [(each.condition, each.name) for each in REASONS]
    assert len(set(names)) == len(names)


def test_what_is_said_to_pass_exists() -> None:
    assert set(REASONS) >= PASSING


def observed() -> Iterator[tuple[str, ...]]:
    """What tests of the API server wait for: condition, status and reason, as literals."""
    for path in OBSERVED.glob("test_composer*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="sees" | "saw" | "param"), args=args):
                    given = [each.value for each in args if isinstance(each, ast.Constant)]
                    yield tuple(map(str, given[:3]))


def test_a_test_of_the_api_server_waits_for_each_reason() -> None:
    seen = set(observed())
    missing = {(each.condition, each.status, each.name) for each in REASONS} - seen
    assert not missing
