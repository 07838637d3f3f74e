"""The controllers: one entry for each kind, from which its watch and its work follow."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import Kind
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.controllers.context import Context
from crdkeeper.controllers.definitionpolicy.controller import begin_policies
from crdkeeper.controllers.definitionreport.controller import begin_reports
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.storagemigration.controller import begin_migrations
from crdkeeper.controllers.versionconversion.beginning import run_conversions


@dataclass(frozen=True, slots=True)
class Watch:
    """What becomes of each object of a kind that Kopf shows."""

    keep: Callable[[Mapping[str, Any]], Any]
    """Reduces it to what the state keeps. Raises ValueError or KeyError if it cannot be read."""
    saw: Callable[[ClusterState, str, Any], None]
    """Tells the state, with the name; None once the object is gone."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller of one kind."""

    kind: type[Kind]
    name: str
    """Of its task, in logs and in /readyz."""
    begin: Callable[[Context], Coroutine[Any, Any, None]]
    """Starts to listen, and returns its work, which goes on until it is cancelled.

    What few clusters use is imported only when it is needed: each MiB counts at the start.
    """
    watch: Watch | None = None
    """None where the controller watches the kind itself."""


def _generation(found: Mapping[str, Any]) -> int:
    # One whose rules cannot be understood must be told so: the controller reads it whole.
    return int(found["metadata"]["generation"])


CONTROLLERS: tuple[Controller, ...] = (
    Controller(
        StorageMigration,
        "migrations",
        begin_migrations,
        Watch(StorageMigration.model_validate, ClusterState.saw_migration),
    ),
    Controller(
        DefinitionPolicy,
        "policies",
        begin_policies,
        Watch(DefinitionPolicy.model_validate, ClusterState.saw_policy),
    ),
    Controller(DefinitionReport, "reports", begin_reports),
    Controller(
        VersionConversion, "conversions", run_conversions, Watch(_generation, ClusterState.saw_conversion)
    ),
)
