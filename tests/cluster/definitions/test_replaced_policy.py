"""A DefinitionPolicy that is deleted and created again at once, as `kubectl replace --force` does."""

from typing import Any

from tests.cluster.definitions.protecting import protect
from tests.cluster.harness import Admin, Operator, eventually
from tests.cluster.harness.admin import POLICIES


async def test_a_policy_that_is_replaced_is_not_forgotten(
    admin: Admin, operator: Operator, group: str
) -> None:
    """To a busy operator all events come at once, and Kopf keeps their order only for each uid."""
    path = f"{POLICIES}/{group}"
    admin.cleans_up(path)
    operator.pause()
    try:
        await protect(admin, group, groups=[group], deletion="Allow")
        made = await protect(admin, group, groups=[group])
    finally:
        operator.resume()

    async def judged() -> bool:
        found: dict[str, Any] = await admin.get(path)
        return found["metadata"]["uid"] == made.metadata.uid and bool(
            found.get("status", {}).get("conditions")
        )

    await eventually(judged)
