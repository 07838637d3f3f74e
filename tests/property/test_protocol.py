"""Whatever happens, nothing is lost; and once nothing happens any more, the work completes.

The code under test is the real one, from `MigrationRun` to the last decision, on the simulated cluster of
`tests/property/simulation`; `test_safeguards` shows what that detects when a part of the protocol is missing.
"""

from collections import Counter
from random import Random

import pytest
from hypothesis import given

from tests.property.simulation.plan import (
    REFUSALS,
    After,
    Compact,
    Event,
    Flip,
    Freeze,
    Kill,
    Moment,
    On,
    Plan,
    Recreate,
    Refuse,
    Rollback,
    Trouble,
    plans,
)
from tests.property.simulation.world import Result, simulate

EVENTFUL: tuple[tuple[Moment, Event], ...] = (
    (After(1.0), Flip("v2")),
    (After(2.0), Refuse(REFUSALS[0], frozenset({1, 2}), 60.0)),
    (On("list", 2), Compact()),
    (On("rewrite", 2), Kill(1.0)),
    (On("save", 2), Kill(-5.0)),
    (After(1.0), Trouble("lost", 5.0)),
    (After(5.0), Rollback("v1", 2.0)),
    (After(1.0), Freeze(1, 30.0, 1.0)),
    (After(5.0), Flip("v3")),
    (After(20.0), Trouble("throttled", 40.0)),
    (After(90.0), Recreate("v1", 1.0)),
    (After(5.0), Flip("v3")),
    (After(20.0), Trouble("failing", 40.0)),
)


def assert_well(result: Result) -> None:
    history = "\n".join(result.history)
    assert not result.loss, history
    assert result.finished, history


@pytest.mark.timeout(3600)
@given(plans())
def test_nothing_is_lost_and_the_work_is_done(plan: Plan) -> None:
    assert_well(simulate(plan))


def test_the_simulation_is_eventful() -> None:
    """Otherwise it would prove nothing."""
    outcomes: Counter[str] = Counter()
    trims = 0
    for seed in range(5):
        result = simulate(Plan(seed, bool(seed % 2), EVENTFUL))
        assert_well(result)
        outcomes += result.outcomes
        trims += result.trims
    assert trims >= 5
    assert set(outcomes) >= {"rewritten", "current", "refused", "throttled", "unavailable"}


def test_a_simulation_can_be_repeated() -> None:
    plan = Plan(Random(7).randrange(1000), False, EVENTFUL)
    one, other = simulate(plan), simulate(plan)
    assert one.history == other.history
