"""What tests of the composer share: an admin who applies definitions, and waits for what becomes of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, ApiError, Client
from tests.cluster.composition.authoring import ACCOUNT
from tests.cluster.harness import NAMESPACE, Operator, eventually
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster

Json = Any
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATH: Final = "/apis/crdkeeper.dev/v1alpha1/compositeresourcedefinitions"
NAME: Final = "databases.platform.example.com"
OBJECTS: Final = "/apis/platform.example.com/v1/namespaces/default/databases"
ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
LABEL: Final = "rbac.crdkeeper.dev/aggregate-to-composer"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def get(client: Client, path: str) -> Json:
    """The object; None if there is none."""
    try:
        return await client.request("GET", path)
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def conditions(found: Json) -> dict[str, Json]:
    """The conditions of an object by type."""
    return {each["type"]: each for each in found["status"].get("conditions", ())}


async def until(client: Client, holds: Callable[[Json], bool], name: str = NAME) -> Json:
    """The definition once its status is about its generation and `holds` is true of it."""
    last: list[Json] = []

    async def look() -> Json:
        found = await get(client, f"{PATH}/{name}")
        last[:] = [found]
        if found is None or found["status"].get("observedGeneration") != found["metadata"]["generation"]:
            return None
        return found if holds(found) else None

    return await eventually(look, otherwise=lambda: f"not so: {last}")


async def has(client: Client, type_: str, status: str, reason: str, name: str = NAME) -> Json:
    """The definition once a condition has this status and reason."""

    def holds(found: Json) -> bool:
        condition = conditions(found).get(type_)
        return condition is not None and (condition["status"], condition["reason"]) == (status, reason)

    return await until(client, holds, name)


async def ready(client: Client, status: str, reason: str, name: str = NAME) -> Json:
    """The definition once its Ready says so."""
    return await has(client, "Ready", status, reason, name)


async def apply(client: Client, value: Json) -> None:
    """As a user does: server-side, so that the composer's status is in nobody's way."""
    path = f"{PATH}/{value['metadata']['name']}?fieldManager=user&force=true"
    await client.request("PATCH", path, value, content_type=APPLY_PATCH)


async def gone(client: Client, path: str) -> None:
    """Wait until there is no such object."""

    async def look() -> bool:
        return await get(client, path) is None

    await eventually(look)


async def delete(client: Client, path: str) -> None:
    """Delete an object, and wait until it is gone."""
    await client.request("DELETE", path)
    await gone(client, path)


async def clean_up(client: Client, name: str = NAME) -> None:
    """Remove a definition and its CRD, with all composites, if there are any."""
    free: Json = {"metadata": {"finalizers": None}}

    async def removed() -> bool:
        for path in (f"{PATH}/{name}", f"{CRDS}/{name}"):
            if await get(client, path) is None:
                continue
            with suppress(ApiError):
                await client.request("DELETE", path)
                if path.startswith(PATH):
                    await client.request("PATCH", path, free, content_type=MERGE_PATCH)
            return False
        return True

    await eventually(removed)


def database(name: str, engine: str = "MySQL") -> Json:
    """A composite."""
    return {
        "apiVersion": "platform.example.com/v1",
        "kind": "Database",
        "metadata": {"name": name},
        "spec": {"engine": engine},
    }


async def grant(client: Client, name: str, verbs: list[str], resource: str = "databases") -> None:
    """Let the composer do this with composites, by a ClusterRole of that name."""
    role = {
        "metadata": {"name": name, "labels": {LABEL: "true"}},
        "rules": [{"apiGroups": ["*"], "resources": [resource], "verbs": verbs}],
    }
    await client.request("POST", ROLES, role)

    async def aggregated() -> bool:
        rules = (await get(client, f"{ROLES}/crdkeeper-composites")).get("rules") or ()
        return any(set(each["verbs"]) >= set(verbs) and resource in each["resources"] for each in rules)

    await eventually(aggregated)


async def may_not(client: Client, *verbs: str) -> None:
    """Returns once the API server knows that the composer has none of these rights on composites."""
    group, resource = NAME.partition(".")[2], NAME.partition(".")[0]

    async def denied() -> bool:
        for verb in verbs:
            of = {"verb": verb, "group": group, "resource": resource}
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}", "resourceAttributes": of},
            }
            if (await client.request("POST", _REVIEWS, review))["status"]["allowed"]:
                return False
        return True

    await eventually(denied)


@contextmanager
def operator_beside(cluster: Cluster, directory: Path, **flags: str) -> Iterator[Operator]:
    """The operator with a conversion webhook, beside the composer, until the end of the block."""
    pod = WebhookPod(cluster, directory)
    operator = Operator(cluster, flags={"webhook-url": pod.url, **flags})
    operator.start()
    pod.start()
    try:
        yield operator
    finally:
        operator.close()
        pod.close()
