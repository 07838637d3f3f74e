"""Each safeguard of the protocol is needed: without it, the simulation loses an object.

That also proves that the simulation can detect a loss. The schedules target each safeguard, with random
details; with all safeguards in place, the same schedules lose nothing.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any

import pytest

from tests.property.simulation.apiserver import Physics
from tests.property.simulation.plan import (
    REFUSALS,
    After,
    Event,
    Flip,
    Freeze,
    Moment,
    On,
    Plan,
    Refuse,
    Rollback,
)
from tests.property.simulation.safeguards import (
    without_generation,
    without_leases,
    without_preconditions,
    without_quarantine,
    without_second_renewal,
    without_settling,
    without_time_to_wake,
    without_verifying,
)
from tests.property.simulation.world import simulate

SEEDS = 400
"""Schedules to try at most; a loss occurs within a few dozen."""
MORE = 5
"""Number of further schedules that must be harmless with all safeguards."""

Schedule = tuple[tuple[Moment, Event], ...]
FLIP = (After(1.0), Flip("v2"))


def just_a_flip(_: Random) -> Schedule:
    return (FLIP,)


def frozen_across_the_flip(random: Random) -> Schedule:
    asleep = Freeze(1, random.uniform(30, 90), random.uniform(0, 15))
    return ((After(3.0), asleep), (After(random.uniform(0.1, 2)), Flip("v2")))


def frozen_before_it_saw_the_flip(random: Random) -> Schedule:
    asleep = Freeze(1, random.uniform(30, 90), random.uniform(0, 15))
    return ((After(3.0), Flip("v2")), (After(random.uniform(0, 1)), asleep))


def rolled_back_in_mid_run(random: Random) -> Schedule:
    moment = On(random.choice(("list", "rewrite", "save")), random.randint(1, 6))
    return (FLIP, (After(20.0), Flip("v2")), (moment, Rollback("v1", random.uniform(1, 5))))


def rolled_back_at_the_trim(random: Random) -> Schedule:
    return (FLIP, (On("trim", 1), Rollback("v1", random.uniform(0.5, 3))))


def refused(random: Random) -> Schedule:
    objects = frozenset(random.sample(range(10), 4))
    return (FLIP, (After(1.0), Refuse(random.choice(REFUSALS), objects, 120.0)))


LATE = Physics(lag=38.0, writers=False)
"""A watch slower than settleSeconds allows. As nobody writes, a second pass can repair it."""
SLOWLY = {"limits": {"max_objects_per_second": 1}}
OFTEN = Physics(lease_period=4.0)
"""Servers that are seen often, so that one is soon caught between its renewal and seeing the change."""


def plan(schedule: Callable[[Random], Schedule], seed: int) -> Plan:
    return Plan(seed, False, schedule(Random(seed)))


def assert_needed(
    disabled: Callable[[], AbstractContextManager[None]],
    schedule: Callable[[Random], Schedule],
    physics: Physics | None = None,
    **template: Any,
) -> None:
    """Something is lost under some schedule without it; with it, nothing under that one and some more."""
    for seed in range(SEEDS):
        with disabled():
            lost = simulate(plan(schedule, seed), physics, **template).loss
        if lost:
            break
    else:
        pytest.fail(f"nothing was lost under {SEEDS} schedules")
    for each in range(seed, seed + MORE):
        result = simulate(plan(schedule, each), physics, **template)
        assert not result.loss, "\n".join(result.history)
        assert result.finished, "\n".join(result.history)


def test_without_settling_the_model_finds_the_loss() -> None:
    assert_needed(without_settling, just_a_flip)


def test_without_leases_the_model_finds_the_loss() -> None:
    assert_needed(without_leases, frozen_across_the_flip)


def test_without_a_second_renewal_the_model_finds_the_loss() -> None:
    assert_needed(without_second_renewal, frozen_before_it_saw_the_flip, OFTEN)


def test_without_time_to_wake_the_model_finds_the_loss() -> None:
    assert_needed(without_time_to_wake, frozen_across_the_flip)


def test_without_the_generation_the_model_finds_the_loss() -> None:
    assert_needed(without_generation, rolled_back_in_mid_run)


def test_without_quarantine_the_model_finds_the_loss() -> None:
    assert_needed(without_quarantine, refused)


def test_without_the_verify_pass_the_model_finds_the_loss() -> None:
    assert_needed(without_verifying, just_a_flip, LATE, **SLOWLY)


def test_without_preconditions_the_model_finds_the_loss() -> None:
    assert_needed(without_preconditions, rolled_back_at_the_trim)
