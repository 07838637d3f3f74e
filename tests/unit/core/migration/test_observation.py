"""What is pinned of a CRD."""

import pytest

from crdkeeper.api.storagemigration import MigrationTarget
from crdkeeper.core.migration.observation import definition_target
from tests.unit.builders import definition, target


def test_a_crd_is_pinned() -> None:
    assert definition_target(definition()) == MigrationTarget(
        uid="u1",
        generation=2,
        storage_version="v2",
        endpoint_version="v2",
        stored_versions=["v1", "v2"],
        kind="Widget",
        namespaced=True,
    )


def test_an_unserved_storage_version_is_reached_through_another() -> None:
    pinned = definition_target(definition(served=("v1",)))
    assert pinned is not None
    assert (pinned.storage_version, pinned.endpoint_version) == ("v2", "v1")


def test_nothing_is_pinned_while_nothing_is_served() -> None:
    assert definition_target(definition(served=())) is None
    assert definition_target(definition(status={"conditions": []})) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"stored_versions": ["v2"]}, True),
        ({"endpoint_version": "v1"}, True),
        ({"uid": "u2"}, False),
        ({"generation": 3}, False),
        ({"storage_version": "v1"}, False),
        ({"storage_version_hash": "x"}, False),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_for_what_evidence_holds(changes: dict[str, object], same: bool) -> None:
    assert target().same_as(target(**changes)) is same
