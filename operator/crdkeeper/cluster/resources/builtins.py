"""Built-in resources: those that the API server itself stores, and how, from discovery.

Its own APIServices carry a label; those of CRDs have another value of it, and those of aggregated API
servers, whose storage is not this one, have none.
"""

from collections.abc import Sequence
from urllib.parse import quote

from crdkeeper.cluster.transport.client import Client, find
from crdkeeper.cluster.transport.pages import pages
from crdkeeper.core.builtins.view import StoredAs, version_of

_OWN = quote("kube-aggregator.kubernetes.io/automanaged=onstart", safe="")
_API_SERVICES = f"/apis/apiregistration.k8s.io/v1/apiservices?labelSelector={_OWN}&limit=500"
_NEEDED = {"get", "list", "patch"}


async def list_builtin_versions(client: Client) -> list[tuple[str, str]]:
    """The group versions that API servers serve themselves, the preferred ones of a group first.

    Raises ApiError or Unreachable.
    """
    found = [each["spec"] async for body in pages(client, _API_SERVICES) for each in body["items"]]
    own = [each for each in found if not each.get("service")]
    own.sort(key=lambda each: (each.get("group", ""), -each.get("versionPriority", 0)))
    return [(each.get("group", ""), each["version"]) for each in own]


async def discover_stored(client: Client, versions: Sequence[tuple[str, str]]) -> list[StoredAs]:
    """How the API server stores the resources of these group versions, if they can be rewritten.

    Raises ApiError or Unreachable.
    """
    found: dict[tuple[str, str], StoredAs] = {}
    for group, version in versions:
        listed = await find(client, f"/apis/{group}/{version}" if group else f"/api/{version}")
        for each in (listed or {}).get("resources") or ():
            name, hash = each["name"], each.get("storageVersionHash")
            if not hash or "/" in name or not _NEEDED.issubset(each["verbs"]):
                continue
            served = [other for of, other in versions if of == group]
            stored = StoredAs(group, name, hash, version_of(hash, group, each["kind"], served))
            found.setdefault((group, name), stored)
    return list(found.values())
