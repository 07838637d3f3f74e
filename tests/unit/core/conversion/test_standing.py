"""Ready summarizes the steps; a step that was not taken waits for the one that failed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.api.meta import READY, ObjectMeta, find_condition
from crdkeeper.api.versionconversion import VersionConversion, VersionConversionStatus
from crdkeeper.core.conversion.standing import STEPS, StatusDraft, StepResult
from tests.kstatus import status_of

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DONE = StepResult("True", "Done", "Done.")


def standing(generation: int = 1, served: int = 0) -> StatusDraft:
    status = VersionConversionStatus.model_validate({"verification": {}, "servedGeneration": served})
    metadata = ObjectMeta(name="things.stable.example.com", generation=generation)
    parts: dict[str, Any] = {"metadata": metadata, "status": status}
    return StatusDraft(VersionConversion.model_construct(**parts), NOW)


def reported(found: StatusDraft, condition: str) -> tuple[str, str, str]:
    each = find_condition(found.owner.status.conditions, condition)
    assert each is not None
    return each.status, each.reason, each.message


def test_all_done() -> None:
    found = standing()
    assert all(found.put(each, DONE) for each in STEPS)
    found.conclude()
    assert reported(found, READY)[:2] == ("True", "Converting")
    assert found.owner.status.observed_generation == 1


def test_the_first_failure_is_the_reason_and_the_rest_waits() -> None:
    found = standing()
    found.put("Compiled", DONE)
    found.put("Permitted", DONE)
    assert not found.put("Verified", StepResult("False", "ObjectsFail", "One fails."))
    found.conclude()
    assert reported(found, READY) == ("False", "ObjectsFail", "One fails.")
    assert reported(found, "Serving") == ("Unknown", "Waiting", "Waits for Verified.")


def test_what_serves_goes_on_and_is_said_to() -> None:
    found = standing()
    for each in STEPS:
        found.put(each, DONE)
    found.owner.metadata.generation, found.owner.status.served_generation = 2, 1
    found.put("Compiled", StepResult("False", "InvalidRules", "No."))
    found.conclude()
    assert reported(found, READY) == (
        "False",
        "InvalidRules",
        "No. The rules of generation 1 are still served.",
    )
    assert reported(found, "Serving")[0] == "True"


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ([], "InProgress"),
        ([DONE] * 6, "Current"),
        ([StepResult("False", "InvalidRules", "No.")], "Failed"),
        ([DONE, StepResult("False", "NotPermitted", "Grant it.")], "Failed"),
        ([DONE, DONE, StepResult("Unknown", "Verifying", "Wait.")], "InProgress"),
        ([DONE, DONE, DONE, StepResult("False", "NoCertificate", "It is made.")], "InProgress"),
        ([DONE, DONE, DONE, DONE, StepResult("False", "OtherWebhook", "Decide.")], "Failed"),
    ],
)
def test_kstatus_judges_it_as_its_users_do(steps: list[StepResult], status: str) -> None:
    found = standing()
    for condition, step in zip(STEPS, steps, strict=False):
        found.put(condition, step)
    found.conclude()
    shown = {"metadata": {"generation": 1}, "status": found.owner.status.to_object()}
    assert status_of(shown) == status


def test_only_what_changed_is_news() -> None:
    found = standing()
    found.put("Compiled", DONE)
    again = StatusDraft(found.owner, NOW)
    again.put("Compiled", StepResult("True", "Done", "Other words."))
    assert again.changed == []
