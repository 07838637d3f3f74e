"""Reports whose status somebody has forged."""

from typing import Any

import pytest

from crdkeeper.api.definitionreport import CountInProgress, DefinitionReportStatus
from crdkeeper.core.diagnosis.report import wanted_report
from tests.unit.builders import NOW
from tests.unit.core.diagnosis.builders import facts

COUNTING = CountInProgress(about="x", continue_token="t", started_at=NOW, objects=40, versions=[], uses=[])


@pytest.mark.parametrize(
    "forged",
    [
        {"objects": 2**63 - 1},
        {"objects": -1},
        {"versions": [{"version": "v1", "objects": 41}]},
        {"uses": [{"manager": "m", "operation": "Update", "version": "v1", "objects": 2**63 - 1}]},
        {"continueToken": "t" * 4097},
        {"startedAt": "yesterday"},
        {"startedAt": None},
    ],
)
def test_a_forged_count_is_none_and_the_rest_of_the_report_stays(forged: dict[str, Any]) -> None:
    stored = wanted_report(facts(), {}).status.to_object()
    stored["counting"] = {**COUNTING.to_object(), **forged}
    status = DefinitionReportStatus.model_validate(stored)
    assert status.counting is None
    assert status.conditions
    stored["counting"] = COUNTING.to_object()
    assert DefinitionReportStatus.model_validate(stored).counting == COUNTING
