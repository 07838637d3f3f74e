"""Whatever happens, nothing is lost; and once nothing happens any more, the work is done.

The code under test is the real one, from `MigrationRun` to the last decision, on the simulated cluster of
`tests/property/simulation`; `test_safeguards` shows what that finds when a part of the protocol is missing.
"""

import pytest
from hypothesis import given

from tests.property.simulation.plan import REFUSALS as REFUSALS
from tests.property.simulation.plan import Plan, plans
from tests.property.simulation.world import Result, simulate


def assert_well(result: Result) -> None:
    history = "\n".join(result.history)
    assert not result.loss, history
    assert result.finished, history


@pytest.mark.timeout(3600)
@given(plans())
def test_nothing_is_lost_and_the_work_is_done(plan: Plan) -> None:
    assert_well(simulate(plan))
