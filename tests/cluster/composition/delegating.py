"""ServiceAccounts by whose rights composites get their objects: an account, its rights, and who may be it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from tests.cluster.composition.authoring import Author
from tests.cluster.composition.composing import rights_on
from tests.cluster.harness import eventually

Json = Any
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
WRITE: Final = ("get", "list", "create", "patch", "delete")
"""What composing needs of an account."""
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Delegate:
    """A ServiceAccount in a namespace."""

    def __init__(self, author: Author, name: str, namespace: str = "default") -> None:
        self.author = author
        self.name = name
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        self._roles = f"{RBAC}/namespaces/{namespace}"

    async def create(self) -> Json:
        """Create it."""
        metadata = {"name": self.name}
        return await self.author.put(
            self.path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        )

    async def delete(self) -> None:
        """Delete it, but not its rights."""
        await self.author.delete(self.path)
        await self.author.gone(self.path)

    async def may(self, **resources: tuple[str, ...]) -> None:
        """In its namespace, give it exactly these verbs on resources of the core group; waits for that."""
        api = "rbac.authorization.k8s.io"
        rules = [
            {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}
            for resource, verbs in resources.items()
        ]
        of = {"apiVersion": f"{api}/v1", "metadata": {"name": self.name}}
        await self.author.put(f"{self._roles}/roles/{self.name}", {**of, "kind": "Role", "rules": rules})
        binding = {
            **of,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": api, "kind": "Role", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        }
        await self.author.put(f"{self._roles}/rolebindings/{self.name}", binding)
        for resource in ("configmaps", "secrets"):
            for verb in WRITE:
                await self._until(verb, resource, so=verb in resources.get(resource, ()))

    async def _until(self, verb: str, resource: str, *, so: bool) -> None:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{self.namespace}:{self.name}",
                "resourceAttributes": {"namespace": self.namespace, "verb": verb, "resource": resource},
            },
        }

        async def is_so() -> bool:
            answer = await self.author.client.request("POST", _REVIEWS, review)
            return bool(answer["status"]["allowed"]) == so

        await eventually(is_so)

    async def clean_up(self) -> None:
        """Delete it with its rights."""
        for path in (
            f"{self._roles}/rolebindings/{self.name}",
            f"{self._roles}/roles/{self.name}",
            self.path,
        ):
            await self.author.delete(path)


@asynccontextmanager
async def tokens_of(author: Author, *names: str) -> AsyncIterator[None]:
    """The composer may be the ServiceAccounts of these names, until the end of the block."""
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": list(names),
        "verbs": ["create"],
    }
    async with rights_on(author, f"tokens-{names[0]}", rule):
        yield
