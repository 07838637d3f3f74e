"""What is counted of every kind that is kept whole."""

from typing import Any

from prometheus_client import CollectorRegistry

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.controllers.readiness import Readiness
from crdkeeper.controllers.state import ClusterState
from tests.unit.builders import policy


def ready(status: str) -> DefinitionPolicy:
    stored: dict[str, Any] = policy("p").to_object()
    condition = {"type": "Ready", "status": status, "reason": "Any", "message": "", "observedGeneration": 1}
    stored["status"] = {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    return DefinitionPolicy.model_validate(stored)


def test_objects_are_counted_by_kind_and_ready() -> None:
    state, registry = ClusterState(), CollectorRegistry()
    registry.register(Readiness(state))
    for name, seen in {"a": ready("True"), "b": ready("False"), "c": ready("True"), "d": policy("d")}.items():
        state.saw(DefinitionPolicy, name, seen)
    state.saw(StorageMigration, "gone", None)
    state.saw(DefinitionPolicy, "c", None)

    def count(kind: str, status: str) -> float | None:
        return registry.get_sample_value("crdkeeper_objects", {"kind": kind, "status": status})

    assert [count("DefinitionPolicy", each) for each in ("True", "False", "Unknown")] == [1, 1, 1]
    assert count("StorageMigration", "True") == 0
    assert count("VersionConversion", "True") is None
