"""What our account may do: ask the API server before it refuses in the middle of the work."""

from collections.abc import Iterable
from dataclasses import dataclass

from crdkeeper.cluster.transport.client import Client


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource: in one namespace or in all, and on all objects or on the one called `name`."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        path = "/".join(part for part in (resource, self.name, self.subresource) if part)
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {path}{where}"


async def missing_rights(client: Client, rights: Iterable[Right]) -> list[Right]:
    """Those that a SelfSubjectAccessReview does not allow."""
    return [right for right in rights if not await _allowed(client, right)]


async def _allowed(client: Client, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "name": right.name,
        "namespace": right.namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await client.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"].get("allowed"))
