"""Writes of `status.shards` of a StorageMigration, which many processes share.

Each writes one claim or part in place, on the condition that its term has not changed: a process that was
paused, or whose request was delayed, changes nothing after another one has taken over. Writes to different
parts do not conflict.
"""

from typing import Any

from crdkeeper.api.meta import FIELD_MANAGER
from crdkeeper.api.storagemigration import MigrationClaim, MigrationPart, MigrationShards, StorageMigration
from crdkeeper.cluster.transport.client import JSON_PATCH, MERGE_PATCH, ApiError, Client

COORDINATOR = "coordinator"
_LOST = (404, 409, 422)
"""The answers if the object is gone, or is not as the patch tests it: 422 for a failed test."""


_REMEDY = (
    "Apply crds/crdkeeper.dev_storagemigrations.yaml of this release with `kubectl apply --server-side -f`, "
    "and run the same command again."
)


class NotInstalled(Exception):
    """What the request asks for needs crdkeeper's kinds, as of this release."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} {_REMEDY}")


async def divide(client: Client, migration: StorageMigration, count: int) -> None:
    """Divide a migration that is not shared yet into parts, unless it has changed since it was read.

    Raises NotInstalled if the API server does not keep them, ApiError or Unreachable.
    """
    shards = MigrationShards(parts=[MigrationPart() for _ in range(count)])
    body = {
        "metadata": {"uid": migration.metadata.uid, "resourceVersion": migration.metadata.resource_version},
        "status": {"shards": shards.to_object()},
    }
    try:
        answer = await client.request("PATCH", _path(migration), body, content_type=MERGE_PATCH)
    except ApiError as error:
        if error.code in (404, 409):
            return
        raise
    if not (answer.get("status") or {}).get("shards"):
        # Fields that a CRD does not know are pruned without an error.
        raise NotInstalled(
            "--shards needs status.shards, which the installed CRD of StorageMigration does not have: "
            "it is of an older release."
        )


async def write_claim(
    client: Client, migration: StorageMigration, where: str, before: MigrationClaim, after: MigrationClaim
) -> bool:
    """Replace the claim or part at `where`, a path in `status.shards`, if it still has the term of `before`.

    To take it over also requires that the old holder has not moved. False if it is lost. Raises ApiError or
    Unreachable.
    """
    path = f"/status/shards/{where}"
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": migration.metadata.uid},
        {"op": "test", "path": f"{path}/term", "value": before.term},
    ]
    if after.term != before.term and after.holder:
        patch.append({"op": "test", "path": f"{path}/beat", "value": before.beat})
    patch.append({"op": "replace", "path": path, "value": after.to_object()})
    try:
        await client.request("PATCH", _path(migration), patch, content_type=JSON_PATCH)
    except ApiError as error:
        if error.code in _LOST:
            return False
        raise
    return True


def _path(migration: StorageMigration) -> str:
    name = migration.metadata.name
    return f"/apis/crdkeeper.dev/v1alpha1/storagemigrations/{name}/status?fieldManager={FIELD_MANAGER}"
