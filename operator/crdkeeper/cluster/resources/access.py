"""What our account may do: ask the API server before it refuses in the middle of the work."""

from collections.abc import Iterable
from dataclasses import dataclass

from crdkeeper.cluster.transport.client import Client


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource in all namespaces, or on the single object called `name`."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        path = "/".join(part for part in (resource, self.name, self.subresource) if part)
        return f"{self.verb} {path}"


async def missing_rights(client: Client, rights: Iterable[Right]) -> list[str]:
    """Describe those that a SelfSubjectAccessReview does not allow."""
    return [str(right) for right in rights if not await _allowed(client, right)]


async def _allowed(client: Client, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "name": right.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await client.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"].get("allowed"))
