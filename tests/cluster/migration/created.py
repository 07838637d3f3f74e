"""The migrations that policies and labels lead to."""

from crdkeeper.api.storagemigration import StorageMigration
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.admin import MIGRATIONS


async def migrations_of(admin: Admin, kind: CustomKind) -> list[StorageMigration]:
    """The migrations of a CRD, deleted with the CRD at the end of the test."""
    found = [StorageMigration.model_validate(each) for each in (await admin.get(MIGRATIONS))["items"]]
    return [each for each in found if str(each.spec.resource) == kind.name]


async def the_migration_of(admin: Admin, kind: CustomKind) -> StorageMigration:
    """The one migration of a CRD, as soon as it exists."""

    async def look() -> list[StorageMigration]:
        return await migrations_of(admin, kind)

    (found,) = await eventually(look)
    return found
