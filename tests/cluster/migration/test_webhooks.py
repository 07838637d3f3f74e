"""Broken webhooks: no object is at fault, so the run waits, and continues by itself afterwards."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.cluster.harness import Admin, CustomKind, Operator, condition, eventually, outdated
from tests.cluster.harness.admin import CRDS
from tests.cluster.harness.admission import add_webhook, closed_port, remove_webhook, silent_port

Port = Callable[[], AbstractContextManager[int]]
BROKEN = pytest.mark.parametrize(
    ("port", "words"),
    [
        pytest.param(closed_port, "connection refused", id="down"),
        pytest.param(silent_port, "context deadline exceeded", id="hanging"),
    ],
)


@BROKEN
async def test_the_work_waits_for_a_webhook_that_fails_for_all(
    admin: Admin, operator: Operator, group: str, port: Port, words: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 30)
    with port() as number:
        webhook = await add_webhook(admin, kind, number, example="db-00000")
        await admin.create_migration(group, kind)

        migration = await admin.wait_for_condition(group, "Rewritten", "False", "WebhookUnavailable")

        message = condition(migration, "Rewritten").message
        assert f"webhook {webhook}" in message
        assert words in message
        assert "Trying again in" in message
        assert migration.status.quarantine.objects == []
        assert admin.stored(kind) == {"v1": 30}
        await remove_webhook(admin, kind)

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 30}
    assert await admin.stored_versions_of(kind) == ["v2"]
    assert (migration.status.restarts, migration.status.progress.rewritten) == (0, 30)


@BROKEN
async def test_a_few_objects_that_a_broken_webhook_concerns_are_named(
    admin: Admin, operator: Operator, group: str, port: Port, words: str
) -> None:
    kind = await outdated(admin, CustomKind(group), 4)
    with port() as number:
        webhook = await add_webhook(admin, kind, number, example="db-00000")
        await admin.create_migration(group, kind)

        migration = await admin.wait_for_condition(group, "Succeeded", "False", "ObjectsRefused")

        assert migration.status.progress.quarantined == 4
        refused = migration.status.quarantine.objects[0]
        assert (refused.code, refused.denied_by) == (500, f"webhook {webhook}")
        assert words in refused.message
        assert await admin.stored_versions_of(kind) == ["v1", "v2"]
        await remove_webhook(admin, kind)

    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 4}


async def test_the_work_waits_for_a_conversion_webhook(admin: Admin, operator: Operator, group: str) -> None:
    kind = await outdated(admin, CustomKind(group), 5)
    with closed_port() as number:
        await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"conversion": conversion_webhook(number)}})

        async def in_effect() -> bool:
            return (await admin.client.send("GET", kind.path("db-00000", version="v2"))).code == 500

        await eventually(in_effect, otherwise=lambda: "the API server does not call the webhook")
        await admin.create_migration(group, kind)

        migration = await admin.wait_for_condition(group, "Succeeded", "False")

        assert "conversion webhook for" in condition(migration, "Succeeded").message
        assert "connection refused" in condition(migration, "Succeeded").message
        assert admin.stored(kind) == {"v1": 5}
        without = {"strategy": "None", "webhook": None}
        await admin.merge(f"{CRDS}/{kind.name}", {"spec": {"conversion": without}})

    await admin.wait_for_condition(group, "Succeeded", "True")
    assert admin.stored(kind) == {"v2": 5}
    assert await admin.stored_versions_of(kind) == ["v2"]


def conversion_webhook(port: int) -> dict[str, Any]:
    """A conversion stanza with a webhook at a loopback port."""
    client = {"url": f"https://127.0.0.1:{port}/convert"}
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
    }
