"""The webhook is killed again and again while somebody changes a CRD: no change fails because of it."""

import asyncio
import os
import random
from typing import Final

from tests.cluster.changes.scene import Scene, enum
from tests.dice import drawn_seed

KILLS: Final = int(os.environ.get("CRDKEEPER_CHANGE_KILLS", "4"))
_MOST_SECONDS: Final = 0.4
"""The longest time that the webhook lives once it is ready."""


async def test_no_change_fails_while_the_webhook_is_killed(scene: Scene) -> None:
    await scene.judge("Deny")
    await scene.admin.apply_definition(scene.kind)
    await scene.admin.create_objects(scene.kind, 20, engine="mysql")
    seed = drawn_seed()
    print(f"CRDKEEPER_SEED={seed} CRDKEEPER_CHANGE_KILLS={KILLS}")
    chances = random.Random(seed)

    async def kill() -> None:
        for _ in range(KILLS):
            await asyncio.sleep(chances.uniform(0.0, _MOST_SECONDS))
            await asyncio.to_thread(scene.pod.process.kill)
            await asyncio.to_thread(scene.pod.start)

    assert await scene.change_during(kill(), seed)
    await scene.until_said("refuses it", scene.kind.changed("v1", spec=enum("postgres")))
