"""Policies that protect CRDs, and what the API server says then."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.cluster.transport.client import MERGE_PATCH, ApiError
from tests.cluster.harness import Admin, CustomKind, eventually
from tests.cluster.harness.admin import CRDS, POLICIES

Json = dict[str, Any]
ALLOW = "crdkeeper.dev/allow-deletion"
LABELS = {"team": "a", "tier": "gold"}


async def protect(admin: Admin, name: str, *, deletion: str = "Deny", **spec: Any) -> DefinitionPolicy:
    """A policy that only protects; one of that name is replaced."""
    body = {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "DefinitionPolicy",
        "metadata": {"name": name},
        "spec": {"storageMigration": {"mode": "Disabled"}, "protection": {"deletion": deletion}, **spec},
    }
    with suppress(ApiError):
        await admin.delete(f"{POLICIES}/{name}")
    return DefinitionPolicy.model_validate(await admin.create(POLICIES, body))


async def refusal(admin: Admin, name: str) -> str:
    """What the API server says to the deletion of a CRD; empty if it would accept it."""
    try:
        await admin.client.request("DELETE", f"{CRDS}/{name}?dryRun=All")
    except ApiError as error:
        return error.message
    return ""


async def refused(admin: Admin, name: str, *, wanted: bool = True) -> str:
    """The refusal, as soon as the API server knows of the policy."""
    last = ""

    async def look() -> bool:
        nonlocal last
        last = await refusal(admin, name)
        return bool(last) is wanted

    await eventually(look, otherwise=lambda: f"refused: {last!r}")
    return last


async def apply_labelled(admin: Admin, group: str) -> CustomKind:
    kind = CustomKind(group, labels=LABELS)
    await admin.apply_definition(kind)
    return kind


async def annotate(admin: Admin, kind: CustomKind, reason: str) -> None:
    body = {"metadata": {"annotations": {ALLOW: reason}}}
    await admin.client.request("PATCH", f"{CRDS}/{kind.name}", body, content_type=MERGE_PATCH)


def why_unready(status: Json) -> str:
    """The reason of Ready, if it is False."""
    conditions: list[Json] = status.get("conditions") or []
    return "".join(
        each["reason"] for each in conditions if (each["type"], each["status"]) == ("Ready", "False")
    )


async def policy_where(admin: Admin, name: str, holds: Callable[[Json], bool]) -> None:
    async def look() -> bool:
        return holds((await admin.get(f"{POLICIES}/{name}")).get("status") or {})

    await eventually(look)
