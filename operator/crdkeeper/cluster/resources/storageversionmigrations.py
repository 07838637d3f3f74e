"""StorageVersionMigrations (storagemigration.k8s.io): the work of the control plane's own migrator."""

from typing import Any
from urllib.parse import quote

from crdkeeper.cluster.transport.client import ApiError, Client, find

_GROUP = "/apis/storagemigration.k8s.io"


async def list_storage_version_migrations(client: Client, page: int = 500) -> list[dict[str, Any]] | None:
    """List all at the version that the server prefers; empty if it does not know the kind.

    None if our account may not read them. Raises ApiError or Unreachable.
    """
    try:
        group = await find(client, _GROUP)
        if group is None:
            return []
        path = f"/apis/{group['preferredVersion']['groupVersion']}/storageversionmigrations?limit={page}"
        return await _pages(client, path)
    except ApiError as error:
        if error.code == 403:
            return None
        if error.code == 404:
            return []
        raise


async def _pages(client: Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        body = await client.request("GET", path + token)
        found += body["items"]
        if not body["metadata"].get("continue"):
            return found
        token = f"&continue={quote(body['metadata']['continue'], safe='')}"
