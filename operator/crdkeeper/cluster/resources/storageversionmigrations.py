"""StorageVersionMigrations: the work of other migrators.

Those of `storagemigration.k8s.io` belong to the control plane's own migrator, those of `migration.k8s.io` to
kube-storage-version-migrator.
"""

from typing import Any

from crdkeeper.cluster.transport.client import ApiError, Client, find
from crdkeeper.cluster.transport.pages import pages


async def list_storage_version_migrations(
    client: Client, group: str, page: int = 500
) -> list[dict[str, Any]] | None:
    """List all of a group at the version that the server prefers; empty if it does not know the kind.

    None if our account may not read them. Raises ApiError or Unreachable.
    """
    try:
        known = await find(client, f"/apis/{group}")
        if known is None:
            return []
        path = f"/apis/{known['preferredVersion']['groupVersion']}/storageversionmigrations?limit={page}"
        return [each async for body in pages(client, path) for each in body["items"]]
    except ApiError as error:
        if error.code == 403:
            return None
        if error.code == 404:
            return []
        raise
