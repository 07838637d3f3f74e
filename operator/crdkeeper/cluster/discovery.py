"""Resources that are no CRD's: what discovery says of them."""

from crdkeeper.api.storagemigration import GroupResource, MigrationTarget
from crdkeeper.cluster.client import ApiError, Client


async def discover(client: Client, wanted: GroupResource) -> MigrationTarget | None:
    """The resource at its group's preferred version that serves it; None if there is none."""
    for version in await _versions(client, wanted.group):
        base = f"/apis/{wanted.group}/{version}" if wanted.group else f"/api/{version}"
        try:
            listed = await client.request("GET", base)
        except ApiError as error:
            if error.code == 404:
                continue
            raise
        for each in listed["resources"]:
            if each["name"] == wanted.resource:
                return MigrationTarget(
                    endpoint_version=version,
                    stored_versions=[],
                    storage_version_hash=each.get("storageVersionHash"),
                    kind=each["kind"],
                    namespaced=each["namespaced"],
                )
    return None


async def _versions(client: Client, group: str) -> list[str]:
    if not group:
        return ["v1"]
    try:
        found = await client.request("GET", f"/apis/{group}")
    except ApiError as error:
        if error.code == 404:
            return []
        raise
    preferred = found["preferredVersion"]["version"]
    others = [each["version"] for each in found["versions"] if each["version"] != preferred]
    return [preferred, *others]
