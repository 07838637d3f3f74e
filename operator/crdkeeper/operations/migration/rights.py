"""The rights of a migration: on the objects and their CRD, and of a command on the object with its state."""

from crdkeeper.api.meta import GROUP
from crdkeeper.api.storagemigration import GroupResource, StorageMigration, StorageMigrationSpec
from crdkeeper.cluster.resources.access import Right
from crdkeeper.operations.rights import DEFINITIONS, rights_to_read

LIST_MIGRATIONS = Right("list", GROUP, StorageMigration.plural)


def rights_to_look(resource: GroupResource) -> list[Right]:
    """To read the CRD of a resource, or that there is none."""
    return rights_to_read([str(resource)]) if resource.group else []


def rights_to_rewrite(spec: StorageMigrationSpec, *, custom: bool) -> list[Right]:
    """To write all objects, and to trim the stored versions of a custom resource's CRD."""
    resource = spec.resource
    needed = [Right(verb, resource.group, resource.resource) for verb in ("get", "list", "patch")]
    if spec.trim and spec.mode == "Execute" and custom:
        needed.append(Right("patch", *DEFINITIONS, "status", str(resource)))
    return needed


def rights_to_record(name: str, *, new: bool) -> list[Right]:
    """To keep the state in the StorageMigration of that name, which `new` creates."""
    needed = [Right("create", GROUP, StorageMigration.plural)] if new else []
    return [
        *needed,
        Right("get", GROUP, StorageMigration.plural, name=name),
        Right("patch", GROUP, StorageMigration.plural, "status", name),
    ]
