"""The change that is due, for whoever keeps the CRD's manifest: in words, as a patch, and as a manifest."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.versionretirement import (
    DEPRECATED,
    MIGRATED,
    NOT_SERVED,
    DueChange,
    Step,
    VersionRetirement,
)
from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.core.retirement.changes import changed
from crdkeeper.core.retirement.facts import State
from crdkeeper.core.retirement.migrations import free_name, new_migration
from crdkeeper.core.retirement.steps import described

_FIELDS: Mapping[str, str] = {DEPRECATED: "deprecated: true", NOT_SERVED: "served: false"}


def due_change(
    owner: VersionRetirement,
    crd: Mapping[str, Any],
    step: Step,
    state: State,
    migrations: Iterable[StorageMigration],
) -> DueChange:
    """The change by which `step` is taken; `state` is where that step stands.

    `migrations` are those of the CRD's objects, whose names are taken.
    """
    definition, version = definition_facts(crd), owner.spec.version
    manifest = ""
    if step == MIGRATED:
        asked = new_migration(owner, free_name(owner, migrations), owned=False)
        # JSON is YAML, and has one way to quote.
        manifest = json.dumps(asked, indent=2) + "\n"
    elif step in _FIELDS:
        manifest = f"spec:\n  versions:\n  - name: {version}\n    {_FIELDS[step]}\n"
    operations = changed(crd, version, step)
    return DueChange(
        step=step,
        message=described(owner, definition, step, state),
        patch=json.dumps(operations, separators=(", ", ": ")) if operations else "",
        manifest=manifest,
    )
