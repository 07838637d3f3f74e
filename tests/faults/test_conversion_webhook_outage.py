"""The CRD's conversion webhook is down: nothing can be read, and the message names the cause."""

import base64
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.harness import Admin, CustomKind, Operator, outdated
from tests.cluster.harness.admin import condition
from tests.controlplane import pki
from tests.controlplane.ports import Ports
from tests.controlplane.probe import answers
from tests.controlplane.processes import Process
from tests.faults.scene import assert_all_stored_at, message_of

OBJECTS = 60
SCRIPT = Path(__file__).with_name("webhook.py")


@dataclass(frozen=True, slots=True)
class ConvertedKind(CustomKind):
    """A kind with a conversion webhook."""

    client_config: dict[str, Any] = field(default_factory=dict)

    def to_object(self) -> dict[str, Any]:
        body = CustomKind.to_object(self)
        webhook = {"clientConfig": self.client_config, "conversionReviewVersions": ["v1"]}
        body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return body


@dataclass(frozen=True)
class Webhook:
    """A conversion webhook: its process, and how the API server gets there."""

    process: Process
    client_config: dict[str, Any]


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    """A conversion webhook that serves."""
    secrets, ports = pki.create(tmp_path / "pki"), Ports()
    port = ports.take()
    process = Process(
        "webhook",
        Path(sys.executable),
        {"port": str(port), "certificate": str(secrets.serving_certificate), "key": str(secrets.serving_key)},
        arguments=(str(SCRIPT),),
        directory=tmp_path,
        ready=partial(answers, port, "/", ca_file=secrets.ca_file),
    )
    process.start()
    process.wait_ready()
    bundle = base64.b64encode(secrets.ca_file.read_bytes()).decode()
    yield Webhook(process, {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle})
    process.stop()
    ports.close()


@pytest.mark.parametrize("when", ["from the start", "in mid-run"])
async def test_conversion_webhook_is_down(
    admin: Admin, operator: Operator, group: str, webhook: Webhook, when: str
) -> None:
    kind = await outdated(admin, ConvertedKind(group, client_config=webhook.client_config), OBJECTS)
    if when == "from the start":
        webhook.process.kill()
    await admin.create_migration(group, kind, limits={"maxObjectsPerSecond": 1})
    if when == "in mid-run":
        await admin.wait_until_stored(kind, "v2", 3)
        webhook.process.kill()

    blamed = f"conversion webhook for {group}/v1, Kind=Database failed"
    migration = await admin.wait_for_migration(
        group, lambda each: blamed in message_of(each, "Succeeded"), "stopped at the webhook"
    )
    # It waits, rather than go through all objects to have each refused.
    assert condition(migration, "Succeeded").reason in ("APIServerRefused", "WebhookUnavailable")
    webhook.process.start()
    await admin.patch_migration(group, limits={"maxObjectsPerSecond": 1000})

    migration = await admin.wait_for_condition(group, "Succeeded", "True")
    await assert_all_stored_at(admin, kind, OBJECTS)
    assert migration.status.progress.quarantined == 0
