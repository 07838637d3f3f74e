"""Discovery: one resource that does not come from a CRD, and the names of all resources."""

from crdkeeper.api.storagemigration import GroupResource, MigrationTarget
from crdkeeper.cluster.transport.client import ApiError, Client, find
from crdkeeper.core.resourcenames import ServedResource

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def discover(client: Client, wanted: GroupResource) -> MigrationTarget | None:
    """The resource at the preferred version of its group that serves it; None if there is none."""
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
    found = await find(client, f"/apis/{group}")
    if found is None:
        return []
    preferred = found["preferredVersion"]["version"]
    others = [each["version"] for each in found["versions"] if each["version"] != preferred]
    return [preferred, *others]


async def list_resources(client: Client) -> list[ServedResource]:
    """All resources by each of their names; empty for a server older than aggregated discovery."""
    found: list[ServedResource] = []
    for path in ("/api", "/apis"):
        body = await client.request("GET", path, accept=_AGGREGATED)
        for group in body.get("items") or ():
            for version in group["versions"]:
                found.extend(
                    ServedResource(
                        group=group["metadata"].get("name", ""),
                        plural=each["resource"],
                        singular=each.get("singularResource", ""),
                        kind=each["responseKind"]["kind"],
                        short_names=tuple(each.get("shortNames") or ()),
                    )
                    for each in version.get("resources") or ()
                )
    return found
