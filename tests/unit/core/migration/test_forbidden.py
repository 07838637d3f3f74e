"""What an account may not read is not considered gone."""

from datetime import UTC, datetime
from typing import Any

import pytest

from crdkeeper.api.meta import CLI, OPERATOR
from crdkeeper.api.storagemigration import MigrationTarget, StorageMigrationSpec, StorageMigrationStatus
from crdkeeper.core.migration.observation import Observation
from crdkeeper.core.migration.protocol import Action, Finish, Hold, decide

PINNED = MigrationTarget(
    uid="u1",
    generation=1,
    endpoint_version="v2",
    stored_versions=["v1", "v2"],
    kind="Widget",
    namespaced=True,
)
DENIED = Observation(None, missing_rights=["get customresourcedefinitions.apiextensions.k8s.io"])


def decided(target: MigrationTarget | None, seen: Observation, managed_by: str = OPERATOR) -> Action:
    resource: dict[str, Any] = {"group": "example.com", "resource": "widgets"}
    spec = StorageMigrationSpec.model_validate({"resource": resource, "managedBy": managed_by})
    status = StorageMigrationStatus.model_validate({"progress": {}, "quarantine": {}})
    status.target = target
    return decide(
        spec,
        status,
        seen,
        renewed_at=None,
        changed_at=None,
        all_named=True,
        other="",
        now=datetime(2026, 1, 2, tzinfo=UTC),
    )


@pytest.mark.parametrize("target", [None, PINNED], ids=["at the start", "in mid-run"])
def test_a_crd_that_may_not_be_read_is_waited_for(target: MigrationTarget | None) -> None:
    action = decided(target, DENIED)
    assert isinstance(action, Hold)
    assert (action.condition, action.reason, action.failing) == ("Permitted", "Forbidden", True)
    assert "get customresourcedefinitions" in action.message


def test_a_crd_that_is_gone_ends_the_run() -> None:
    action = decided(PINNED, Observation(None))
    assert isinstance(action, Finish)
    assert action.reason == "DefinitionDeleted"


@pytest.mark.parametrize(
    ("managed_by", "advice"),
    [(OPERATOR, "aggregate-to-rewriter"), (CLI, "the account that runs the migration")],
)
def test_who_is_to_get_the_right_is_told(managed_by: str, advice: str) -> None:
    action = decided(None, DENIED, managed_by)
    assert isinstance(action, Hold)
    assert advice in action.message
