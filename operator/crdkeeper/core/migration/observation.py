"""What one look at the cluster shows of a resource to migrate: the input of each decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from crdkeeper.api.storagemigration import MigrationTarget
from crdkeeper.apiserver.definitions.facts import DefinitionFacts


@dataclass(frozen=True, slots=True)
class ApiServerLease:
    """An API server's identity Lease in kube-system, which it renews about every ten seconds."""

    name: str
    resource_version: str
    expires_at: datetime
    """When the control plane itself considers the server dead."""


IN_TREE = "storagemigration.k8s.io"
"""The group of kube-controller-manager's own migrator, which marks the CRD while it works."""
OUT_OF_TREE = "migration.k8s.io"
"""The group of kube-storage-version-migrator, of which nothing else shows."""


@dataclass(frozen=True, slots=True)
class Others:
    """The StorageVersionMigrations of the resource that are running or wait for their turn."""

    names: Sequence[str] = ()
    """Each with its group in parentheses."""
    unseen: Sequence[str] = ()
    """The groups that are installed but may not be listed."""


@dataclass(frozen=True, slots=True)
class Observation:
    """`target` is None if the resource does not exist or is not served."""

    target: MigrationTarget | None
    definition: DefinitionFacts | None = None
    missing_rights: Sequence[str] = ()
    """The permissions that our account lacks, each as `verb resource`."""
    leases: Sequence[ApiServerLease] | None = None
    """None if they may not be read."""
    others: Others = Others()


def definition_target(definition: DefinitionFacts) -> MigrationTarget | None:
    """Pin a CRD; None while no version of it is served."""
    if not definition.established or definition.endpoint_version is None:
        return None
    return MigrationTarget(
        uid=definition.uid,
        generation=definition.generation,
        storage_version=definition.storage_version,
        endpoint_version=definition.endpoint_version,
        stored_versions=list(definition.stored_versions),
        kind=definition.kind,
        namespaced=definition.namespaced,
    )
