"""What a command that is told to stop says is saved, and what is; in virtual time."""

import asyncio
import re
from contextlib import suppress
from typing import Any

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.migrate.report import report_interruption
from crdkeeper.cluster.transport.client import Answer
from crdkeeper.core.migration.request import Request
from crdkeeper.operations.migration.together import Together
from tests.unit.operations.migration.fleet import Fleet
from tests.unit.operations.migration.scene import play, refusal

NAME = "things.g0.example.com-cli"


class Unsaved(Fleet):
    """From the signal on, a status is not stored: there is no answer, a refusal, or another one is stored."""

    trouble = ""

    async def send(self, method: str, path: str, **options: Any) -> Answer:
        if self.trouble and method == "PATCH" and f"/{NAME}/status" in path:
            if self.trouble == "no answer":
                await asyncio.sleep(3600)
            return refusal(409, "Conflict") if self.trouble == "a conflict" else refusal(500)
        if self.trouble == "a conflict" and method == "GET" and path.endswith(NAME):
            self.migrations[NAME]["status"]["restarts"] = 7
        return await super().send(method, path, **options)


@pytest.mark.parametrize("trouble", ["", "no answer", "a refusal", "a conflict"])
def test_only_what_is_saved_is_said_to_be(trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    fleet, begun = Unsaved(1, objects=200), asyncio.Event()
    requests = [Request(fleet.requests[0].resource, {"limits": {"max_objects_per_second": 10}})]

    def watch(migration: StorageMigration) -> None:
        if len(fleet.written) >= 40:
            begun.set()

    async def main() -> None:
        together = Together(fleet, requests, watch, lambda request, text: None, lambda attempt: None)
        running = asyncio.create_task(together.run())
        await begun.wait()
        await asyncio.sleep(1)  # after a checkpoint, and before the next one
        fleet.trouble = trouble
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        report_interruption(together.attempts, "text", several=False)

    play(main)

    saved = StorageMigration.model_validate(fleet.migrations[NAME]).status.progress.rewritten
    told = capsys.readouterr().err
    if not trouble:
        assert told.startswith(f"Interrupted at {saved} of 200 objects (Rewriting); saved in")
        return
    found = re.match(r"Interrupted at (\d+) of 200 objects \(Rewriting\), which may not be saved: ", told)
    assert found is not None, told
    assert saved < int(found[1]) <= len(fleet.written)
    assert f"StorageMigration {NAME} is known to be saved at {saved} of 200 objects (Rewriting). " in told
