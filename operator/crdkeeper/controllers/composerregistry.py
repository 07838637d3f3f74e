"""The controllers of the composer, a process of its own. The operator does not load them: each MiB counts."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.controllers.composite.controller import begin_composites
from crdkeeper.controllers.compositeresourcedefinition.controller import begin_composite_definitions
from crdkeeper.controllers.composition.controller import begin_compositions
from crdkeeper.controllers.entry import CONVERSIONS, MIGRATIONS, Controller, Watch
from crdkeeper.controllers.state import ClusterState


def _without_schemas(found: Mapping[str, Any]) -> CompositeResourceDefinition:
    # A schema can have a megabyte, and the controller reads the whole object.
    kept = CompositeResourceDefinition.model_validate(found)
    for each in kept.spec.versions:
        each.schema_.open_api_schema = {}
    return kept


def _saw_composite_definition(
    state: ClusterState, name: str, seen: CompositeResourceDefinition | None
) -> None:
    state.saw(CompositeResourceDefinition, name, seen)


COMPOSER_CONTROLLERS: tuple[Controller, ...] = (
    Controller(
        CompositeResourceDefinition,
        "definitions",
        begin_composite_definitions,
        Watch(_without_schemas, _saw_composite_definition),
        {StorageMigration: MIGRATIONS, VersionConversion: CONVERSIONS},
    ),
    Controller(Composition, "compositions", begin_compositions),
    Controller(CompositionRevision, "composites", begin_composites),
)
"""Makes the CRDs of CompositeResourceDefinitions, and the CompositionRevisions of Compositions."""
