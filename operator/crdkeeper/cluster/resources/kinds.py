"""crdkeeper's own kinds: read, create and delete them, and apply their status."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from crdkeeper.api.builtinpolicy import BuiltinPolicy
from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import API_VERSION, FIELD_MANAGER, GROUP, VERSION, Condition, Kind, ObjectMeta
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH, METADATA_ONLY, ApiError, Client, find
from crdkeeper.cluster.transport.pages import pages
from crdkeeper.core.policy.reading import read_policy

_K = TypeVar("_K", bound=Kind)


class OfAnotherRelease(Exception):
    """Another release of crdkeeper has written the object, and this one cannot parse it."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} {name} is of another release, and this one cannot read it")


def _path(plural: str, name: str = "") -> str:
    base = f"/apis/{GROUP}/{VERSION}/{plural}"
    return f"{base}/{name}" if name else base


REPORTS = _path(DefinitionReport.plural)


async def list_migrations_of(
    client: Client, definition: str = "", unread: set[str] | None = None
) -> list[StorageMigration] | None:
    """The StorageMigrations of a CRD, or else of all resources, that can be parsed.

    The names of those that cannot, of whatever resource, are added to `unread`. None if the kind is not
    installed. Raises ApiError and Unreachable.
    """
    found: list[StorageMigration] = []
    unread = set() if unread is None else unread
    try:
        async for body in pages(client, f"{_path(StorageMigration.plural)}?limit=500"):
            found += (
                each
                for each in readable(StorageMigration.model_validate, body["items"], unread)
                if definition in ("", str(each.spec.resource))
            )
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    return found


def readable(
    parse: Callable[[Mapping[str, Any]], _K], items: Iterable[Mapping[str, Any]], unread: set[str]
) -> list[_K]:
    """Those that can be parsed; the names of the others are added to `unread`."""
    found = []
    for each in items:
        try:
            found.append(parse(each))
        except ValidationError:
            unread.add(each["metadata"]["name"])
    return found


async def list_policies(client: Client) -> list[DefinitionPolicy] | None:
    """List all DefinitionPolicies, also those that cannot be read; None if the kind is not installed."""
    body = await find(client, _path(DefinitionPolicy.plural))
    return [read_policy(each) for each in body["items"]] if body is not None else None


async def list_builtin_policies(client: Client, unread: set[str]) -> list[BuiltinPolicy] | None:
    """The BuiltinPolicies that can be parsed; None if the kind is not installed.

    The names of the others are added to `unread`. Raises ApiError and Unreachable.
    """
    body = await find(client, _path(BuiltinPolicy.plural))
    return readable(BuiltinPolicy.model_validate, body["items"], unread) if body is not None else None


async def get_builtin_policy(client: Client, name: str) -> BuiltinPolicy | None:
    """The BuiltinPolicy; None if there is none."""
    found = await find(client, _path(BuiltinPolicy.plural, name))
    return BuiltinPolicy.model_validate(found) if found is not None else None


async def installed(client: Client, plural: str) -> bool:
    """Whether the API server serves one of our kinds. Raises ApiError, also for 403."""
    return await find(client, f"{_path(plural)}?limit=1") is not None


def parse_report(found: Mapping[str, Any]) -> DefinitionReport:
    """Parse a DefinitionReport; without its status if another version of crdkeeper wrote unknown values."""
    try:
        return DefinitionReport.model_validate(found)
    except ValidationError:
        return DefinitionReport.model_validate({**found, "status": {}})


async def list_reports(client: Client, take: Callable[[DefinitionReport], None], page: int = 100) -> str:
    """Read all DefinitionReports, a page at a time. Returns the resourceVersion from which to watch."""
    version = ""
    async for body in pages(client, f"{REPORTS}?limit={page}"):
        for each in body["items"]:
            take(parse_report(each))
        version = version or body["metadata"]["resourceVersion"]
    return version


async def list_false_conditions(
    client: Client, types: Collection[str], names: Collection[str] = ()
) -> dict[str, list[Condition]]:
    """By CRD, the conditions of its report of these types that are False; of all CRDs, or of those named.

    Empty if the kind is not installed. Raises ApiError and Unreachable.
    """
    found: dict[str, list[Condition]] = {}

    def take(report: Mapping[str, Any]) -> None:
        conditions = (report.get("status") or {}).get("conditions") or ()
        wrong = [each for each in conditions if each["type"] in types and each["status"] == "False"]
        if wrong:
            found[report["metadata"]["name"]] = [Condition.model_validate(each) for each in wrong]

    if names:
        for each in names:
            report = await find(client, _path(DefinitionReport.plural, quote(each, safe="")))
            take(report or {})
        return found
    try:
        async for body in pages(client, f"{REPORTS}?limit=100"):
            for each in body["items"]:
                take(each)
    except ApiError as error:
        if error.code != 404:
            raise
    return found


async def apply_report(client: Client, metadata: Mapping[str, Any]) -> ObjectMeta:
    """Create a DefinitionReport, or ensure that it has these labels and owners. Returns its new metadata."""
    path = f"{_path(DefinitionReport.plural, metadata['name'])}?fieldManager={FIELD_MANAGER}&force=true"
    body = {
        "apiVersion": API_VERSION,
        "kind": DefinitionReport.model_fields["kind"].default,
        "metadata": metadata,
    }
    answer = await client.request(
        "PATCH", path, body, content_type=APPLY_PATCH, accept=METADATA_ONLY, lean=True
    )
    return ObjectMeta.model_validate(answer["metadata"])


async def get_migration(client: Client, name: str) -> StorageMigration | None:
    """The StorageMigration; None if there is none. Raises OfAnotherRelease, ApiError and Unreachable."""
    found = await find(client, _path(StorageMigration.plural, name))
    try:
        return StorageMigration.model_validate(found) if found is not None else None
    except ValidationError as error:
        raise OfAnotherRelease(StorageMigration.model_fields["kind"].default, name) from error


async def create_migration(
    client: Client, migration: dict[str, Any], *, manager: str = FIELD_MANAGER
) -> StorageMigration:
    """Create a StorageMigration. Raises ApiError; 409 AlreadyExists if the name is taken."""
    path = f"{_path(StorageMigration.plural)}?fieldManager={manager}"
    return StorageMigration.model_validate(await client.request("POST", path, migration))


async def patch_migration_spec(client: Client, name: str, spec: dict[str, Any]) -> StorageMigration:
    """Merge changes into the spec of a StorageMigration."""
    path = f"{_path(StorageMigration.plural, name)}?fieldManager={FIELD_MANAGER}"
    body = await client.request("PATCH", path, {"spec": spec}, content_type=MERGE_PATCH)
    return StorageMigration.model_validate(body)


async def delete_migration(client: Client, migration: StorageMigration) -> None:
    """Delete exactly this StorageMigration; does nothing if it is gone or was re-created."""
    body = {"preconditions": {"uid": migration.metadata.uid}}
    try:
        await client.request("DELETE", _path(StorageMigration.plural, migration.metadata.name), body)
    except ApiError as error:
        if error.code not in (404, 409):
            raise


async def apply_status(client: Client, owner: Kind, *, manager: str = FIELD_MANAGER) -> bool:
    """Apply the whole status. Returns False if there is no object of that name.

    Raises ApiError. 409 means another object of that name, or a write that lost against others: look again.
    """
    try:
        await put_status(client, owner, manager=manager)
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True


async def put_report_status(client: Client, report: DefinitionReport) -> ObjectMeta:
    """Apply the whole status of exactly this report. Returns its new metadata.

    Raises ApiError; 404 or 409 if exactly this report no longer exists.
    """
    answer = await put_status(client, report, accept=METADATA_ONLY)
    return ObjectMeta.model_validate(answer["metadata"])


async def put_status(
    client: Client,
    owner: Kind,
    *,
    resource_version: str | None = None,
    manager: str = FIELD_MANAGER,
    accept: str = "application/json",
) -> dict[str, Any]:
    """Apply the whole status, to the given version of the object if any.

    Returns the updated object in the form of `accept`.

    Raises ApiError; 404 or 409 if exactly this object or version no longer exists.
    """
    metadata = {"name": owner.metadata.name, "uid": owner.metadata.uid}
    if resource_version:
        metadata["resourceVersion"] = resource_version
    body = {
        "apiVersion": API_VERSION,
        "kind": owner.kind,
        "metadata": metadata,
        **owner.model_dump(mode="json", by_alias=True, exclude_none=True, include={"status"}),
    }
    path = f"{_path(owner.plural, owner.metadata.name)}/status?fieldManager={manager}&force=true"
    return await client.request("PATCH", path, body, content_type=APPLY_PATCH, accept=accept, lean=True)
