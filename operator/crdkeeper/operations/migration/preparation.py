"""Creates the pass over all objects that a migration's spec and status require."""

from collections.abc import Collection, Mapping

from crdkeeper.api.storagemigration import MigrationTarget, StorageMigration
from crdkeeper.cluster.resources.objects import Endpoint
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.migration.protocol import SweepType
from crdkeeper.operations.migration.sweep import Observer, Sweep


def endpoint_of(migration: StorageMigration, target: MigrationTarget) -> Endpoint:
    """Where to list and patch the objects."""
    resource = migration.spec.resource
    return Endpoint(resource.group, target.endpoint_version, resource.resource)


def prepare_sweep(
    client: Client,
    migration: StorageMigration,
    target: MigrationTarget,
    type_: SweepType,
    observer: Observer,
    *,
    served: Collection[str],
    part: tuple[int, int] | None = None,
) -> Sweep:
    """A pass of that type over the objects of the pinned target, whose CRD serves these versions.

    With `part`, an index and a number of parts, only over that part.
    """
    spec, settled, group = (
        migration.spec,
        migration.status.settled_resource_version,
        migration.spec.resource.group,
    )
    full = type_ == "Plan" or (type_ == "Verify" and spec.verify == "Full")
    retarget = spec.managed_fields == "Retarget" and target.storage_version
    return Sweep(
        client,
        endpoint_of(migration, target),
        type_,
        spec.limits,
        separator=int(settled) if settled and settled.isdigit() and not full else None,
        retarget_to=(group, retarget) if retarget else None,
        observer=observer,
        going=_going(group, target, served) if type_ == "Verify" and spec.managed_fields == "Keep" else {},
        part=part,
    )


def _going(group: str, target: MigrationTarget, served: Collection[str]) -> Mapping[str, bool]:
    """The versions (`group/version`) that the migration will remove from storage; whether each is served."""
    return {
        f"{group}/{each}": each in served for each in target.stored_versions if each != target.storage_version
    }
