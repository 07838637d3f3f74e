"""Compositions and CompositionRevisions, as the composer reads and writes them."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

from crdkeeper.api.composition import Composition
from crdkeeper.api.compositionrevision import CompositionRevision
from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.cluster.resources.composites import FIELD_MANAGER
from crdkeeper.cluster.transport.boundedpages import each_object
from crdkeeper.cluster.transport.client import ApiError, Client, find
from crdkeeper.cluster.transport.deadlines import WRITE_SECONDS, within
from crdkeeper.core.composer.composedversions import RevisionUse
from crdkeeper.core.conversion.nesting import dumps
from crdkeeper.core.retirement.holds import NamedKinds, named_kinds
from crdkeeper.core.revisions.content import NewRevision, SeenRevision, seen_revision
from crdkeeper.core.revisions.retention import revisions_in_use, running_by

COMPOSITIONS: Final = f"/apis/{GROUP}/{VERSION}/{Composition.plural}"
REVISIONS: Final = f"/apis/{GROUP}/{VERSION}/{CompositionRevision.plural}"


async def get_composition(client: Client, name: str) -> dict[str, Any] | None:
    """The Composition as it is stored; None if there is none."""
    return await find(client, f"{COMPOSITIONS}/{quote(name, safe='')}")


async def list_composition(client: Client, name: str) -> dict[str, Any] | None:
    """The same, for who may only list Compositions."""
    path = f"{COMPOSITIONS}?fieldSelector=metadata.name%3D{quote(name, safe='')}"
    items: list[dict[str, Any]] = (await client.request("GET", path))["items"]
    return items[0] if items else None


async def get_composition_revision(client: Client, name: str) -> dict[str, Any] | None:
    """The CompositionRevision as it is stored; None if there is none."""
    return await find(client, f"{REVISIONS}/{quote(name, safe='')}")


async def create_composition_revision(
    client: Client, new: NewRevision, *, dry_run: bool = False
) -> dict[str, Any]:
    """Create it, and return it, or only what it would be.

    Raises ApiError, 409 if the name is taken; and Unreachable.
    """
    # Its templates can be nested as deep as an API server accepts.
    content = dumps(new.to_object())
    path = f"{REVISIONS}?{'dryRun=All&' if dry_run else ''}fieldManager={FIELD_MANAGER}"
    answer = await within(WRITE_SECONDS, client.send("POST", path, content=content))
    if answer.code >= 400:
        raise ApiError(answer.code, answer.json())
    return answer.json()


async def delete_composition_revision(client: Client, revision: SeenRevision) -> None:
    """Delete exactly what was seen. Raises ApiError, 409 if it has changed since; and Unreachable."""
    body = {"preconditions": {"uid": revision.uid, "resourceVersion": revision.resource_version}}
    path = f"{REVISIONS}/{quote(revision.name, safe='')}"
    try:
        await within(WRITE_SECONDS, client.request("DELETE", path, body, once=True))
    except ApiError as error:
        if error.code != 404:
            raise


async def is_composed(client: Client, group: str, kind: str) -> bool:
    """Whether composites of a kind have a CompositionRevision. Raises ApiError and Unreachable."""
    async for each in each_object(client, REVISIONS, 20, 100):
        of = each["spec"]["compositeTypeRef"]
        if of["kind"] == kind and of["apiVersion"].partition("/")[0] == group:
            return True
    return False


async def list_revisions(client: Client) -> list[SeenRevision]:
    """All revisions of the cluster, without their resources. Raises ApiError and Unreachable."""
    return [seen_revision(each) async for each in each_object(client, REVISIONS, 20, 100)]


async def list_named_kinds(client: Client) -> AsyncIterator[NamedKinds]:
    """All Compositions and CompositionRevisions, reduced to what they name; none if the kinds are missing.

    Raises ApiError and Unreachable.
    """
    for kind, path in ((Composition.__name__, COMPOSITIONS), (CompositionRevision.__name__, REVISIONS)):
        try:
            async for each in each_object(client, path, 20, 100):
                yield named_kinds({"kind": kind, **each})
        except ApiError as error:
            if error.code != 404:
                raise


async def list_revisions_in_use(client: Client, collection: str) -> set[str]:
    """The names of the revisions that composites of a collection use. Raises ApiError and Unreachable."""
    found: set[str] = set()
    async for each in each_object(client, collection, 100, 500):
        found |= revisions_in_use(each)
    return found


async def list_revision_uses(client: Client, group: str, kind: str, collection: str) -> list[RevisionUse]:
    """The revisions by which composites run; `collection` is where those of the kind are.

    Raises ApiError and Unreachable.
    """
    running: Counter[str] = Counter()
    async for each in each_object(client, collection, 100, 500):
        # What is being deleted needs none.
        running[running_by(each)] += "deletionTimestamp" not in each["metadata"]
    found: list[RevisionUse] = []
    if running.keys() <= {""}:
        return found
    async for each in each_object(client, REVISIONS, 20, 100):
        of, name = each["spec"]["compositeTypeRef"], each["metadata"]["name"]
        its_group, _, version = of["apiVersion"].partition("/")
        if (its_group, of["kind"]) == (group, kind) and running[name]:
            found.append(RevisionUse(name, each["spec"]["compositionRef"]["name"], version, running[name]))
    return found
