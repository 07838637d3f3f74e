"""What is said of a rehearsal that is old, or that failed."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from crdkeeper.core.composer.update import FailedRehearsal, Rehearsed
from tests.unit.core.composer.test_plan import crd
from tests.unit.core.composer.test_updates import POSTGRES, composite, known, refusal

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_an_old_result_says_when_it_was_found() -> None:
    found = known(POSTGRES, crd(), composite("a"))
    assert found.facts.rehearsal.report is not None
    facts = replace(found.facts, rehearsal=replace(found.facts.rehearsal, at=AT))
    reason, message = refusal(replace(found, facts=facts))
    assert reason == "BreakingChanges"
    assert message.endswith(" This was tried at 03:04 UTC, and is tried again within minutes.")


@pytest.mark.parametrize("waits", [True, False])
def test_a_rehearsal_that_waits_for_others_says_so(waits: bool) -> None:
    found = known(POSTGRES, crd(), composite("a"))
    facts = replace(found.facts, rehearsal=Rehearsed(waits=waits))
    reason, message = refusal(replace(found, facts=facts))
    assert reason == "Rehearsing"
    assert ("the rehearsals of other definitions leave room" in message) == waits


@pytest.mark.parametrize(("passing", "said"), [(True, "Rehearsing"), (False, "NotPredicted")])
def test_a_rehearsal_that_failed_says_why_and_when_the_next_one_begins(passing: bool, said: str) -> None:
    failure = FailedRehearsal("etcdserver: leader changed", AT, AT.replace(minute=6), passing)
    found = known(POSTGRES, crd(), composite("a"))
    for report in (None, found.facts.rehearsal.report):
        facts = replace(found.facts, rehearsal=Rehearsed(report, failure=failure))
        reason, message = refusal(replace(found, facts=facts))
        assert reason == ("BreakingChanges" if report is not None else said)
        assert (
            "The attempt at 03:04:05 UTC failed: etcdserver: leader changed. The next one begins after "
            "03:06:05 UTC."
        ) in message
