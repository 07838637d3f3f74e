"""The list of all conditions and reasons: users read it in docs/composites.md."""

import ast
from collections.abc import Iterator, Sequence
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
    """What all readers agree on in tests of the API server: condition, status and reason, as literals."""
    for path in OBSERVED.glob("test_composer*.py"):
        for test in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(test, ast.AsyncFunctionDef):
                yield from observed_by(test)


def observed_by(test: ast.AsyncFunctionDef) -> Iterator[tuple[str, ...]]:
    """What one test compares with kubectl and kstatus; of its parameters, those that it compares."""
    for node in ast.walk(test):
        match node:
            case ast.Call(func=ast.Attribute(attr="sees"), args=[_, *given]):
                said = given[:3]
                if all(isinstance(each, ast.Constant) for each in said):
                    yield literals(said)
                elif all(isinstance(each, ast.Name) for each in said):
                    names = tuple(each.id for each in said if isinstance(each, ast.Name))
                    yield from parameters(test, names)


def parameters(test: ast.AsyncFunctionDef, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The values of the first parameters of a test, if these are their names."""
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(args=[ast.Tuple(elts=titles), ast.List(elts=cases)]):
                if literals(titles[:3]) == names:
                    for case in cases:
                        if isinstance(case, ast.Call):
                            yield literals(case.args[:3])


def literals(nodes: Sequence[ast.expr]) -> tuple[str, ...]:
    return tuple(str(each.value) for each in nodes if isinstance(each, ast.Constant))


def test_a_test_of_the_api_server_compares_what_is_read_of_each_reason() -> None:
    missing = {(each.condition, each.status, each.name) for each in REASONS} - set(observed())
    assert not missing
