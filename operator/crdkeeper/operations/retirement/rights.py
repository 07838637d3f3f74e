"""The rights of a retirement: all that its steps need, before the first one is taken."""

from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import GROUP
from crdkeeper.api.storagemigration import GroupResource, StorageMigrationSpec
from crdkeeper.api.versionconversion import VersionConversion
from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.resources.access import Right
from crdkeeper.core.migration.choice import default_name
from crdkeeper.operations.migration.rights import (
    LIST_MIGRATIONS,
    rights_to_look,
    rights_to_record,
    rights_to_rewrite,
)
from crdkeeper.operations.rights import DEFINITIONS


def rights_to_see(resource: GroupResource) -> list[Right]:
    """To say where the retirement stands. Anything else that cannot be read is part of what is said."""
    return [*rights_to_look(resource), LIST_MIGRATIONS]


def rights_to_retire(resource: GroupResource, *, migrates: bool, records: bool) -> list[Right]:
    """To take all steps, but for what only hides evidence.

    `migrates` is whether objects may still have to be migrated, and `records` whether StorageMigrations can
    keep the state of that.
    """
    name = str(resource)
    needed = [
        *rights_to_see(resource),
        Right("patch", *DEFINITIONS, name=name),
        # What names the version holds a step; what cannot be read must hold it, too.
        Right("get", GROUP, VersionConversion.plural, name=name),
        *(Right("list", GROUP, each.plural) for each in (Composition, CompositionRevision)),
    ]
    if not migrates:
        return [*needed, Right("list", resource.group, resource.resource)]
    needed += rights_to_rewrite(StorageMigrationSpec(resource=resource), custom=True)
    return [*needed, *(rights_to_record(default_name(resource), new=True) if records else ())]


def rights_to_execute(resource: GroupResource, *, migrates: bool) -> list[Right]:
    """Of the operator, which watches and records anyway: to change the CRD, and to migrate its objects.

    By `retire`, a verb of ours, it is allowed to change versions, and nothing else may be concluded from the
    right to patch.
    """
    needed = [Right(verb, *DEFINITIONS, name=str(resource)) for verb in ("patch", "retire")]
    spec = StorageMigrationSpec(resource=resource)
    return [*needed, *(rights_to_rewrite(spec, custom=True) if migrates else ())]


def rights_to_undo(resource: GroupResource) -> list[Right]:
    """To take all steps back, and to suspend the retirements of the operator."""
    definition = Right("patch", *DEFINITIONS, name=str(resource))
    retirements = [Right(verb, GROUP, VersionRetirement.plural) for verb in ("list", "patch")]
    return [*rights_to_look(resource), definition, *retirements]
